"""Recurrent matrices that are not stored: orthogonal exactly, made of signs and shifts.

`product` is the law of each, by additions; `written_out` is the same matrix entry by entry, to compare with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from qornn import structure
from qornn.errors import SettingsError
from qornn.integer import check
from qornn.integer.matrix import Recurrent, packed_bytes

UNITS = 2**16  # the widest state


class Structured(Recurrent):
    """W = alpha·integers: entries have one bit, or few, and need no storage."""

    __slots__ = ()

    @property
    def bits(self) -> int:
        return 1

    @property
    def identity(self) -> bool:
        return False

    def written_out(self) -> np.ndarray:
        return self.product(np.eye(self.n_h, dtype=np.int64)).T


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hadamard(Structured):
    """diag(signs)·P·(I ⊗ S)/√block, S of size block: one block and no permutation P when block = n_h."""

    kind = "hadamard"
    signs: np.ndarray  # (n_h,) int8, ±1
    block: int

    def __post_init__(self) -> None:
        _check_signs(self)
        n = len(self.signs)
        object.__setattr__(self, "block", check.number("block of W", self.block, 2, n))
        _as_program_error(structure.check_power, self.block, 2, "the block of W")
        _as_program_error(structure.check_block, n, self.block)

    @property
    def n_h(self) -> int:
        return len(self.signs)

    @property
    def alpha(self) -> np.ndarray:
        return np.array(1 / math.sqrt(self.block))

    @property
    def stored_bytes(self) -> int:
        return packed_bytes(self.n_h, 1)

    def product(self, h: np.ndarray) -> np.ndarray:
        mixed = structure.transform(h.reshape(-1, self.n_h // self.block, self.block)).reshape(h.shape)
        if self.block < self.n_h:
            mixed = mixed[..., structure.transposition(self.n_h, self.block)]
        return mixed * self.signs

    def row_sums(self) -> np.ndarray:
        """Also of every partial sum of the transform in place: log2(block) bits more than a state."""
        return np.full(self.n_h, self.block, np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cycle(Structured):
    """h_i ← h_{i−1}, and what comes round from the last unit with its sign turned: nothing is ever rounded."""

    kind = "cycle"
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

    def product(self, h: np.ndarray) -> np.ndarray:
        moved = np.roll(h, 1, -1)
        moved[..., 0] *= -1
        return moved

    def row_sums(self) -> np.ndarray:
        return np.ones(self.n_h, np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Delay(Structured):
    """Delay lines of different lengths, their outputs mixed by diag(signs)·S/√m into their inputs.

    Entries are in units of 1/√m: √m along a line, so that all rows share one alpha.
    """

    kind = "delay"
    units: int
    signs: np.ndarray  # (m,) int8, ±1; m a power of four, so that √m is whole

    def __post_init__(self) -> None:
        _check_signs(self)
        object.__setattr__(self, "units", check.number("units of W", self.units, 2, UNITS))
        _as_program_error(structure.check_power, len(self.signs), 4, "the number of delay lines")
        _as_program_error(structure.line_starts, self.units, len(self.signs))

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


STRUCTURED: dict[str, type[Structured]] = {cls.kind: cls for cls in (Hadamard, Cycle, Delay)}


def _check_signs(W: Hadamard | Delay) -> None:
    signs = check.integers("signs of W", W.signs, np.int8, (None,), -1, 1)
    if not signs.all():
        raise check.ProgramError("the signs of W are +1 and −1, got 0")
    object.__setattr__(W, "signs", signs)


def _as_program_error(function, *arguments):  # type: ignore[no-untyped-def]
    try:
        return function(*arguments)
    except SettingsError as error:
        raise check.ProgramError(str(error)) from error
