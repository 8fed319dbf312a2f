"""Delay lines, mixed where they end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from qornn import structure
from qornn.integer import check
from qornn.integer.layout import Fields, Layout, pack_signs
from qornn.integer.matrices.base import Form, as_program_error, packed_bytes
from qornn.integer.matrices.structured import UNITS, Structured, check_signs
from qornn.integer.packing import SIGNS

if TYPE_CHECKING:
    from qornn.integer.requant import Requant


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Delay(Structured):
    """Delay lines of different lengths, their outputs mixed by diag(signs)·S/√m into their inputs.

    Entries are in units of 1/√m: √m along a line, so that all rows share one alpha.
    """

    kind = "delay"
    native = True
    arrays: ClassVar = {"signs": np.int8}
    packed: ClassVar = {"signs": SIGNS}

    units: int
    signs: np.ndarray  # (m,) int8, ±1; m a power of four, so that √m is whole

    def __post_init__(self) -> None:
        check_signs(self)
        object.__setattr__(self, "units", check.number("units of W", self.units, 2, UNITS))
        as_program_error(structure.check_power, len(self.signs), 4, "the number of delay lines")
        as_program_error(structure.line_starts, self.units, len(self.signs))

    @property
    def n_h(self) -> int:
        return self.units

    @property
    def alpha(self) -> np.ndarray:
        return np.array(1 / math.sqrt(len(self.signs)))

    @property
    def stored_bytes(self) -> int:
        return packed_bytes(len(self.signs), 1)

    @property
    def form(self) -> Form:
        return Form(function="qornn_delay", sums=len(self.signs))

    @property
    def driven(self) -> np.ndarray:
        return structure.line_starts(self.units, len(self.signs))[:-1]

    def product(self, h: np.ndarray) -> np.ndarray:
        edges = structure.line_starts(self.units, len(self.signs))
        moved = math.isqrt(len(self.signs)) * np.roll(h, 1, -1)
        moved[..., edges[:-1]] = structure.transform(h[..., edges[1:] - 1]) * self.signs
        return moved

    def row_sums(self) -> np.ndarray:
        sums = np.full(self.n_h, math.isqrt(len(self.signs)), np.int64)
        sums[self.driven] = len(self.signs)
        return sums

    def keeps(self, requant: Requant, top: int) -> bool:
        """The requantization takes √m·h back to h, for every h along a line."""
        h = np.arange(top + 1)  # signs are carried over
        still = np.delete(np.arange(self.n_h), self.driven)
        return bool((requant.of_recurrent(h * math.isqrt(len(self.signs)), still, top) == h).all())

    def fields(self, layout: Layout) -> Fields:
        return {"recurrent": "QORNN_DELAY", "block": len(self.signs), "signs": pack_signs(self.signs)}

    @property
    def additions(self) -> int:
        return len(self.signs) * (len(self.signs).bit_length() - 1)

    @property
    def known(self) -> str:
        signs = pack_signs(self.signs).nbytes
        return f"W: {len(self.signs)} delay lines mixed by a signed Hadamard, {signs} bytes of signs"
