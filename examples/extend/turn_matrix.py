"""The same W in integers: what it does to states, and which function of C does it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from qornn.errors import ProgramError
from qornn.integer import check
from qornn.integer.engine.structs import FOLDERS
from qornn.integer.layout import Fields, Layout
from qornn.integer.matrices import MATRICES, Form
from qornn.integer.matrices.structured import UNITS, Structured


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn(Structured):
    """(a, b) ← (−b, a) for each pair of units."""

    kind = "turn"

    units: int

    def __post_init__(self) -> None:
        if check.number("units of W", self.units, 2, UNITS) % 2:
            raise ProgramError(f"turns take pairs of units, got {self.units}")

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
        return Form(function="qornn_turn", header="qornn_turn.h")

    def product(self, h: np.ndarray) -> np.ndarray:
        turned = h.reshape(*h.shape[:-1], -1, 2)[..., ::-1] * np.array([-1, 1])  # (B, n_h/2, 2)
        return turned.reshape(h.shape)

    def row_sums(self) -> np.ndarray:
        return np.ones(self.n_h, np.int64)

    def fields(self, layout: Layout) -> Fields:
        return {}

    def rounds(self, unit: np.ndarray, largest: float, bits: int) -> bool:
        return bool(unit.ndim) or largest > 2 ** (bits - 1) * unit

    @property
    def additions(self) -> int:
        return 0

    @property
    def known(self) -> str:
        return "W: turns of 90 degrees, nothing stored"


MATRICES[Turn.kind] = Turn
FOLDERS.append(Path(__file__).parent)  # where qornn_turn.h lies; one of the package lies in runtime/
