"""The one rounding rule in numpy, for states, inputs, biases and V; weights were rounded by their quantizer."""

from __future__ import annotations

import numpy as np


def round_half_away(x: np.ndarray | float) -> np.ndarray:
    """Nearest integer, ties away from zero, as int64.

    >>> round_half_away(np.array([0.5, -0.5, 1.49, 0.49999999999999994])).tolist()
    [1, -1, 1, 0]
    """
    x = np.asarray(x, np.float64)
    whole = np.trunc(x)
    return (whole + np.sign(x) * (np.abs(x - whole) >= 0.5)).astype(np.int64)
