"""What maps without a stored matrix share: W is made of signs and shifts, and exactly orthogonal."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qornn import structure
from qornn.errors import SettingsError
from qornn.maps.base import OrthogonalMap


class Structured(OrthogonalMap):
    """W_raw holds the few numbers that W is made of: drawn from the map's own seed, and mostly frozen."""

    structured = True
    learned = False
    biased = True  # a bias in the loop does no harm
    activation = "identity"
    readout_activation = "relu"

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise SettingsError(f"the seed of a structured matrix lies in 0..2^32−1, got {seed!r}")
        self.seed = seed

    @abstractmethod
    def raw(self, n_h: int) -> Tensor:
        """The numbers that W is made of, for n units. The error for an invalid size names the nearest valid ones."""

    def initial(self, n_h: int, *, init: str = "haar", generator: torch.Generator | None = None) -> Tensor:
        return self.raw(n_h)

    @abstractmethod
    def forward(self, W: Tensor) -> Tensor:
        """W written out.  # -> (n_h, n_h)"""

    @abstractmethod
    def made_of(self, W: Tensor) -> tuple[str, dict[str, Any]]:
        """The kind of W in an IntegerProgram, and its fields (integer/structured.py)."""

    def right_inverse(self, W: Tensor) -> Tensor:
        """What a matrix of this size is made of; its entries are not looked at."""
        return self.raw(len(W)).to(W)

    def extra_repr(self) -> str:
        return f"seed={self.seed}"


def whole(u: Tensor) -> np.ndarray:
    """Signs as integers.  # int8"""
    return u.detach().sign().to(torch.int8).cpu().numpy()


def signs(n: int, seed: int) -> Tensor:
    """The signs of that seed.  # (n,) float32"""
    return torch.from_numpy(structure.signs(n, seed)).float()


def sylvester(n: int, like: Tensor) -> Tensor:
    """Sylvester's matrix of ±1.  # (n, n)"""
    index = torch.arange(n, device=like.device)
    both = index[:, None] & index
    parity = torch.zeros_like(both)
    for bit in range(n.bit_length()):
        parity ^= both >> bit & 1
    return (1 - 2 * parity).to(like.dtype)


def sign_through(u: Tensor) -> Tensor:
    """The signs of latent weights, which learn through them as far as |u| ≤ 1 (straight-through)."""
    through = u.clamp(-1, 1)
    return through + (torch.where(u < 0, -1.0, 1.0).to(u.dtype) - through).detach()
