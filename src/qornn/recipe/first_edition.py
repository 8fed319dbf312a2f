"""The one reader of [model] tables of the first edition, which kept the options of all maps beside the other keys.

Programs, run folders and records of qornn 0.1 hold such tables, and `--set model.block=8` still names such a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qornn._io.foreign import is_number
from qornn.errors import SettingsError, shown
from qornn.structure import MAPS as STRUCTURED


@dataclass(frozen=True, slots=True)
class _Key:
    default: Any
    option: str  # what the map itself calls it
    maps: tuple[str, ...]


KEYS = {
    "rank": _Key(1, "rank", ("projunn",)),
    "penalty": _Key(0.1, "strength", ("penalty",)),
    "exact": _Key(False, "exact", ("bjorck",)),
    "map_seed": _Key(0, "seed", STRUCTURED),
    "learn": _Key(False, "learn", ("hadamard", "cycle", "delay")),
    "block": _Key(16, "block", ("hadamard-block",)),
    "lines": _Key(16, "lines", ("delay",)),
}


def renewed(model: Mapping[str, Any], default_map: str = "bjorck") -> dict[str, Any]:
    """The table with the options of its own map in map_options, but for defaults, and without those of other maps."""
    table = {key: value for key, value in model.items() if key not in KEYS}
    old = {key: value for key, value in model.items() if key in KEYS}
    options, map_ = table.get("map_options", {}), table.get("map", default_map)
    if not isinstance(options, Mapping):
        return table  # refused later, when types are checked
    options = dict(options)
    for key, value in old.items():
        known = KEYS[key]
        _check(key, value, known.default)
        if map_ not in known.maps:
            if key == "learn" and value:
                raise SettingsError(f"model.learn=true is for map='hadamard', whose signs can learn; got map={map_!r}")
        else:
            options[known.option] = value
    for known in KEYS.values():  # the same network is the same table, whoever wrote it
        if map_ in known.maps and _same(options.get(known.option), known.default):
            del options[known.option]
    return {**table, "map_options": options}


def _same(value: Any, default: Any) -> bool:
    return value == default and isinstance(value, bool) == isinstance(default, bool)


def _check(key: str, value: Any, default: Any) -> None:
    kind = type(default)
    fine = is_number(value) if kind is float else type(value) is kind
    if not fine:
        raise SettingsError(f"model.{key} must be {kind.__name__}, got {shown(value)}")
    if kind is int and abs(value) >= 2**63:
        raise SettingsError(f"model.{key} must lie within 64 bits, got {shown(value)}")
