"""What a device reads: samples as int16, and how the network's inputs are made of them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from qornn.bits import INPUT_BITS
from qornn.errors import SettingsError
from qornn.estimators.standard import INT16, Standard
from qornn.integer.inputs import Samples, make_samples
from qornn.integer.inputs.samples import RAW_SCALES
from qornn.lowering.calibrate import Calibration

HEADROOM = 1.25  # inputs may be so many times larger than in training before they saturate
COARSE = 1 / 16  # of a channel's deviation: a raw unit above this loses what the network has learned to see


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What lowering must know of data: how large samples get, and what the states do."""

    samples: np.ndarray  # (C,) largest |sample|
    x: float  # largest |x|
    calibration: Calibration


def raw_samples(standard: Standard, seen: Seen, bits: int) -> tuple[Samples, np.ndarray]:
    """The input part, raw = sample/raw_scale: 1 for raw integers, else the power of two that fits int16.

    Every channel is normalised alike, wherever in a step its sample lies.
    """
    channels = len(standard.mean) // standard.window
    mean, std = standard.mean[:channels], standard.std[:channels]
    largest = seen.samples.reshape(standard.window, channels).max(0)
    # std never exceeds the samples it is of; it counts where a channel is 0 throughout.
    needed = HEADROOM * np.maximum(largest, std) / INT16[1]
    raw_scale = np.ones(len(mean)) if standard.raw else np.exp2(np.ceil(np.log2(needed)))
    past = np.flatnonzero((raw_scale < RAW_SCALES[0]) | (raw_scale > RAW_SCALES[1]))
    if len(past):
        c = int(past[0])
        raise SettingsError(
            f"samples of channel {c} reach {largest[c]:.3g}, past what a float32 on a device holds; rescale X "
            "before fit"
        )
    coarse = np.flatnonzero((raw_scale > COARSE * std) & (not standard.raw))
    if len(coarse):
        c = int(coarse[0])
        warnings.warn(
            f"channel {c} varies by {std[c]:.3g} about {mean[c]:.3g}: int16 samples of {raw_scale[c]:.3g} a unit "
            "are coarse; subtract a constant from it before fit and on the device",
            stacklevel=4,
        )
    alpha = max(HEADROOM * seen.x, 1e-6)
    bits = _input_bits(len(standard.mean), bits)
    parts = [
        make_samples(*INT16, scale, channels=1, bits=bits, alpha=alpha, mean=mean[[c]], std=std[[c]])
        for c, scale in enumerate(raw_scale)
    ]
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("offset", "multiplier", "shift")}
    samples = Samples(
        bits=bits,
        alpha=alpha,
        low=INT16[0],
        high=INT16[1],
        scale=float(raw_scale[0]),
        raw_scale=raw_scale,
        window=standard.window,
        **columns,
    )
    return samples, samples.along(raw_scale)


def _input_bits(channels: int, bits: int) -> int:
    """As many as keep Σ U_i x_i within 32 bits: 16 but for hundreds of channels."""
    return max(INPUT_BITS[0], min(INPUT_BITS[-1], 32 - bits - math.ceil(math.log2(channels + 1))))
