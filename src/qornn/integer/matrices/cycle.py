"""The signed cycle: nothing is stored, nothing is rounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from qornn.integer import check
from qornn.integer.layout import Fields, Layout
from qornn.integer.matrices.base import Form
from qornn.integer.matrices.structured import UNITS, Structured


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cycle(Structured):
    """h_i ← h_{i−1}, and what comes round from the last unit with its sign turned: nothing is ever rounded."""

    kind = "cycle"
    native = True

    units: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", check.number("units of W", self.units, 2, UNITS))

    @property
    def n_h(self) -> int:
        return self.units

    @property
    def alpha(self) -> np.ndarray:
        return np.array(1.0)

    @property
    def stored_bytes(self) -> int:
        return 0

    @property
    def form(self) -> Form:
        return Form(function="qornn_cycle")

    def product(self, h: np.ndarray) -> np.ndarray:
        moved = np.roll(h, 1, -1)
        moved[..., 0] *= -1
        return moved

    def row_sums(self) -> np.ndarray:
        return np.ones(self.n_h, np.int64)

    def fields(self, layout: Layout) -> Fields:
        return {"recurrent": "QORNN_CYCLE"}

    def rounds(self, unit: np.ndarray, largest: float, bits: int) -> bool:
        """Only where states on the grid of their inputs do not fit."""
        return bool(unit.ndim) or largest > 2 ** (bits - 1) * unit

    @property
    def additions(self) -> int:
        return 0

    @property
    def known(self) -> str:
        return "W: one signed cycle, nothing stored"
