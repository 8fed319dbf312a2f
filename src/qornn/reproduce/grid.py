"""The grids behind the paper's tables, read from the recipes: which networks, under which names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from qornn.errors import SettingsError, unknown
from qornn.recipe import Cell, ModelSettings, Recipe, cells, names, setting, strategies
from qornn.tasks import TASKS

TRAINED = {
    "performance": "Performance on every task",
    "ablation": "Ablation: post-training quantization and a penalty instead of a constraint",
    "alphas": "Scales α_W and α_W α_h of the networks in integers",
    "copy190": "Copy task, n_h = 190",
    "copy2000": "Copy task, T0 = 2000",
    "pmnist360": "Permuted MNIST, n_h = 360",
    "ptb2048": "Penn TreeBank, n_h = 2048",
    "hyper": "Learning rate, batch and five seeds on Penn TreeBank, 5 bits",
    "adding170": "Adding task, n_h = 170",
    "adding400": "Adding task, n_h = 400",
}
BEYOND = {"structured": "Structured recurrences and stacks, beyond the paper"}
OVERVIEW = {"overview": "Every task of the paper: published, trained here, and our best network"}
UNTRAINED = {
    "sizes": "Model sizes (kB = 1024 bytes)",
    "complexity": "Operations per time step",
    "compute": "Minutes per epoch",
    "literature": "Results in existing articles, as the paper cites them",
}
CURVES = {
    "copy-curves": "Copy task: validation loss during training",
    "pmnist-curves": "Permuted MNIST during training",
}
# What changes how much is trained, or how often it is looked at, but not which network of the paper this is.
FREE = ("epochs", "steps", "fraction", "log_every", "eval_every", "checkpoint_every", "checkpoint_seconds")
SHORT = {"n_h": "nh", "T0": "T", "batch": "b", "seed": "s", "activation_bits": "a"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One network to train, with every cell of the paper that it serves."""

    id: str
    run: str  # name of its run folder; PTQ cells share one
    recipe: Recipe
    cells: tuple[Cell, ...]
    changed: tuple[tuple[str, str], ...]  # what it changes of its strategy's plain network

    @property
    def task(self) -> str:
        return str(self.recipe.task["name"])

    @property
    def strategy(self) -> str:
        return self.cells[0].strategy

    @property
    def bits(self) -> int | None:
        return self.cells[0].bits

    @property
    def post(self) -> bool:
        return self.cells[0].post

    @property
    def paper(self) -> float | str | None:
        """The published figure. A figure of several seeds together belongs to no single network."""
        return next((c.paper for c in self.cells if c.paper is not None and "note" not in c.facts), None)

    @property
    def tables(self) -> list[str]:
        """Every table that this network's record serves."""
        found = [t for c in self.cells for t in _tables(c)]
        return list(dict.fromkeys(found))

    def fact(self, key: str) -> Any:
        """A figure or remark of the recipe's cells, such as paper_kB."""
        return next((c.facts[key] for c in self.cells if key in c.facts), None)


@cache
def entries() -> tuple[Entry, ...]:
    """Every network of the paper, in the order of the recipes; cells that ask for the same one are together."""
    found: dict[str, tuple[str, Recipe, tuple[tuple[str, str], ...], list[Cell]]] = {}
    for task in names():
        plain: dict[str, Recipe] = {}
        for cell in cells(task):
            # The first cell of a strategy is its plain one; names of the others say what they change.
            base = plain.setdefault(cell.strategy, cell.recipe)
            for recipe in _recipes(cell):
                changed = _changed(base, recipe)
                suffix = _suffix(changed, cell)
                stem = f"{task}-{cell.strategy}"
                run = f"{stem}-{bits_name(cell.recipe.model.bits)}{suffix}"
                found.setdefault(f"{stem}-{bits_name(cell.bits)}{suffix}", (run, recipe, changed, []))[3].append(cell)
    return tuple(
        Entry(id=id, run=run, recipe=recipe, cells=tuple(own), changed=changed)
        for id, (run, recipe, changed, own) in found.items()
    )


def of(name: str) -> list[Entry]:
    """The networks behind a table or a figure."""
    if name in CURVES:
        task = name.removesuffix("-curves")
        both = ("bjorck", "projunn")
        return [e for e in entries() if e.task == task and e.strategy in both and "performance" in e.tables]
    check_name(name)
    return [e for e in entries() if name in e.tables]


def select(name: str, filter: str | None) -> list[Entry]:
    """Those whose id is, or else contains, one of the comma-separated words, in the words' order."""
    there = of(name)
    if not filter:
        return there
    chosen: dict[str, Entry] = {}
    for word in (w.strip() for w in filter.split(",") if w.strip()):
        matching = [e for e in there if e.id == word] or [e for e in there if word in e.id]
        if not matching:
            raise unknown(f"cell of {name}", word, [e.id for e in there])
        chosen |= {e.id: e for e in matching}
    return list(chosen.values())


def check_name(name: str) -> None:
    choices = [*OVERVIEW, *TRAINED, *BEYOND, *UNTRAINED, *CURVES, "instability"]
    if name not in choices:
        raise unknown("table or figure", name, choices)


