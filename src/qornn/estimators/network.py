"""A trained network as the estimators hold it: raw sequences in, outputs out, in float64 or in integers."""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from qornn.errors import SettingsError
from qornn.estimators.input import INT16, is_raw, mean_and_deviation
from qornn.integer.inputs import make_samples
from qornn.integer.parts import INPUT_BITS, RAW_SCALES, Samples
from qornn.integer.program import IntegerProgram
from qornn.integer.rounding import round_half_away
from qornn.lowering.calibrate import Calibration, calibrate
from qornn.lowering.check import FLOAT32
from qornn.lowering.lower import lower
from qornn.model import OrthogonalRNN
from qornn.recurrence import recurrence
from qornn.tasks.arrays import Sequences
from qornn.tasks.base import Batch

CHUNK = 256  # sequences at once
HEADROOM = 1.25  # inputs may be so many times larger than in training before they saturate
SMALLEST = 2.0**-100  # of a readout's largest weight: float32 keeps its bits down to 2^-126
COARSE = 1 / 16  # of a channel's deviation: a raw unit above this loses what the network has learned to see


@dataclass(frozen=True, slots=True, eq=False)
class Standard:
    """x = (sample − mean)/std, channel by channel; a constant channel has std 1, or its own size where that is more."""

    mean: np.ndarray  # (C,) float64
    std: np.ndarray  # (C,) float64
    raw: bool  # samples are whole numbers in int16, what a device reads

    @classmethod
    def of(cls, sequences: Sequences) -> Standard:
        """Learned from the samples; of raw integers the mean is a whole number too, as devices subtract it."""
        samples = sequences.samples().astype(np.float64)
        (mean, std), raw = mean_and_deviation(samples), is_raw(sequences)
        with np.errstate(over="ignore"):  # refused in words
            finite = np.isfinite(std * std).all() and np.isfinite(samples - mean).all()
        if not finite:
            raise SettingsError(f"samples as large as {np.abs(samples).max():.3g} overflow float64; rescale X first")
        varies = std > 1e-12 * np.abs(mean)  # round-off of a constant is no deviation
        std = np.where(varies, std, np.maximum(np.abs(mean), 1.0))  # of its size: int16 then still holds it as mean
        return cls(round_half_away(mean).astype(np.float64) if raw else mean, std, raw)

    def wide(self, window: int) -> Standard:
        """The same for steps of `window` samples."""
        return Standard(np.tile(self.mean, window), np.tile(self.std, window), self.raw)

    def apply(self, sequences: Sequences) -> Sequences:
        """In float64; padding becomes whatever it becomes."""
        with np.errstate(over="ignore"):  # whoever answers refuses what is not finite
            return Sequences(((sequences.x - self.mean) / self.std).astype(np.float64, copy=False), sequences.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What lowering must know of data: how large samples get, and what the states do."""

    samples: np.ndarray  # (C,) largest |sample|
    x: float  # largest |x|
    calibration: Calibration


@dataclass(slots=True, eq=False)
class Network:
    """The model with its normalisation; y = scale·output + shift for values."""

    model: OrthogonalRNN
    standard: Standard
    scale: float = 1.0
    shift: float = 0.0
    seen: Seen | None = None  # of the training data
    program: IntegerProgram | None = None  # lowered on the training data, once somebody asks

    def work(self, steps: int) -> int:
        """Multiplications in that many steps, roughly."""
        return steps * sum(parameter.numel() for parameter in self.model.parameters())

    def outputs(self, sequences: Sequences) -> np.ndarray:
        """In float64, so that an answer does not depend on the sequences beside it.  # (N, n_o)"""
        runner, found = Runner(self), []
        for start in range(0, len(sequences), CHUNK):
            part = self.standard.apply(sequences.rows(slice(start, start + CHUNK)))
            found.append(runner.run(part.x, part.lengths)[0])
        y = np.concatenate(found)
        if not np.isfinite(y).all():
            largest = np.abs(sequences.samples().astype(np.float64)).max()
            raise SettingsError(f"answers overflow float64: X holds samples of {largest:.3g}, far beyond training's")
        return y

    def integer_outputs(self, program: IntegerProgram, sequences: Sequences) -> np.ndarray:
        """By the integer engine.  # (N, n_o)"""
        y = program.run(self.to_raw(program, sequences.x), sequences.lengths)
        return program.readout.values(y).astype(np.float64)

    def look(self, sequences: Sequences) -> Seen:
        """One pass over data before lowering."""
        x = self.standard.apply(sequences)
        parts = (x.rows(slice(start, start + CHUNK)) for start in range(0, len(x), CHUNK))
        seen = calibrate(self.model, (_batch(part) for part in parts), sequences=None, quiet=True)
        samples = np.abs(sequences.samples().astype(np.float64)).max(0)
        return Seen(samples, float(np.abs(x.samples()).max()), seen)

    def lower(self, seen: Seen | None, *, activation_bits: int = 12, **facts: Any) -> IntegerProgram:
        """The network and its normalisation as integers; `facts` are said in the program's provenance."""
        if seen is None:
            raise SettingsError("every state was zero in training; to_program(calibration=X) with data that varies")
        self._check_targets()
        inputs, raw_scale = self._samples(seen)
        if self.scale and np.spacing(np.float32(abs(self.shift))) > COARSE * self.scale:
            warnings.warn(
                f"values vary by {self.scale:.3g} about {self.shift:.3g}: answers of a device, in float32, are coarse; "
                "subtract a constant from y before fit, and add it on the device",
                stacklevel=5,
            )
        model = copy.deepcopy(self.model)
        with torch.no_grad():  # a device answers in the units of the targets
            model.V.mul_(self.scale)
            model.b_o.mul_(self.scale).add_(self.shift)
        # Classes are told by the largest output, whatever its unit; values are answered in their own.
        readout: Any = None if (self.scale, self.shift) == (1, 0) else "float"
        program = lower(
            model,
            calibration=seen.calibration,
            input=inputs,
            activation_bits=activation_bits,
            readout=readout,
            quiet=True,
        )
        normalised = {"mean": self.standard.mean.tolist(), "std": self.standard.std.tolist()}
        return program.with_provenance(input={"raw_scale": raw_scale.tolist(), **normalised}, **facts)

    def _check_targets(self) -> None:
        """A device answers in float32."""
        with torch.no_grad():
            V, b_o = (float(p.abs().max()) for p in (self.model.V, self.model.b_o))
        largest = max(V, b_o) * self.scale + abs(self.shift)
        if largest > FLOAT32:
            raise SettingsError(
                f"values near {largest:.3g} are past {FLOAT32:.3g}, the largest float32 of a device; divide y by a "
                "constant before fit, and multiply the answers by it"
            )
        if 0 < V * self.scale < SMALLEST:
            raise SettingsError(
                f"values vary by {self.scale:.3g}, too little for a float32 of a device; multiply y by a constant "
                "before fit, and divide the answers by it"
            )

    def to_raw(self, program: IntegerProgram, samples: np.ndarray) -> np.ndarray:
        """Samples as the whole numbers the program reads, as NAME_quantize in its C, saturated to int16.  # (..., C)"""
        return program.input.from_floats(samples).clip(*INT16).astype(np.int16)

    def _samples(self, seen: Seen) -> tuple[Samples, np.ndarray]:
        """The input part, raw = sample/raw_scale: 1 for raw integers, else the power of two that fits int16."""
        mean, std = self.standard.mean, self.standard.std
        # std never exceeds the samples it is of; it counts where a channel is 0 throughout.
        needed = HEADROOM * np.maximum(seen.samples, std) / INT16[1]
        raw_scale = np.ones(len(mean)) if self.standard.raw else np.exp2(np.ceil(np.log2(needed)))
        past = np.flatnonzero((raw_scale < RAW_SCALES[0]) | (raw_scale > RAW_SCALES[1]))
        if len(past):
            c = int(past[0])
            raise SettingsError(
                f"samples of channel {c} reach {seen.samples[c]:.3g}, past what a float32 on a device holds; rescale X "
                "before fit"
            )
        coarse = np.flatnonzero((raw_scale > COARSE * std) & (not self.standard.raw))
        if len(coarse):
            c = int(coarse[0])
            warnings.warn(
                f"channel {c} varies by {std[c]:.3g} about {mean[c]:.3g}: int16 samples of {raw_scale[c]:.3g} a unit "
                "are coarse; subtract a constant from it before fit and on the device",
                stacklevel=4,
            )
        alpha = max(HEADROOM * seen.x, 1e-6)
        bits = _input_bits(len(mean), self.model.recurrence.bits or 8)
        parts = [
            make_samples(*INT16, scale, channels=1, bits=bits, alpha=alpha, mean=mean[[c]], std=std[[c]])
            for c, scale in enumerate(raw_scale)
        ]
        columns = {
            name: np.concatenate([getattr(p, name) for p in parts]) for name in ("offset", "multiplier", "shift")
        }
        samples = Samples(
            bits=bits,
            alpha=alpha,
            low=INT16[0],
            high=INT16[1],
            scale=float(raw_scale[0]),
            raw_scale=raw_scale,
            **columns,
        )
        return samples, raw_scale


class Runner:
    """The float64 recurrence on the very weights that are lowered."""

    def __init__(self, network: Network) -> None:
        model, layer = network.model, network.model.recurrence
        with torch.no_grad():
            self.W_q, self.U_q = layer.W_q().double(), layer.U_q().double()
        b = layer.b if layer.modrelu is None else layer.modrelu.b
        self.b = None if b is None else b.double()
        self.V, self.b_o = (p.detach().double().numpy() for p in (model.V_q(), model.b_o))
        self.relu = model.readout_activation == "relu"
        self.activation, self.scale, self.shift = layer.activation, network.scale, network.shift

    def run(
        self, x: np.ndarray, lengths: np.ndarray | None = None, h: torch.Tensor | None = None
    ) -> tuple[np.ndarray, torch.Tensor]:
        """Outputs (B, n_o) and states (B, n_h) at the end of standardised x (B, T, C)."""
        h = torch.zeros(len(x), len(self.W_q), dtype=torch.float64) if h is None else h
        with torch.no_grad():
            ends = None if lengths is None else torch.from_numpy(lengths)
            _, h = recurrence(torch.from_numpy(x), self.W_q, self.U_q, self.b, h, ends, self.activation)
        return self.read(h.numpy()), h

    def read(self, h: np.ndarray) -> np.ndarray:
        """One output at a time: a product of matrices would round differently for other batches.  # (B, n_o)"""
        seen = np.maximum(h, 0) if self.relu else h
        y = np.stack([(seen * v).sum(1) for v in self.V], 1) + self.b_o
        return y * self.scale + self.shift


def _input_bits(channels: int, bits: int) -> int:
    """As many as keep Σ U_i x_i within 32 bits: 16 but for hundreds of channels."""
    return max(INPUT_BITS[0], min(INPUT_BITS[-1], 32 - bits - math.ceil(math.log2(channels + 1))))


def _batch(part: Sequences) -> Batch:
    lengths = None if part.lengths is None else torch.from_numpy(part.lengths)
    return Batch(torch.from_numpy(part.x.astype(np.float32)), torch.zeros(len(part)), lengths)
