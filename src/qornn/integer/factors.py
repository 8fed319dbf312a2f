"""From real factors to the integers of a requantization, exactly: by fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from qornn.errors import ProgramError, SettingsError
from qornn.integer.check import INT32, ceil
from qornn.integer.requant import Multiplier, Paper, PerRow, Table, Thresholds

TABLE_LIMIT: Final = 2**24  # entries: 32 MB, past any device


def make_multiplier(c: Fraction, **shifts: int) -> Multiplier:
    """c as multiplier·2^−shift, the multiplier below 2^31 with as many bits as fit."""
    shift = _largest_shift([c], 61)
    if shift < 1:
        raise ProgramError(f"the requantization factor {float(c):.3g} is too large for a 32-bit multiplier")
    return Multiplier(multiplier=_round(c * 2**shift), shift=shift, **shifts)


def make_thresholds(c: Fraction, top: int, **shifts: int) -> Thresholds:
    """a·c ≥ i − 1/2 ⟺ a ≥ (2i − 1)/(2c): exact by construction. What no 32-bit a reaches is never reached."""
    values = [min(ceil(Fraction(2 * i - 1, 2) / c), INT32[1]) for i in range(1, top + 1)]
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
                f"row {row}: the input's scale is {float(u):.3g} units of the state per unit, too coarse for a 32-bit "
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
