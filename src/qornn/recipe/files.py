"""The recipe files: a task's shared settings, and what each strategy changes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from qornn.bits import FULL_PRECISION, parse_bits
from qornn.errors import SettingsError, unknown
from qornn.recipe.recipe import Recipe, from_tables
from qornn.recipe.settings import STACK
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
    activation_bits: int | str | None = AS_THE_RECIPE,
    settings: Iterable[str] = (),
) -> Recipe:
    """The recipe of a task for the strategy that `map` or another `model` than qornn names.

    `bits` is 2..8, or None or "fp" for full precision; a map that is no strategy of the file takes the first one's
    settings. `activation_bits` are those of states that are rounded while training; a stack at full precision has
    float states unless they are given.
    """
    if map == STACK:
        raise SettingsError("stack is a model, not a map; use --model stack")
    if map is not None and model != "qornn":
        raise SettingsError(f"the model {model!r} has no orthogonal matrix; leave map={map!r} out")
    if map == SHARED:
        raise SettingsError(f"structured is not one map; use {', '.join(STRUCTURED[:-1])} or {STRUCTURED[-1]}")
    strategy = map if model == "qornn" else model
    recipe = for_strategy(task, strategy)
    changes: dict[str, Any] = {"kind": model}
    if map is not None and map not in strategies(task):
        changes |= {"map": map} if map == recipe.model.map else {"map": map, "map_options": {}}
    if bits != AS_THE_RECIPE:
        changes["bits"] = parse_bits(bits)
        if model == STACK and changes["bits"] is None:
            changes["activation_bits"] = None
    if activation_bits != AS_THE_RECIPE:
        changes["activation_bits"] = _state_bits(activation_bits, model)
    return replace(recipe, model=replace(recipe.model, **changes)).override(settings)


def _state_bits(bits: int | str | None, model: str) -> int | None:
    """Bits of states while training, as a number or in words."""
    if model == "qornn":
        raise SettingsError(
            "activation_bits is a training setting only of --model stack; states of this network are rounded when "
            "it is lowered: `qornn lower RUN -o FILE --activation-bits 12`"
        )
    if bits is None or (isinstance(bits, str) and bits.lower() == FULL_PRECISION):
        return None
    number = int(bits) if isinstance(bits, str) and bits.isdecimal() and len(bits) < 5 else bits
    if isinstance(number, bool) or not isinstance(number, int):
        raise SettingsError(f"activation_bits must be a whole number, or fp for float states, got {bits!r}")
    return number


def for_strategy(task: str, strategy: str | None) -> Recipe:
    """The file's shared tables with the strategy's changes on top; an unlisted one takes those of the first."""
    file = read(task)
    known = file.get("strategy", {})
    first = known[SHARED] if strategy in STRUCTURED and SHARED in known else next(iter(known.values()), {})
    chosen = known.get(strategy, first)
    tables = {t: {**file.get(t, {}), **chosen.get(t, {})} for t in ("task", "model", "train")}
    if strategy == STACK:  # what the file says of all is said of one recurrent layer
        tables["model"] = {"kind": STACK, **known.get(STACK, {}).get("model", {})}
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
