"""The Björck map (STE-Björck): W_raw is free, W is its orthogonal factor after a fixed number of iterations."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.maps.base import OrthogonalMap, check_square, like

STARTS = 4  # of the power iteration


@final
class Bjorck(OrthogonalMap):
    """A_0 = W/σ_max(W), A ← 3/2 A − 1/2 A AᵀA, 15 times (paper, The Björck algorithm, p = 1).

    Gradient: plain backpropagation through every iteration, σ_max a constant. Singular values grow at most
    1.5^15 ≈ 437 times, so W_raw must start near orthogonal, which every start of `maps.starts` is.
    """

    def __init__(self, iterations: int = 15, power_iterations: int = 12) -> None:
        super().__init__()
        if iterations < 1 or power_iterations < 1:
            raise SettingsError(
                f"iterations and power_iterations must be at least 1, got {iterations} and {power_iterations}"
            )
        self.iterations = iterations
        self.power_iterations = power_iterations

    def forward(self, W: Tensor) -> Tensor:
        check_square(W, "the Björck map")
        return iterate(W / largest_singular_value(W.detach(), self.power_iterations), self.iterations)

    def extra_repr(self) -> str:
        return f"iterations={self.iterations}"


def iterate(A: Tensor, iterations: int) -> Tensor:
    """The Björck iterations themselves, differentiable, on a matrix already scaled by its σ_max."""
    for _ in range(iterations):
        A = 1.5 * A - 0.5 * A @ (A.mT @ A)
    return A


def largest_singular_value(W: Tensor, power_iterations: int = 12) -> Tensor:
    """σ_max by power iteration, from four fixed random starts so that the map is a function of W alone.

    Estimates are never too large. One that is √3 too small, where directions would flip, needs every start to have less
    than 3^−12 of its length along the largest directions: no W meets that by chance.
    """
    generator = torch.Generator().manual_seed(0)
    v = like(torch.randn(W.shape[-1], STARTS, generator=generator, dtype=torch.float64), W)
    for _ in range(power_iterations):
        v = W.mT @ (W @ v)
        v = v / v.norm(dim=0).clamp_min(torch.finfo(W.dtype).tiny)
    sigma = torch.maximum((W @ v).norm(dim=0).max(), W.norm(dim=0).max())
    if not bool(sigma > 0) or not bool(sigma.isfinite()):
        raise SettingsError(
            f"the Björck map needs σ_max(W) > 0 and finite, got {sigma.item():g}: "
            "start W orthogonal (init='haar'), and lower the learning rate if this came up during training"
        )
    return sigma
