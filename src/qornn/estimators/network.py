"""A trained network as the estimators hold it: raw sequences in, outputs out, in float64 or in integers."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from qornn.errors import SettingsError
from qornn.estimators.raw import COARSE, Seen, raw_samples
from qornn.estimators.runner import Runner
from qornn.estimators.standard import INT16, Standard
from qornn.integer.program import IntegerProgram
from qornn.lowering.calibrate import calibrate
from qornn.lowering.check import FLOAT32
from qornn.lowering.lower import lower
from qornn.model import OrthogonalRNN
from qornn.tasks.arrays import Sequences
from qornn.tasks.base import Batch

CHUNK = 256  # sequences at once
SMALLEST = 2.0**-100  # of a readout's largest weight: float32 keeps its bits down to 2^-126


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

    def runner(self) -> Runner:
        """The network in float64, as it is now."""
        return Runner(self.model, self.scale, self.shift)

    def outputs(self, sequences: Sequences) -> np.ndarray:
        """In float64, so that an answer does not depend on the sequences beside it.  # (N, n_o)"""
        runner, found = self.runner(), []
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
        steps = sequences.x.shape[1] if sequences.lengths is None else sequences.lengths
        return program.readout.values(y, program.readout.counts(steps)).astype(np.float64)

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
        inputs, raw_scale = raw_samples(self.standard, seen, self.model.recurrence.bits or 8)
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


def _batch(part: Sequences) -> Batch:
    lengths = None if part.lengths is None else torch.from_numpy(part.lengths)
    return Batch(torch.from_numpy(part.x.astype(np.float32)), torch.zeros(len(part)), lengths)
