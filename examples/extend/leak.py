"""A new kind of layer, as it is trained: leaky integrators that smooth what they read."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.model import SequenceLayer
from qornn.model.inputs import checked_lengths, checked_state


@final
class Leak(SequenceLayer):
    """s_t = s_{t−1} + (x_t − s_{t−1})/2^shift of every channel; the state is the output."""

    def __init__(self, n: int, shift: int = 2) -> None:
        super().__init__()
        if not 1 <= shift <= 8:
            raise SettingsError(f"shift must be in 1..8, got {shift}")
        self.n_i, self.n_h, self.shift = n, n, shift

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if x.ndim != 3:
            raise SettingsError("Leak reads numbers (B, T, n), not codes; put an OrthogonalRecurrence before it")
        lengths, s = checked_lengths(x, lengths), checked_state(x, h0, self.n_h, x)
        each = []
        for x_t in x.unbind(1):
            s = s + (x_t - s) / 2**self.shift
            each.append(s)
        states = torch.stack(each, 1)  # (B, T, n)
        if lengths is None:
            return states, s
        running = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        return states * running[..., None], states[torch.arange(len(x)), lengths - 1]

    def made_of(self) -> tuple[str, dict[str, Any]]:
        return "leak", {"shift": self.shift}  # of leak_layer.py
