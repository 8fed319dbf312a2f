"""Networks in floating point: the single layer in float64, a stack as it was rounded in training."""

from __future__ import annotations

import copy

import numpy as np
import torch

from qornn.model import OrthogonalRNN, Stack
from qornn.recurrence import recurrence


class SingleRunner:
    """The float64 recurrence on the very weights that are lowered; y = scale·output + shift."""

    def __init__(self, model: OrthogonalRNN, scale: float, shift: float) -> None:
        layer = model.recurrence
        with torch.no_grad():
            self.W_q, self.U_q = layer.W_q().double(), layer.U_q().double()
        b = layer.b if layer.modrelu is None else layer.modrelu.b
        self.b = None if b is None else b.double()
        self.V, self.b_o = (p.detach().double().numpy() for p in (model.V_q(), model.b_o))
        self.relu = model.readout_activation == "relu"
        self.activation, self.scale, self.shift = layer.activation, scale, shift

    def run(self, x: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        """Outputs (B, n_o) at the end of standardised x (B, T, C)."""
        return self._read(self._states(x, lengths, None).numpy())

    def nothing(self) -> np.ndarray:
        """Outputs of the zero state."""
        return self._read(np.zeros((1, len(self.W_q))))

    def step(self, x: np.ndarray, state: torch.Tensor | None) -> tuple[np.ndarray, torch.Tensor]:
        """The state is h."""
        h = self._states(x, None, state)
        return self._read(h.numpy()), h

    def _states(self, x: np.ndarray, lengths: np.ndarray | None, h: torch.Tensor | None) -> torch.Tensor:
        h = torch.zeros(len(x), len(self.W_q), dtype=torch.float64) if h is None else h
        with torch.no_grad():
            ends = None if lengths is None else torch.from_numpy(lengths)
            return recurrence(torch.from_numpy(x), self.W_q, self.U_q, self.b, h, ends, self.activation)[1]

    def _read(self, h: np.ndarray) -> np.ndarray:
        """One output at a time: a product of matrices would round differently for other batches.  # (B, n_o)"""
        seen = np.maximum(h, 0) if self.relu else h
        y = np.stack([(seen * v).sum(1) for v in self.V], 1) + self.b_o
        return y * self.scale + self.shift


Running = tuple[tuple[torch.Tensor, ...] | None, np.ndarray, int]  # states of the layers, Σy and T


class StackRunner:
    """The forward pass of a stack that reads the mean of all steps; y = scale·output + shift.

    Where it was rounded in training its sums are whole numbers, which float32 holds. A stream adds up outputs, and at
    full precision an answer must not depend on the sequences beside it: both run in float64.
    """

    def __init__(self, model: Stack, scale: float, shift: float, *, double: bool) -> None:
        self.model = copy.deepcopy(model).double() if double else model
        self.scale, self.shift = scale, shift

    def run(self, x: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        """Outputs (B, n_o) at the end of the network's inputs x (B, T, C)."""
        ends = None if lengths is None else torch.from_numpy(lengths)
        with torch.no_grad():
            return self._in_units(self.model(self._tensor(x), lengths=ends)[0].numpy())

    def nothing(self) -> np.ndarray:
        """A mean of no steps is 0."""
        return self._in_units(np.zeros((1, self.model.n_o)))

    def step(self, x: np.ndarray, state: Running | None) -> tuple[np.ndarray, Running]:
        """The mean of V y_t + b_o over the steps is that of the sequence."""
        before, total, count = state or (None, np.zeros((1, self.model.n_o)), 0)
        with torch.no_grad():
            y, after = self.model(self._tensor(x), before)
        total, count = total + y.numpy(), count + 1
        return self._in_units(total / count), (after, total, count)

    def _tensor(self, x: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(x).to(self.model.V.dtype)

    def _in_units(self, y: np.ndarray) -> np.ndarray:
        """As a device gives outputs, in float32; then in the units of the targets."""
        exact = y if self.model.entry is None else y.astype(np.float32)
        return exact.astype(np.float64) * self.scale + self.shift
