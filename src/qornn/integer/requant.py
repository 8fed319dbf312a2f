"""From accumulators to states: the four forms of the requantization h_i' = min(round(a·c), 2^(k_a−1) − 1).

Scheme `paper` (one real factor c for all rows): a table, thresholds, or a multiplier and a shift.
Scheme `per-row`: the two sums meet at different real scales, so two multipliers and one shift a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np

from qornn.errors import ProgramError, SettingsError
from qornn.integer import check
from qornn.integer.parts import INT32

TABLE_LIMIT: Final = 2**24  # entries: 32 MB, past any device


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paper(check.Checked, ABC):
    """acc = 2^shift_W·Σ W_i h_i + 2^shift_U·Σ U_i x_i, in 32 bits; then one magnitude a ≥ 0 becomes a state."""

    shift_W: int
    shift_U: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift_W", check.number("shift of the recurrent sum", self.shift_W, 0, 30))
        object.__setattr__(self, "shift_U", check.number("shift of the input sum", self.shift_U, 0, 30))

    @abstractmethod
    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        """min(round(a·c), top) of a in 0..2^31−1.  # int64 -> int64"""

    @abstractmethod
    def first(self, top: int) -> np.ndarray:
        """The least a that becomes each state 1..top; 2^31 − 1 for what none does.  # (top,) int64"""

    @property
    @abstractmethod
    def stored_bytes(self) -> int:
        """Bytes it takes on a device."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Multiplier(Paper):
    """(a·multiplier + 2^(shift−1)) >> shift: the default on devices."""

    multiplier: int
    shift: int

    def __post_init__(self) -> None:
        Paper.__post_init__(self)
        object.__setattr__(self, "multiplier", check.number("multiplier", self.multiplier, 0, INT32[1]))
        object.__setattr__(self, "shift", check.number("shift", self.shift, 1, 61))

    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        return np.minimum((a * self.multiplier + (1 << (self.shift - 1))) >> self.shift, top)

    def first(self, top: int) -> np.ndarray:
        if not self.multiplier:
            return np.full(top, INT32[1])
        half = 1 << (self.shift - 1)
        least = [_ceil(Fraction((i << self.shift) - half, self.multiplier)) for i in range(1, top + 1)]
        return np.array([min(a, INT32[1]) for a in least])

    @property
    def stored_bytes(self) -> int:
        return 5


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thresholds(Paper):
    """The number of thresholds that a reaches: values[i] is the least a that rounds to i + 1."""

    values: np.ndarray  # (top,) int32

    def __post_init__(self) -> None:
        Paper.__post_init__(self)
        values = check.integers("thresholds", self.values, np.int32, (None,), 0, INT32[1])
        if (np.diff(values) < 0).any():
            raise ProgramError("thresholds must not decrease")
        object.__setattr__(self, "values", values)

    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        return np.searchsorted(self.values, a, side="right").astype(np.int64)

    def first(self, top: int) -> np.ndarray:
        return self.values.astype(np.int64)

    @property
    def stored_bytes(self) -> int:
        return self.values.nbytes


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(Paper):
    """The paper's direct table: values[a], and the last entry for every larger a."""

    values: np.ndarray  # int16

    def __post_init__(self) -> None:
        Paper.__post_init__(self)
        object.__setattr__(self, "values", check.integers("table", self.values, np.int16, (None,), 0, 2**15 - 1))

    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        return self.values[np.minimum(a, len(self.values) - 1)].astype(np.int64)

    def first(self, top: int) -> np.ndarray:
        found = np.searchsorted(self.values, np.arange(1, top + 1))
        return np.where(found < len(self.values), found, INT32[1])

    @property
    def stored_bytes(self) -> int:
        return self.values.nbytes


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerRow(check.Checked):
    """v = M_W·Σ W_i h_i + M_U·Σ U_i x_i (+ M_I·h_i[j]) in 64 bits, then (a + 2^(shift−1)) >> shift, row by row."""

    M_W: np.ndarray  # (n_h,) int32
    M_U: np.ndarray  # (n_h,) int32
    shift: np.ndarray  # (n_h,) uint8
    M_I: np.ndarray | None = None  # (n_h,) int32: the identity offset

    def __post_init__(self) -> None:
        shift = check.integers("shifts", self.shift, np.uint8, (None,), 1, 61)
        object.__setattr__(self, "shift", shift)
        for name in ("M_W", "M_U") if self.M_I is None else ("M_W", "M_U", "M_I"):
            array = check.integers(name, getattr(self, name), np.int32, shift.shape, 0, INT32[1])
            object.__setattr__(self, name, array)

    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        """min((a + half) >> shift, top), the last axis along the rows.  # int64 -> int64"""
        shift = self.shift.astype(np.int64)
        return np.minimum((a + (1 << (shift - 1))) >> shift, top)

    @property
    def alike(self) -> bool:
        """Whether all rows have the same multipliers and shift, as with one scale a matrix; stored once then."""
        arrays = (self.M_W, self.M_U, self.shift) if self.M_I is None else (self.M_W, self.M_U, self.M_I, self.shift)
        return all((array == array[0]).all() for array in arrays)

    @property
    def stored_bytes(self) -> int:
        rows = 1 if self.alike else len(self.shift)
        return rows * (9 if self.M_I is None else 13)


