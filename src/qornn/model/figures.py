"""How far a recurrent matrix is from orthogonal."""

from __future__ import annotations

import torch
from torch import Tensor

from qornn.quant import Quantizer


def of_matrix(W: Tensor, quantizer: Quantizer | None) -> dict[str, float]:
    """‖W_q W_qᵀ − I‖_F, σ_min, σ_max, and the share of clipped weights."""
    W_q = (W if quantizer is None else quantizer(W)).cpu().double()
    distance = (W_q @ W_q.mT - torch.eye(len(W_q), dtype=torch.float64)).norm()
    return _named(torch.linalg.svdvals(W_q), distance, clipped_share(W, quantizer))


def of_singular(values: Tensor) -> dict[str, float]:
    """The same of a matrix whose singular values are known."""
    singular = values.cpu().double()
    return _named(singular, (singular.square() - 1).norm(), 0.0)


def clipped_share(W: Tensor, quantizer: Quantizer | None) -> float:
    """Share of entries farther than half a step from their level: those the grid's ends cut off."""
    if quantizer is None:
        return 0.0
    integers, alpha = quantizer.to_int(W)
    half_step = alpha / 2**quantizer.bits
    cut = (W - quantizer.dequantize(integers, alpha)).abs() > half_step * (1 + 1e-4)
    return float(cut.cpu().double().mean())


def _named(singular: Tensor, distance: Tensor, saturation: float) -> dict[str, float]:
    return {
        "orthogonality": float(distance),
        "sigma_min": float(singular.min()),
        "sigma_max": float(singular.max()),
        "saturation": saturation,
    }
