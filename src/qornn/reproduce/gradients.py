"""How far a gradient travels back in time (paper, appendix on vanishing and exploding gradients)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from qornn.errors import SettingsError, unknown
from qornn.maps.starts import haar
from qornn.quant import Uniform

ACTIVATIONS = ("identity", "modrelu", "relu")


def gradient_norms(
    *,
    n_h: int = 170,
    T: int = 784,
    ks: Iterable[int | None] = (None, 8, 5, 4),
    activations: Iterable[str] = ACTIVATIONS,
    batch: int = 32,
    seed: int = 0,
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """‖∂L/∂h_t‖ for t = 1..T in an untrained network, by activation and by bits ("fp" or "8").

    h_t = σ(W_q h_{t−1} + U_q x_t),   ∂L/∂h_t = (Π_{i>t} W_qᵀ D_i) ∂L/∂h_T,   D_i = diag σ'(z_i)

    W is one Haar matrix shared by all curves, U Xavier-normal, x uniform in [0, 1] as pixels are. ∂L/∂h_T is a random
    unit vector, so that every curve ends at 1 and shows the recurrence alone. Each curve is the median over the batch,
    with the 10 % and 90 % quantiles. The linear network shows the singular values of W_q and nothing else; modReLU is
    close to it; an untrained ReLU network loses half of its units at each step, which no orthogonal W can prevent.
    """
    if min(n_h, T, batch) < 1:
        raise SettingsError(f"n_h, T and batch must be at least 1, got {n_h}, {T} and {batch}")
    generator = torch.Generator().manual_seed(seed)
    W = haar(n_h, generator=generator, dtype=torch.float64)
    U = torch.randn(n_h, 1, generator=generator, dtype=torch.float64) * (2 / (n_h + 1)) ** 0.5
    b = 0.02 * torch.rand(n_h, generator=generator, dtype=torch.float64) - 0.01
    x = torch.rand(T, batch, 1, generator=generator, dtype=torch.float64)
    g = torch.randn(batch, n_h, generator=generator, dtype=torch.float64)
    g /= g.norm(dim=1, keepdim=True)
    curves: dict[str, dict[str, dict[str, list[float]]]] = {name: {} for name in activations}
    for k in ks:
        W_q, U_q = (W, U) if k is None else (Uniform(k)(W), Uniform(k)(U))
        for name, by_bits in curves.items():
            norms = _backward(W_q, _derivatives(W_q, x @ U_q.mT, b, name), g)  # (T, batch)
            low, median, high = norms.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=norms.dtype), dim=1)
            by_bits["fp" if k is None else str(k)] = {
                "median": median.tolist(),
                "low": low.tolist(),
                "high": high.tolist(),
            }
    return curves


def _derivatives(W: Tensor, Ux: Tensor, b: Tensor, activation: str) -> Tensor:
    """D_t along the forward pass.  # (T, B, n_h), True where σ' = 1"""
    D = torch.ones(Ux.shape, dtype=torch.bool)
    h = torch.zeros_like(Ux[0])
    for t in range(len(Ux)):
        z = h @ W.mT + Ux[t]
        if activation == "relu":
            h = z.relu()
        elif activation == "modrelu":
            h = z.sign() * (z.abs() + b).relu()
        elif activation == "identity":
            return D
        else:
            raise unknown("activation", activation, ACTIVATIONS)
        D[t] = h != 0
    return D


def _backward(W: Tensor, D: Tensor, g: Tensor) -> Tensor:
    """‖∂L/∂h_t‖ from ∂L/∂h_T = g.  # (T, B)"""
    norms = g.new_empty(D.shape[:2])
    for t in range(len(D) - 1, -1, -1):
        norms[t] = g.norm(dim=1)
        g = (g * D[t]) @ W
    return norms
