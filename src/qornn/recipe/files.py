"""The recipe files: a task's shared settings, and what each strategy changes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from qornn.bits import parse_bits
from qornn.errors import SettingsError, unknown
from qornn.recipe.recipe import Recipe, from_tables
from qornn.structure import MAPS as STRUCTURED

AS_THE_RECIPE = "recipe"  # bits that were not asked for
SHARED = "structured"  # the strategy that all structured maps of a recipe share


def names() -> list[str]:
    """Every task that has a recipe."""
    return sorted(f.name.removesuffix(".toml") for f in _folder().iterdir() if f.name.endswith(".toml"))


def strategies(task: str) -> dict[str, dict[str, Any]]:
    """The strategies of a task's recipe, each with what it changes."""
    return dict(read(task).get("strategy", {}))


def resolve(
    task: str,
    *,
    model: str = "qornn",
    map: str | None = None,
    bits: int | str | None = AS_THE_RECIPE,
    settings: Iterable[str] = (),
) -> Recipe:
    """The recipe of a task for the strategy that `map` or the baseline `model` names.

    `bits` is 2..8, or None or "fp" for full precision; a map that is no strategy of the file takes the first one's
    settings.
    """
    if map is not None and model != "qornn":
        raise SettingsError(f"the model {model!r} has no orthogonal matrix; leave out map={map!r}")
    if map == SHARED:
        raise SettingsError(f"structured is not one map; take {', '.join(STRUCTURED[:-1])} or {STRUCTURED[-1]}")
    strategy = map if model == "qornn" else model
    recipe = for_strategy(task, strategy)
    changes: dict[str, Any] = {"kind": model}
    if map is not None and map not in strategies(task):
        changes |= {"map": map} if map == recipe.model.map else {"map": map, "map_options": {}}
    if bits != AS_THE_RECIPE:
        changes["bits"] = parse_bits(bits)
    return replace(recipe, model=replace(recipe.model, **changes)).override(settings)


def for_strategy(task: str, strategy: str | None) -> Recipe:
    """The file's shared tables with the strategy's changes on top; an unlisted one takes those of the first."""
    file = read(task)
    known = file.get("strategy", {})
    first = known[SHARED] if strategy in STRUCTURED and SHARED in known else next(iter(known.values()), {})
    chosen = known.get(strategy, first)
    tables = {t: {**file.get(t, {}), **chosen.get(t, {})} for t in ("task", "model", "train")}
    if strategy in STRUCTURED:
        tables["model"]["map"] = strategy
    return from_tables(tables)


@cache
def read(task: str) -> dict[str, Any]:
    """The file of a task's recipe, as it is."""
    if task not in names():
        raise unknown("recipe", task, names())
    return tomllib.loads((_folder() / f"{task}.toml").read_text(encoding="utf-8"))


def _folder() -> Any:
    return resources.files("qornn") / "recipe" / "data"
