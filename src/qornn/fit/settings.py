"""The settings of a fit."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qornn.bits import check_bits
from qornn.errors import SettingsError, unknown
from qornn.estimators import QORNNRegressor
from qornn.estimators.design import Design
from qornn.estimators.designs import design_of
from qornn.estimators.settings import check_settings
from qornn.export.c99 import names as c_names
from qornn.fit.problem import METRICS
from qornn.tasks.base import check_count
from qornn.verify import TARGETS


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The settings. An estimator's setting that is not given has the estimator's own default."""

    data: Path
    out: Path
    bits: tuple[int, ...] = (4,)
    task: str = "auto"
    test: Path | None = None
    label: str | None = None
    id: str | None = None
    time: str | None = None
    group: str | None = None
    test_fraction: float | None = None
    metric: str = "accuracy"
    seed: int = 0
    name: str | None = None  # of the C
    targets: tuple[str, ...] | None = None  # None: the host, and a microcontroller if it can be emulated
    web: bool = False  # also write the network as a page for browsers
    estimator: dict[str, Any] = field(default_factory=dict)
    quiet: bool = False
    command: str | None = None  # what the C says made it

    def __post_init__(self) -> None:
        """Refuse now what would otherwise be refused after the training."""
        if not self.bits:
            raise SettingsError("bits is empty; give one or several of 2..8, as in --bits 2,4,8")
        for bits in self.bits:
            check_bits(bits)
        if self.metric not in METRICS:
            raise unknown("metric", self.metric, METRICS)
        for target in self.targets or ():
            if target not in TARGETS:
                raise unknown("target", target, TARGETS)
        check_count("seed", self.seed, least=0)
        self.design.check()
        if self.name is not None:
            c_names.check(self.name)

    @property
    def design(self) -> Design:
        """The kind of network that is asked for; settings that no network has are refused."""
        estimator = QORNNRegressor(**{key: value for key, value in self.estimator.items() if key != "class_weight"})
        check_settings(estimator)
        return design_of(estimator)

    @property
    def c_name(self) -> str:
        """The prefix of every C symbol: asked for, or made from the name of the data."""
        if self.name is not None:
            return self.name
        made = re.sub(r"\W+|_+", "_", self.data.resolve().stem.lower(), flags=re.ASCII).strip("_")[: c_names.LONGEST]
        try:
            return c_names.check(made)
        except SettingsError:
            return "model"
