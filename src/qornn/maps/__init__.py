"""W_raw -> orthogonal W. A new map is one file here and one line in the dict."""

from typing import Any

from qornn.errors import unknown
from qornn.maps.base import OrthogonalMap, deviation, polar_factor
from qornn.maps.bjorck import Bjorck
from qornn.maps.free import Free
from qornn.maps.penalty import Penalty
from qornn.maps.projunn import ProjUNN
from qornn.maps.starts import STARTS, start

MAPS: dict[str, type[OrthogonalMap]] = {"bjorck": Bjorck, "projunn": ProjUNN, "penalty": Penalty, "free": Free}

__all__ = [
    "MAPS",
    "STARTS",
    "Bjorck",
    "Free",
    "OrthogonalMap",
    "Penalty",
    "ProjUNN",
    "deviation",
    "make_map",
    "polar_factor",
    "start",
]


def make_map(name: str | OrthogonalMap, **options: Any) -> OrthogonalMap:
    """The map of that name, or the object itself."""
    if isinstance(name, OrthogonalMap):
        return name
    if name not in MAPS:
        raise unknown("map", name, MAPS)
    return MAPS[name](**options)
