"""Building the input part: which integers x_i stand for the raw samples of a device."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from qornn.bits import INPUT_BITS, lossless
from qornn.errors import SettingsError
from qornn.integer.inputs.samples import Samples
from qornn.integer.rounding import round_half_away

DEFAULT_BITS: Final = 12  # where raw samples have more


def make_samples(
    low: int,
    high: int,
    scale: float,
    offset: int = 0,
    *,
    channels: int,
    bits: int | None = None,
    alpha: float | None = None,
    mean: np.ndarray | None = None,
    std: np.ndarray | None = None,
    window: int = 1,
    narrow: bool = False,
) -> Samples:
    """Raw samples in low..high with x = scale·(raw − offset), or (scale·raw − mean)/std, on `bits` bits.

    A step reads `window` samples of so many channels. With `narrow` the multipliers are short enough for 32 bits.

    By default x_i is the raw sample itself, lossless, or its upper bits: MNIST's 0..255 with x = raw/255 gives
    k_i = 9 and α_i = 256/255. With `alpha` the grid is α_i/2^(k_i−1), as the paper's α_i = 1 is (not lossless then).
    """
    whole = lossless(low, high, offset)
    bits = min(whole, DEFAULT_BITS) if bits is None else bits
    if bits not in INPUT_BITS:
        raise SettingsError(f"input_bits must be in {INPUT_BITS[0]}..{INPUT_BITS[-1]}, got {bits!r}")
    for name, value in (("scale", scale), ("input_alpha", alpha)):
        if value is not None and not 0 < value < math.inf:
            raise SettingsError(f"{name} must be positive and finite, got {value}")
    mean = np.full(channels, scale * offset) if mean is None else np.asarray(mean, np.float64)
    std = np.ones(channels) if std is None else np.asarray(std, np.float64)
    if (mean != scale * offset).any() or (std != 1).any():
        ends = np.abs((np.array([[low], [high]]) * scale - mean) / std)
        alpha = float(ends.max()) if alpha is None else alpha
    drop = max(whole - bits, 0)
    if alpha is None:
        plain = np.full(channels, 1)
        alpha = scale * 2**drop * 2 ** (bits - 1)
        zero, multiplier, shift = plain * offset, plain, plain * drop
    else:
        unit = alpha / 2 ** (bits - 1)
        ratios = [Fraction(scale) / Fraction(float(s)) / Fraction(unit) for s in std]
        zero = round_half_away(mean / scale)
        fixed = _narrow_fixed_point if narrow else _fixed_point
        pairs = [fixed(ratio, int(max(high - o, o - low, 1))) for ratio, o in zip(ratios, zero, strict=True)]
        multiplier, shift = (np.array(column) for column in zip(*pairs, strict=True))
    return Samples(
        bits=bits,
        alpha=alpha,
        low=low,
        high=high,
        offset=zero,
        multiplier=multiplier,
        shift=shift,
        scale=scale,
        window=window,
    )


def _fixed_point(ratio: Fraction, largest: int) -> tuple[int, int]:
    """ratio ≈ multiplier/2^shift with the multiplier below 2^31 and its product with `largest` below 2^61."""
    shift = 45
    while shift > 0 and (ratio * 2**shift >= 2**30 or ratio * 2**shift * largest >= 2**61):
        shift -= 1
    multiplier = _nearest(ratio * 2**shift)
    if not 0 < multiplier < 2**31:
        raise SettingsError(
            f"one raw unit is {float(ratio):.3g} input units, too large for a 32-bit multiplier; change input_bits"
        )
    return multiplier, shift


def _narrow_fixed_point(ratio: Fraction, largest: int) -> tuple[int, int]:
    """The same with every product, and what rounding adds to it, below 2^31: at least 15 bits where raw ones are 16."""
    shift = 31
    while shift > 0 and _nearest(ratio * 2**shift) * largest + (1 << shift >> 1) >= 2**31:
        shift -= 1
    multiplier = _nearest(ratio * 2**shift)
    if not multiplier or multiplier * largest + (1 << shift >> 1) >= 2**31:
        raise SettingsError(
            f"one raw unit is {float(ratio):.3g} input units and samples reach {largest}, too large for 32-bit "
            "products; change input_bits, or subtract a constant from the samples first"
        )
    return multiplier, shift


def _nearest(x: Fraction) -> int:
    return int(x + Fraction(1, 2))
