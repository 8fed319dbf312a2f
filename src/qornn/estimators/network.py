"""A trained network as the estimators hold it: raw sequences in, outputs out, in floating point or in integers."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from qornn.errors import SettingsError
from qornn.estimators.raw import COARSE
from qornn.estimators.standard import Standard
from qornn.integer.program import IntegerProgram
from qornn.integer.readout import FLOAT32
from qornn.model import OrthogonalRNN, Stack
from qornn.tasks.arrays import Sequences
from qornn.tasks.base import Batch

CHUNK = 256  # sequences at once
SMALLEST = 2.0**-100  # of a readout's largest weight: float32 keeps its bits down to 2^-126


class Runner(Protocol):
    """The network in floating point, as it was when this was made."""

    def run(self, x: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        """Outputs (B, n_o) at the end of the network's inputs x (B, T, C)."""

    def nothing(self) -> np.ndarray:
        """Outputs before the first step.  # (1, n_o)"""

    def step(self, x: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        """Outputs (1, n_o) and the state after one step x (1, 1, C); the state before the first is None."""


@dataclass(slots=True, eq=False)
class Network(ABC):
    """The model with its normalisation; y = scale·output + shift for values."""

    model: OrthogonalRNN | Stack
    standard: Standard
    scale: float = 1.0
    shift: float = 0.0
    seen: Any = None  # what lowering must know of the training data
    program: IntegerProgram | None = None  # lowered on the training data, once somebody asks

    @abstractmethod
    def inputs(self, sequences: Sequences) -> Sequences:
        """What the model reads in place of raw sequences of windows."""

    @property
    def holds_missing(self) -> bool:
        """Whether samples may be NaN."""
        return False

    def step_inputs(self, x: np.ndarray, kept: Any) -> tuple[np.ndarray, Any]:
        """The same of one step x (B, 1, C) of a stream, and what is kept for the next; None before the first."""
        return self.inputs(Sequences(x, None)).x, kept

    @abstractmethod
    def runner(self, *, stream: bool = False) -> Runner:
        """The network in floating point, as it is now."""

    @abstractmethod
    def look(self, sequences: Sequences) -> Any:
        """One pass over data before lowering; None where nothing is to be seen."""

    @abstractmethod
    def activation_bits(self, asked: int | None) -> int:
        """Bits of the states in integers, where so many are asked for."""

    @abstractmethod
    def lower(self, seen: Any, *, activation_bits: int, **facts: Any) -> IntegerProgram:
        """The network and its normalisation as integers. `facts` are stored in the program's provenance."""

    def work(self, steps: int) -> int:
        """Multiplications in that many steps, roughly."""
        return steps * sum(parameter.numel() for parameter in self.model.parameters())

    def outputs(self, sequences: Sequences) -> np.ndarray:
        """In floating point; an answer does not depend on the sequences beside it.  # (N, n_o)"""
        runner = self.runner()
        y = np.concatenate([runner.run(part.x, part.lengths) for part in map(self.inputs, chunks(sequences))])
        if not np.isfinite(y).all():
            largest = np.nanmax(np.abs(sequences.samples().astype(np.float64)))
            raise SettingsError(
                f"answers overflow float64: X holds samples of {largest:.3g}, far larger than in training"
            )
        return y

    def integer_outputs(self, program: IntegerProgram, sequences: Sequences) -> np.ndarray:
        """By the integer engine.  # (N, n_o)"""
        y = program.run(self.to_raw(program, sequences.x), sequences.lengths)
        steps = np.full(len(y), sequences.x.shape[1]) if sequences.lengths is None else sequences.lengths
        return program.readout.values(y, program.readout.counts(steps)).astype(np.float64)

    def to_raw(self, program: IntegerProgram, samples: np.ndarray) -> np.ndarray:
        """Samples as the whole numbers the program reads, as NAME_quantize in its C, saturated.  # (..., C)"""
        return program.input.clip(program.input.from_floats(samples)).astype(np.int16)

    def check_targets(self) -> None:
        """A device answers in float32: refuse values that it cannot hold, warn if it can hardly distinguish them."""
        with torch.no_grad():
            V, b_o = (float(p.abs().max()) for p in (self.model.V, self.model.b_o))
        largest = max(V, b_o) * self.scale + abs(self.shift)
        if largest > FLOAT32:
            raise SettingsError(
                f"values near {largest:.3g} exceed {FLOAT32:.3g}, the largest float32 of a device; divide y by a "
                "constant before fit, and multiply the answers by it"
            )
        if 0 < V * self.scale < SMALLEST:
            raise SettingsError(
                f"values vary by {self.scale:.3g}, too little for a float32 of a device; multiply y by a constant "
                "before fit, and divide the answers by it"
            )
        if self.scale and np.spacing(np.float32(abs(self.shift))) > COARSE * self.scale:
            warnings.warn(
                f"values vary by {self.scale:.3g} about {self.shift:.3g}: answers of a device, in float32, are coarse; "
                "subtract a constant from y before fit, and add it on the device",
                stacklevel=6,
            )


def chunks(sequences: Sequences) -> Iterator[Sequences]:
    """The same sequences in batches of CHUNK."""
    return (sequences.rows(slice(start, start + CHUNK)) for start in range(0, len(sequences), CHUNK))


def as_batch(part: Sequences) -> Batch:
    """Inputs of a model in float32."""
    lengths = None if part.lengths is None else torch.from_numpy(part.lengths)
    return Batch(torch.from_numpy(part.x.astype(np.float32)), torch.zeros(len(part)), lengths)
