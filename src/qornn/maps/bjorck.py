"""The Björck map (STE-Björck): W_raw is free, W is its orthogonal factor after a fixed number of iterations."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.maps.base import OrthogonalMap, check_square, like

# A direction whose singular value starts above √3 ends with its sign flipped, and above √5 it diverges.
FLIP = math.sqrt(3)


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
    """σ_max by power iteration, never so underestimated that a direction could flip.

    The estimate is a lower bound, and so is every column's norm. The largest row sum of |AᵀA|, A = W/estimate, bounds
    (σ_max/estimate)² from above; where that does not prove it below 3, the exact value is computed instead.
    """
    start = torch.Generator().manual_seed(0)  # a fixed start makes the map a function of W alone
    v = like(torch.randn(W.shape[-1], generator=start, dtype=torch.float64), W)
    for _ in range(power_iterations):
        v = W.mT @ (W @ v)
        v = v / v.norm().clamp_min(torch.finfo(W.dtype).tiny)
    sigma = torch.maximum((W @ v).norm(), W.norm(dim=0).max())
    if not bool(sigma > 0) or not bool(sigma.isfinite()):
        raise SettingsError(
            f"the Björck map needs σ_max(W) > 0 and finite, got {sigma.item():g}: "
            "start W orthogonal (init='haar'), and lower the learning rate if this came up during training"
        )
    A = W / sigma
    if bool((A.mT @ A).abs().sum(-1).max() >= FLIP**2):
        sigma = torch.maximum(sigma, torch.linalg.matrix_norm(W, 2))
    return sigma
