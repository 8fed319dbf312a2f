"""The network in float64."""

from __future__ import annotations

import numpy as np
import torch

from qornn.model import OrthogonalRNN
from qornn.recurrence import recurrence


class Runner:
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
