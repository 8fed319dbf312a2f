"""What a device reads: samples as int16, and how the network's inputs are made of them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from qornn.bits import INPUT_BITS
from qornn.errors import SettingsError
from qornn.estimators.standard import INT16, Standard, largest
from qornn.integer.inputs import Samples, make_samples
from qornn.integer.inputs.memory import LEAST
from qornn.integer.inputs.samples import RAW_SCALES
from qornn.lowering.calibrate import Calibration
from qornn.model.entry import best_step
from qornn.tasks.arrays import Sequences

HEADROOM = 1.25  # inputs may be so many times larger than in training before they saturate
COARSE = 1 / 16  # of a channel's deviation: a raw unit above this loses what the network has learned to see


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What lowering must know of data: how large samples get, and what the states do."""

    samples: np.ndarray  # (C,) largest |sample|
    x: float  # largest |x|
    calibration: Calibration


def raw_samples(standard: Standard, seen: Seen, bits: int) -> tuple[Samples, np.ndarray]:
    """The input part of a single layer, and the raw unit of every number of a step.

    Every channel is normalised alike, wherever in a step its sample lies.
    """
    raw_scale = raw_units(standard, seen.samples)
    alpha = max(HEADROOM * seen.x, 1e-6)
    bits = _input_bits(len(standard.mean), bits)
    samples = _samples(standard, raw_scale, standard.channel(standard.std), bits=bits, alpha=alpha, narrow=False)
    return samples, samples.along(raw_scale)


def rounded_samples(
    standard: Standard, sequences: Sequences, bits: int, *, differences: bool = False, hold: bool = False
) -> tuple[Samples, float]:
    """The input part of a network that is trained on what a device reads, and the power-of-two step x/x_i.

    The step is that whose grid of so many bits is nearest to the samples, standardised; it may clip rare large ones.
    All products fit 32 bits. Companded differences are on the same grid; missing samples do not count.
    """
    raw_scale = raw_units(standard, largest(sequences.samples().astype(np.float64)))
    x = standard.apply(sequences).samples()
    known = np.append(x[~np.isnan(x)], 0.0) if hold else x  # 0 stands for what was never seen
    step = best_step(torch.from_numpy(known), bits)
    # Where one raw unit passes all of the grid, every other raw sample than the mean saturates, whatever the factor.
    std = np.maximum(standard.channel(standard.std), raw_scale / (step * 2**bits))
    samples = _samples(standard, raw_scale, std, bits=bits, alpha=step * 2 ** (bits - 1), narrow=True)
    if differences or hold:
        samples = replace(samples, low=LEAST, differences=differences, hold=hold)
    return samples, step


def raw_units(standard: Standard, reached: np.ndarray) -> np.ndarray:
    """raw = sample/unit, channel by channel: 1 for raw integers, else the power of two that fits int16.  # (channels,)

    `reached` are the |sample| of every number of a step. What a device could not hold is refused or told.
    """
    mean, std = standard.channel(standard.mean), standard.channel(standard.std)
    reached = reached.reshape(standard.window, len(mean)).max(0)
    # std never exceeds the samples it is of; it counts where a channel is 0 throughout.
    needed = HEADROOM * np.maximum(reached, std) / INT16[1]
    raw_scale = np.ones(len(mean)) if standard.raw else np.exp2(np.ceil(np.log2(needed)))
    past = np.flatnonzero((raw_scale < RAW_SCALES[0]) | (raw_scale > RAW_SCALES[1]))
    if len(past):
        c = int(past[0])
        raise SettingsError(
            f"samples of channel {c} reach {reached[c]:.3g}, more than a float32 on a device holds; rescale X "
            "before fit"
        )
    coarse = np.flatnonzero((raw_scale > COARSE * std) & (not standard.raw))
    if len(coarse):
        c = int(coarse[0])
        warnings.warn(
            f"channel {c} varies by {std[c]:.3g} about {mean[c]:.3g}: int16 samples of {raw_scale[c]:.3g} per unit "
            "are coarse; subtract a constant from it before fit and on the device",
            stacklevel=5,
        )
    return raw_scale


def _samples(
    standard: Standard, raw_scale: np.ndarray, std: np.ndarray, *, bits: int, alpha: float, narrow: bool
) -> Samples:
    mean = standard.channel(standard.mean)
    how: dict[str, Any] = {"channels": 1, "bits": bits, "alpha": alpha, "narrow": narrow}
    parts = [make_samples(*INT16, scale, mean=mean[[c]], std=std[[c]], **how) for c, scale in enumerate(raw_scale)]
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("offset", "multiplier", "shift")}
    return Samples(
        bits=bits,
        alpha=alpha,
        low=INT16[0],
        high=INT16[1],
        scale=float(raw_scale[0]),
        raw_scale=raw_scale,
        window=standard.window,
        **columns,
    )


def _input_bits(channels: int, bits: int) -> int:
    """As many as keep Σ U_i x_i within 32 bits: 16 but for hundreds of channels."""
    return max(INPUT_BITS[0], min(INPUT_BITS[-1], 32 - bits - math.ceil(math.log2(channels + 1))))
