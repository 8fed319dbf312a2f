"""modReLU."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ModReLU(nn.Module):
    """σ(z) = sign(z)·max(|z| + b, 0), b learned per unit (Helfrich et al. 2018).

    - `n_h`: units.
    - `generator` (None): draws b in ±0.01. None means torch's global generator.
    """

    def __init__(self, n_h: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.empty(n_h).uniform_(-0.01, 0.01, generator=generator))

    def forward(self, z: Tensor) -> Tensor:
        return z.sign() * torch.relu(z.abs() + self.b)
