"""The kinds of networks by the name of their map."""

from __future__ import annotations

from typing import Any

from qornn.errors import unknown
from qornn.estimators.design import Design
from qornn.estimators.single import SingleLayer
from qornn.estimators.stacked import StackOfRotations
from qornn.maps import MAPS

DESIGNS: dict[str, type[Design]] = {**dict.fromkeys(MAPS, SingleLayer), "rotations": StackOfRotations}


def design_of(estimator: Any) -> Design:
    """What the estimator's parameters ask for; a map may also be an object, of a single layer."""
    name = estimator.map
    if not isinstance(name, str):
        return SingleLayer(estimator)
    if name not in DESIGNS:
        raise unknown("map", name, DESIGNS)
    return DESIGNS[name](estimator)
