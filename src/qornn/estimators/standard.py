"""Normalisation: every channel with mean 0 and deviation 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qornn.errors import SettingsError
from qornn.integer.rounding import round_half_away
from qornn.tasks.arrays import Sequences

INT16 = (-(2**15), 2**15 - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Standard:
    """x = (sample − mean)/std, channel by channel; a constant channel has std 1, or its own size where that is more."""

    mean: np.ndarray  # (C,) float64
    std: np.ndarray  # (C,) float64
    raw: bool  # samples are whole numbers in int16, what a device reads
    window: int = 1  # samples of a step: C is a multiple of it

    @classmethod
    def of(cls, sequences: Sequences) -> Standard:
        """Learned from the samples; of raw integers the mean is a whole number too, as devices subtract it."""
        samples = sequences.samples().astype(np.float64)
        (mean, std), raw = mean_and_deviation(samples), is_raw(sequences)
        with np.errstate(over="ignore"):  # refused in words
            finite = np.isfinite(std * std).all() and not np.isinf(samples - mean).any()
        if not finite:
            raise SettingsError(f"samples as large as {largest(samples).max():.3g} overflow float64; rescale X first")
        varies = std > 1e-12 * np.abs(mean)  # round-off of a constant is no deviation
        std = np.where(varies, std, np.maximum(np.abs(mean), 1.0))  # of its size: int16 then still holds it as mean
        return cls(round_half_away(mean).astype(np.float64) if raw else mean, std, raw)

    def wide(self, window: int) -> Standard:
        """The same for steps of `window` samples."""
        return Standard(np.tile(self.mean, window), np.tile(self.std, window), self.raw, window)

    def channel(self, steps: np.ndarray) -> np.ndarray:
        """From one value per number of a step to one value per channel.  # (C,) -> (channels,)"""
        return steps[: len(steps) // self.window]

    def apply(self, sequences: Sequences) -> Sequences:
        """In float64. Padding may become anything."""
        with np.errstate(over="ignore"):  # values that are not finite are refused later
            return Sequences(((sequences.x - self.mean) / self.std).astype(np.float64, copy=False), sequences.lengths)


def is_raw(sequences: Sequences) -> bool:
    """Whether these are whole numbers that a device reads as they are, in int16."""
    x = sequences.x
    return x.dtype.kind in "iub" and INT16[0] <= int(x.min()) and int(x.max()) <= INT16[1]


def mean_and_deviation(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each column in float64, of numbers of any size: squares of 1e-200 would vanish.  # (n, ...) -> two (...)

    NaN is left out; of a column of nothing else both are 0.
    """
    samples = samples.astype(np.float64)
    unit = np.ldexp(1.0, np.frexp(largest(samples))[1] - 1)  # a power of two: nothing is rounded
    scaled = samples / unit
    with np.errstate(over="ignore"):  # the caller refuses what is not finite
        if not np.isnan(scaled).any():
            return scaled.mean(0) * unit, scaled.std(0) * unit
        known = ~np.isnan(scaled)
        count = np.maximum(known.sum(0), 1)
        mean = np.where(known, scaled, 0).sum(0) / count
        return mean * unit, np.sqrt(np.square(np.where(known, scaled - mean, 0)).sum(0) / count) * unit


def largest(samples: np.ndarray) -> np.ndarray:
    """max|sample| of each column but for those that are missing.  # (n, ...) -> (...)"""
    return np.fmax.reduce(np.abs(samples), 0, initial=0.0)
