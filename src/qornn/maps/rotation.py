"""λ of plane rotations with decay, learned as radius and angle (the linear recurrent unit, Orvieto et al. 2023)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

INTEGRATOR_RADIUS, INTEGRATOR_ANGLE = 1 - 1e-4, 1e-4  # rounds to λ = 1 on grids of up to 12 bits


def initial(
    pairs: int, ring: tuple[float, float], integrators: int, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """ν and φ of λ = exp(−exp ν + i exp φ): uniform by area in the upper half of a ring, the last few at 1."""
    low, high = ring
    u, v = torch.rand(2, pairs, generator=generator)
    radius = (low**2 + u * (high**2 - low**2)).sqrt().clamp(1e-3, 1 - 1e-6)
    angle = math.pi * v.clamp(1e-3, 1 - 1e-3)
    if integrators:
        radius[-integrators:], angle[-integrators:] = INTEGRATOR_RADIUS, INTEGRATOR_ANGLE
    return (-radius.log()).log(), angle.log()


def eigenvalues(nu: Tensor, phi: Tensor) -> tuple[Tensor, Tensor]:
    """a and b of λ = a + ib; |λ| < 1 whatever ν and φ are."""
    radius, angle = torch.exp(-torch.exp(nu)), torch.exp(phi)
    return radius * angle.cos(), radius * angle.sin()
