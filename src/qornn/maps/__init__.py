"""W_raw -> orthogonal W. A new map is one file here and one line in the dict."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from qornn.errors import SettingsError, shown, unknown
from qornn.maps.base import OrthogonalMap, deviation, polar_factor
from qornn.maps.bjorck import Bjorck
from qornn.maps.cycle import Cycle, Delay
from qornn.maps.free import Free
from qornn.maps.hadamard import Hadamard, HadamardBlock
from qornn.maps.penalty import Penalty
from qornn.maps.projunn import ProjUNN
from qornn.maps.starts import STARTS, start
from qornn.maps.structured import Structured

MAPS: dict[str, type[OrthogonalMap]] = {
    "bjorck": Bjorck,
    "projunn": ProjUNN,
    "penalty": Penalty,
    "free": Free,
    "hadamard": Hadamard,
    "hadamard-block": HadamardBlock,
    "cycle": Cycle,
    "delay": Delay,
}

__all__ = [
    "MAPS",
    "STARTS",
    "Bjorck",
    "Cycle",
    "Delay",
    "Free",
    "Hadamard",
    "HadamardBlock",
    "OrthogonalMap",
    "Penalty",
    "ProjUNN",
    "Structured",
    "check_options",
    "deviation",
    "is_structured",
    "make_map",
    "options_of",
    "polar_factor",
    "start",
]


def make_map(name: str | OrthogonalMap, **options: Any) -> OrthogonalMap:
    """The map of that name, or the object itself."""
    if isinstance(name, OrthogonalMap):
        if options:
            raise SettingsError(f"a map given as an object has its options already; remove {', '.join(options)}")
        return name
    if not isinstance(name, str) or name not in MAPS:
        raise unknown("map", name, MAPS)
    _check_names(name, options)
    return MAPS[name](**options)


def is_structured(map: str | OrthogonalMap) -> bool:
    """Whether the map makes a W that is not stored."""
    found = MAPS.get(map) if isinstance(map, str) else map
    return found is not None and found.structured


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse what the constructor of the map does not take, and values of another type than it says."""
    if name not in MAPS:
        raise unknown("map", name, MAPS)
    _check_names(name, options)
    known = signature(MAPS[name]).parameters
    for key, value in options.items():
        kind = str(getattr(known[key].annotation, "__name__", known[key].annotation))
        wanted = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,)}.get(kind)
        if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool")):
            raise SettingsError(f"the option {key} of the map {name!r} must be {kind}, got {shown(value)}")


def _check_names(name: str, options: Mapping[str, Any]) -> None:
    known = options_of(MAPS[name])
    for key in options:
        if key not in known:
            raise unknown(f"option of the map {name!r}", key, known)


def options_of(kind: type[OrthogonalMap]) -> list[str]:
    """The options of a kind of map: the parameters of its own signature."""
    return [key for key in signature(kind.__init__).parameters if key not in ("self", "args", "kwargs")]