Requant = Paper | PerRow


def refuse_table(requant: Requant, target: str) -> None:
    """A table is for comparison with the paper: numpy alone runs it."""
    if isinstance(requant, Table):
        raise ProgramError(
            f'{target} knows no requantization by a table; lower again with requant="thresholds" or "multiplier" '
            "(--requant thresholds)"
        )


def make_multiplier(c: Fraction, **shifts: int) -> Multiplier:
    """c as multiplier·2^−shift, the multiplier below 2^31 with as many bits as fit."""
    shift = _largest_shift([c], 61)
    if shift < 1:
        raise ProgramError(f"the requantization factor {float(c):.3g} is too large for a 32-bit multiplier")
    return Multiplier(multiplier=_round(c * 2**shift), shift=shift, **shifts)


def make_thresholds(c: Fraction, top: int, **shifts: int) -> Thresholds:
    """a·c ≥ i − 1/2 ⟺ a ≥ (2i − 1)/(2c): exact by construction. What no 32-bit a reaches is never reached."""
    values = [min(_ceil(Fraction(2 * i - 1, 2) / c), INT32[1]) for i in range(1, top + 1)]
    return Thresholds(values=np.array(values), **shifts)


def make_table(c: Fraction, top: int, **shifts: int) -> Table:
    """Every a from 0 to the first that saturates."""
    values = make_thresholds(c, top, **shifts).values.astype(np.int64)
    if values[-1] >= TABLE_LIMIT:
        raise SettingsError(
            f"a direct table would have {values[-1] + 1} entries of two bytes; "
            'use requant="thresholds" or "multiplier", or fewer activation bits'
        )
    return Table(values=np.searchsorted(values, np.arange(values[-1] + 1), side="right"), **shifts)


def differing(requant: Paper, c: Fraction, top: int) -> tuple[int, int]:
    """How many accumulator values up to saturation are not rounded exactly, and how many there are.

    Both roundings only rise, so they differ on the values between the first that each takes to a state: exact for
    every value without walking through all of them.
    """
    exact = make_thresholds(c, top, shift_W=0, shift_U=0).first(top)
    last = min(int(exact[-1]), INT32[1] - 1)  # INT32[1] stands for what is never reached
    ends = np.sort([requant.first(top), exact], axis=0).clip(max=last + 1)
    covered = np.concatenate([[0], np.maximum.accumulate(ends[1])[:-1]])
    return int(np.maximum(ends[1] - np.maximum(ends[0], covered), 0).sum()), last + 1


def make_per_row(
    c_W: np.ndarray, c_U: np.ndarray, c_b: np.ndarray, sums: np.ndarray, *, identity: bool, top: int
) -> tuple[PerRow, np.ndarray, np.ndarray]:
    """Multipliers, biases B, and the error bound of each row in units of the last state bit.

    Each row takes the largest shift with every multiplier below 2^31 and |v| + |B| below 2^62. Rounding a multiplier
    errs by at most 1/2, so v·2^−s by at most 2^−(s+1)·(Σ|W_i| h_max + Σ|U_i| x_max + the bias's 1).
    `sums` are those two sums, a column each.
    """
    M_W, M_U, M_I, shifts, biases, errors = [], [], [], [], [], []
    for row in range(len(c_W)):
        w, u, b = Fraction(c_W[row]), Fraction(c_U[row]), Fraction(c_b[row])
        sum_W, sum_U = (int(v) for v in sums[row])
        one = [Fraction(1)] if identity else []
        shift = _largest_shift([w, u, *one], 61)
        largest = w * sum_W + u * sum_U + abs(b) + (top if identity else 0)
        spare = sum_W + sum_U + top + 1  # what rounding the multipliers up can add
        while shift >= 1 and largest * 2**shift + spare >= 2**62:
            shift -= 1
        if shift < 1:
            raise ProgramError(
                f"row {row}: the input's scale is {float(u):.3g} units of the state a unit, too coarse for a 32-bit "
                "multiplier; use more input bits, fewer activation bits or a larger alpha_h"
            )
        scale = 2**shift
        M_W.append(_round(w * scale))
        M_U.append(_round(u * scale))
        M_I.append(scale)
        shifts.append(shift)
        biases.append(_round(b * scale))
        errors.append(float(Fraction(sum_W + sum_U + 1, 2 * scale)))
    requant = PerRow(
        M_W=np.array(M_W), M_U=np.array(M_U), M_I=np.array(M_I) if identity else None, shift=np.array(shifts)
    )
    return requant, np.array(biases, np.int64), np.array(errors)


def _largest_shift(factors: list[Fraction], cap: int) -> int:
    """The largest s ≤ cap with every round(c·2^s) < 2^31 (it may be negative)."""
    shift = cap
    for c in factors:
        while _round(c * Fraction(2) ** shift) >= 2**31:
            shift -= 1
    return shift


def _round(x: Fraction) -> int:
    """Nearest integer, ties away from zero, exactly."""
    return (1 if x >= 0 else -1) * int(abs(x) + Fraction(1, 2))


def _ceil(x: Fraction) -> int:
    return -(-x.numerator // x.denominator)