def differences(recipe: Recipe, other: Recipe) -> dict[str, tuple[Any, Any]]:
    """Settings in which two recipes are not the same network and training, as table.key -> (ours, theirs)."""
    mine, theirs = _compared(recipe), _compared(other)
    return {key: (mine.get(key), theirs.get(key)) for key in mine | theirs if mine.get(key) != theirs.get(key)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One record to make: a network, how it is to be trained this time, and where its files lie."""

    id: str
    entry: Entry
    recipe: Recipe
    variant: str | None
    folder: Path  # of the run
    results: Path
    budget: float | None  # seconds
    device: str = "auto"
    quiet: bool = False


def make_jobs(
    chosen: Sequence[Entry],
    *,
    runs: Path,
    results: Path,
    settings: Iterable[str] = (),
    variant: str | None = None,
    seed: int | None = None,
    fraction: float | None = None,
    budget: float | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    quiet: bool = False,
) -> list[Job]:
    """The records to make; folders are absolute, since a worker elsewhere must find them."""
    settings = list(settings)
    _check_variant(variant)
    jobs = []
    for entry in chosen:
        own = (
            [setting("task.data_dir", str(data_dir.resolve()))]
            if data_dir is not None and _reads_files(entry.task)
            else []
        )
        own += [] if fraction is None else [f"train.fraction={fraction!r}"]
        changed = entry.recipe.override(settings)
        if (wrong := differences(changed, entry.recipe)) and variant is None:
            raise SettingsError(
                f"{', '.join(wrong)}: not as in the paper for {entry.id}; name the change with --variant NAME, "
                "and its record is listed beside the paper's setting"
            )
        ending = "" if variant is None else f"--{variant}"
        if seed is not None and seed != entry.recipe.train.seed:
            if entry.recipe.train.seed:
                raise SettingsError(f"{entry.id} has its own seed; leave --seed out, or choose other --cells")
            own, ending = [*own, f"train.seed={seed}"], f"-s{seed}{ending}"
        jobs.append(
            Job(
                id=entry.id + ending,
                entry=entry,
                recipe=changed.override(own),
                variant=variant,
                folder=(runs / (entry.run + ending)).absolute(),
                results=results.absolute(),
                budget=budget,
                device=device,
                quiet=quiet,
            )
        )
    return jobs


def _tables(cell: Cell) -> list[str]:
    own = [cell.table]
    own += ["sizes"] if "paper_kB" in cell.facts else []
    own += ["alphas"] if "paper_alpha_W" in cell.facts else []
    timed = "paper_minutes" in strategies(cell.recipe.task["name"]).get(cell.strategy, {})
    return own + (["compute"] if timed and cell.table == "performance" else [])


def _recipes(cell: Cell) -> list[Recipe]:
    """The cell's recipe, once for each seed where it asks for several."""
    recipe = cell.recipe
    bits = cell.facts.get("activation_bits")
    if bits is not None and any(f.name == "activation_bits" for f in fields(ModelSettings)):
        recipe = recipe.override([f"model.activation_bits={bits}"])
    seeds = cell.facts.get("seeds", [recipe.train.seed])
    return [recipe.override([f"train.seed={seed}"]) for seed in seeds]


def _changed(base: Recipe, recipe: Recipe) -> tuple[tuple[str, str], ...]:
    named = ((key.partition(".")[2], mine) for key, (mine, _) in differences(recipe, base).items())
    return tuple((key, _short(value)) for key, value in named if key not in ("bits", "activation_bits"))


def _suffix(changed: tuple[tuple[str, str], ...], cell: Cell) -> str:
    """What a cell changes, for its name: -nh190, -T2000, -lr1e-4, -a16."""
    bits = cell.facts.get("activation_bits")
    named = [*changed, *([] if bits is None else [("activation_bits", str(bits))])]
    return "".join(f"-{SHORT.get(key, key)}{value}" for key, value in named)


def _short(value: Any) -> str:
    if isinstance(value, float):
        digits, _, exponent = f"{value:e}".partition("e")
        return f"{float(digits):g}e{int(exponent)}"
    return str(value)


def bits_name(bits: int | None) -> str:
    return "fp" if bits is None else f"k{bits}"


def _compared(recipe: Recipe) -> dict[str, Any]:
    """Every setting that makes the network and its training what they are, defaults of the task filled in."""
    tables = recipe.portable_tables()
    known = {f.name: f.default for f in fields(TASKS[tables["task"]["name"]])}
    tables["task"] = {k: v for k, v in (known | tables["task"]).items() if k != "data_dir"}
    tables["train"] = {k: v for k, v in tables["train"].items() if k not in FREE}
    return {f"{table}.{key}": value for table, values in tables.items() for key, value in values.items()}


def _reads_files(task: str) -> bool:
    return any(f.name == "data_dir" for f in fields(TASKS[task]))


def _check_variant(variant: str | None) -> None:
    if variant is not None and (not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", variant) or "--" in variant):
        raise SettingsError(f"--variant is a short name such as lr5e-4 or rows, got {variant!r}")
