"""Where W starts: orthogonal matrices (paper, hyperparameters of each task)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from qornn.errors import SettingsError, unknown


def haar(n: int, *, generator: torch.Generator | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
    """Uniform over the orthogonal group: QR of a Gaussian, signs fixed (Mezzadri 2007)."""
    Q, R = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))
    return (Q * R.diagonal().sign()).to(dtype)


def henaff(
    n: int, *, share: float = 1.0, generator: torch.Generator | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Block-diagonal 2×2 rotations of angles U(−π, π), and a 1 at the end when n is odd (Henaff et al. 2016).

    `share` narrows the angles to U(−share·π, share·π): slower rotations, for long sequences of small steps.
    """
    angles = share * math.pi * (2 * torch.rand(n // 2, generator=generator, dtype=torch.float64) - 1)
    blocks = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], -1).view(-1, 2, 2)
    return torch.block_diag(*blocks, *[torch.ones(1, 1, dtype=torch.float64)] * (n % 2)).to(dtype)


def identity(n: int, *, generator: torch.Generator | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
    """I, for the adding task."""
    return torch.eye(n, dtype=dtype)


STARTS: dict[str, Callable[..., Tensor]] = {
    "haar": haar,
    "henaff": henaff,
    "henaff-quarter": partial(henaff, share=0.25),
    "identity": identity,
}


def start(name: str, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """The orthogonal start of that name."""
    if name not in STARTS:
        raise unknown("init", name, STARTS)
    if n < 1:
        raise SettingsError(f"n_h must be at least 1, got {n}")
    return STARTS[name](n, generator=generator)
