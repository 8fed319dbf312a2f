"""What samples remember: the last raw sample of each channel, to subtract and to hold where one is missing.

It is kept as raw ^ −2^15, so that 0 stands for "none yet" and memory begins at zero, like every other state. −2^15
itself is therefore never a sample: where samples are held it means that one is missing.
"""

from __future__ import annotations

from typing import Final

import numpy as np

MISSING: Final = -(2**15)
LEAST: Final = MISSING + 1  # of a sample that can be remembered
MANTISSA: Final = 2  # bits below the leading one that a companded difference keeps
COMPANDED_TOP: Final = 67  # of 2^16 − 1, past every difference of two samples
COMPANDED_BITS: Final = 8  # that hold it


def companded(differences: np.ndarray) -> np.ndarray:
    """sign(d)·ilog|d|, a logarithm in straight pieces: ilog(0) = 0, and of v with the leading bit e

        ilog(v) = ((e + 1) « m) | ((v « m » e) & (2^m − 1)),  m = 2

    >>> companded(np.array([0, 1, 2, 3, 4, -5, 65534])).tolist()
    [0, 4, 8, 10, 12, -13, 67]
    """
    v = np.abs(differences.astype(np.int64))
    e = np.maximum(np.frexp(v.astype(np.float64))[1].astype(np.int64) - 1, 0)  # exact: below 2^53
    log = ((e + 1) << MANTISSA) | ((v << MANTISSA >> e) & (2**MANTISSA - 1))
    return np.sign(differences) * np.where(v > 0, log, 0)


def remembered(kept: np.ndarray, samples: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples (B, S, C) one after another: what is kept at their end, the samples held, their companded differences.

    A missing sample is that before it, or stays MISSING where there was none. The difference to nothing is 0. Memory
    outside the declared range, which only an outsider can write, is clamped to it.
    """
    before = np.where(kept == 0, MISSING, (kept ^ MISSING).clip(low, high))
    known = np.concatenate([before[:, None], samples], 1).astype(np.int64)
    missing = known == MISSING
    if missing[:, 1:].any():
        rows = np.where(missing, 0, np.arange(known.shape[1])[:, None])
        known = np.take_along_axis(known, np.maximum.accumulate(rows, 1), 1)
    differences = np.where(known[:, :-1] == MISSING, 0, np.diff(known, axis=1))
    return known[:, -1] ^ MISSING, known[:, 1:], companded(differences)
