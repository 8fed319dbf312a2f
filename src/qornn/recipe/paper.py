"""The cells of the paper's tables, as the recipe files hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from qornn.bits import parse_bits
from qornn.recipe.files import for_strategy, read
from qornn.recipe.recipe import Recipe, setting
from qornn.tasks import TASKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of one of the paper's tables."""

    recipe: Recipe  # what to train
    table: str
    strategy: str
    bits: int | None
    paper: float | str | None  # a number, NC or NU
    facts: dict[str, Any]  # the TOML's other keys: paper_at, paper_kB, cited, note …

    @property
    def post(self) -> bool:
        """Trained at full precision and quantized afterwards (PTQ)."""
        return bool(self.facts.get("post"))


def cells(task: str) -> list[Cell]:
    """Every cell of the paper's tables on this task, in the file's order."""
    return [_cell(task, entry) for entry in read(task).get("cell", [])]


def find_cell(recipe: Recipe, *, post_bits: int | None = None) -> Cell | None:
    """The paper's cell for this network, if it has one; cells of the same network are told apart by lr and batch."""
    network = (_facts_of(recipe.task), recipe.model)
    matches = [
        c
        for c in cells(recipe.task["name"])
        if (_facts_of(c.recipe.task), c.recipe.model) == network
        and (c.bits == post_bits if c.post else post_bits is None)
        and c.paper is not None
        and "note" not in c.facts
    ]
    alike = [c for c in matches if (c.recipe.train.lr, c.recipe.train.batch) == (recipe.train.lr, recipe.train.batch)]
    return next(iter(alike or [c for c in matches if c.table != "hyper"]), None)


def _cell(task: str, entry: Mapping[str, Any]) -> Cell:
    facts = dict(entry)
    table, strategy = facts.pop("table"), facts.pop("strategy")
    bits, paper = parse_bits(facts.pop("bits")), facts.pop("paper", None)
    recipe = for_strategy(task, strategy)
    trained = None if facts.get("post") else bits
    states = facts.get("activation_bits", recipe.model.activation_bits)
    recipe = replace(recipe, model=replace(recipe.model, bits=trained, activation_bits=states))
    recipe = recipe.override(setting(key, value) for key, value in facts.pop("set", {}).items())
    return Cell(recipe=recipe, table=table, strategy=strategy, bits=bits, paper=paper, facts=facts)


def _facts_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that make it another task: all except the data folder and the size of the validation set."""
    instance = TASKS[task["name"]](**{k: v for k, v in task.items() if k != "name"})
    return {k: v for k, v in asdict(instance).items() if k not in ("data_dir", "validation")} | {"name": task["name"]}
