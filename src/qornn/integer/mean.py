"""The mean of a layer's outputs over time, in 32 bits and for ever: Σh and T, halved together where T is steps_max."""

from __future__ import annotations

from typing import Any

import numpy as np

from qornn.errors import ProgramError
from qornn.integer import check
from qornn.integer.check import INT32


def add(sums: np.ndarray, counts: np.ndarray, h: np.ndarray, steps_max: int) -> tuple[np.ndarray, np.ndarray]:
    """Σh and T after one step more; halved before, where T is steps_max.  # (B, n_h) and (B,), int64"""
    full = counts == steps_max
    sums = np.where(full[:, None], (sums + 1) >> 1, sums) + h
    return sums, np.where(full, counts >> 1, counts) + 1


def count(steps: np.ndarray, steps_max: int) -> np.ndarray:
    """T after so many steps: it counts to steps_max, then from the half of it to steps_max again and again.

    >>> count(np.arange(10), 4).tolist()
    [0, 1, 2, 3, 4, 3, 4, 3, 4, 3]
    """
    half = steps_max // 2
    return np.where(steps <= steps_max, steps, half + 1 + (steps - steps_max - 1) % half).astype(np.int64)


def bounds(V: np.ndarray, bias: np.ndarray, top: int, steps_max: int) -> tuple[np.ndarray, ...]:
    """Bounds of Σh and of V Σh + T·bias, from Σ|V| and |bias| of each row.

    |Σh| ≤ top·T + 1 at every T: rounding adds at most 1/2 each time the sum is halved, and the next halving also halves
    what was added before.
    """
    largest = top * steps_max + 1
    return np.array([largest], object), V.astype(object) * largest + bias.astype(object) * steps_max


def most_steps(V: np.ndarray, bias: np.ndarray, top: int) -> int:
    """The largest steps_max whose sums fit 32 bits, for outputs up to `top`. 0 if there is none."""
    V, bias = np.abs(np.asarray(V, np.int64)).sum(1), np.abs(np.asarray(bias, np.int64))
    low, high = 0, 2**30  # halves of it: high never holds, since top·T itself would not
    while high - low > 1:
        middle = (low + high) // 2
        fits = all(int(bound.max()) <= INT32[1] for bound in bounds(V, bias, top, 2 * middle))
        low, high = (middle, high) if fits else (low, middle)
    return 2 * low


def check_steps_max(steps_max: Any, *, pooled: bool) -> int | None:
    """A mean has an even number of them, other readouts none."""
    if not pooled:
        if steps_max is not None:
            raise ProgramError(f"steps_max is only for the readout of a mean, got {steps_max!r}")
        return None
    steps_max = check.number("steps_max of a mean", steps_max, 2, INT32[1])
    if steps_max % 2:
        raise ProgramError(f"steps_max of a mean must be even, so that T can be halved, got {steps_max}")
    return steps_max
