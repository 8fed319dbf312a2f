"""FastRNN and FastGRNN (Kusupati et al. 2018), in their symbols: W multiplies the input, U the state."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, final

import torch
from torch import Tensor, nn

from qornn.baselines.base import Baseline, through


class _Fast(Baseline):
    """The loop both share: everything of the input is done for the whole sequence before it."""

    def __init__(self, n_i: int, n_h: int, n_o: int, **options: Any) -> None:
        generator = options.get("generator")
        super().__init__(n_i, n_h, n_o, **options)
        self.W = nn.Parameter(0.1 * torch.randn(n_h, n_i, generator=generator))
        self.U = nn.Parameter(0.1 * torch.randn(n_h, n_h, generator=generator))

    @abstractmethod
    def update(self, z: Tensor, h: Tensor) -> Tensor:
        """The next state from z = W x_t + U h.  # (B, n_h), (B, n_h) -> (B, n_h)"""

    def states(self, x: Tensor) -> Tensor:
        U = through(self.q_W, self.U).mT
        h = x.new_zeros(len(x), self.n_h)
        found = []
        for drive in (x @ through(self.q_U, self.W).mT).unbind(1):
            h = self.quantized_state(self.update(torch.addmm(drive, h, U), h))
            found.append(h)
        return torch.stack(found, 1)


@final
class FastRNN(_Fast):
    """c = tanh(Wx + Uh + b), h' = sig(β) h + sig(α) c, from α = −3, β = 3."""

    def __init__(self, n_i: int, n_h: int, n_o: int, **options: Any) -> None:
        super().__init__(n_i, n_h, n_o, **options)
        self.b = nn.Parameter(torch.ones(n_h))
        self.alpha = nn.Parameter(torch.tensor(-3.0))
        self.beta = nn.Parameter(torch.tensor(3.0))

    def update(self, z: Tensor, h: Tensor) -> Tensor:
        return self.beta.sigmoid() * h + self.alpha.sigmoid() * (z + self.b).tanh()


@final
class FastGRNN(_Fast):
    """z = sig(Wx + Uh + b_z), c = tanh(Wx + Uh + b_h), h' = z⊙h + (sig(ζ)(1 − z) + sig(ν))⊙c, from ζ = 1, ν = −4."""

    def __init__(self, n_i: int, n_h: int, n_o: int, **options: Any) -> None:
        super().__init__(n_i, n_h, n_o, **options)
        self.b_z = nn.Parameter(torch.ones(n_h))
        self.b_h = nn.Parameter(torch.ones(n_h))
        self.zeta = nn.Parameter(torch.tensor(1.0))
        self.nu = nn.Parameter(torch.tensor(-4.0))

    def update(self, z: Tensor, h: Tensor) -> Tensor:
        gate, c = (z + self.b_z).sigmoid(), (z + self.b_h).tanh()
        return gate * h + (self.zeta.sigmoid() * (1 - gate) + self.nu.sigmoid()) * c
