"""projUNN-D (STE-projUNN): a rank-r update of W, then the nearest orthogonal matrix in closed form."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.maps.base import OrthogonalMap, check_square, deviation, like, polar_factor, wide


@final
class ProjUNN(OrthogonalMap):
    """W stays on the manifold: a stock optimizer step, its low-rank part, a projection (Kiani et al. 2022).

    The forward pass uses W as it is; `retract_` replaces the step W_before -> W by its rank-r part, projected.
    """

    retracts = True

    def __init__(self, rank: int = 1) -> None:
        super().__init__()
        if rank < 1:
            raise SettingsError(f"rank must be at least 1, got {rank}")
        self.rank = rank

    @torch.no_grad()
    def retract_(self, W: Tensor, W_before: Tensor, *, generator: torch.Generator | None = None) -> None:
        a, b = lsi(W - W_before, self.rank, generator=generator)
        W.copy_(project_low_rank(W_before, a, b))

    @torch.no_grad()
    def project_(self, W: Tensor, *, tolerance: float = 1e-4) -> None:
        """Nothing in `retract_` repairs a W that starts off the manifold, so training and loading call this once."""
        check_square(W, "projUNN")
        if not bool(deviation(W) <= tolerance):
            W.copy_(polar_factor(W))

    def extra_repr(self) -> str:
        return f"rank={self.rank}"


def lsi(delta: Tensor, rank: int, *, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Δ ≈ a bᵀ by the LSI sampler: R random orthonormal, B = √(n/r) RᵀΔ, B Bᵀ = E diag(e) Eᵀ, b = Bᵀ E/√e, a = Δ b.

    [ours] Directions with e under 1e-12 of the largest are dropped, where the published code adds 1e-6 to √e: that
    would shrink the step as soon as updates become that small.
    """
    n = len(delta)
    rank = min(rank, n)
    gaussian = torch.randn(n, rank, generator=generator, dtype=torch.float64)
    R = like(torch.linalg.qr(gaussian).Q, delta)  # (n, r)
    B = math.sqrt(n / rank) * wide(R.mT @ delta)  # (r, n)
    e, E = torch.linalg.eigh(B @ B.mT)
    scale = torch.where(e > 1e-12 * e[-1], e.rsqrt(), 0.0)
    b = like(B.mT @ (E * scale), delta)  # (n, r), orthonormal
    return delta @ b, b


def project_low_rank(W: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Nearest orthogonal matrix to W̃ = W + a bᵀ, W orthogonal, in O(r n² + r² n + r³).

    W̃ᵀW̃ = I + M, M = â bᵀ + b âᵀ + b (aᵀa) bᵀ, â = Wᵀa; in an orthonormal basis Q of [b, â], QᵀMQ = D diag(s) Dᵀ,
    and W⁺ = W̃ + W̃ u diag((1+s)^(−1/2) − 1) uᵀ with u = Q D.
    """
    W_tilde = W + a @ b.mT
    a64, b64 = wide(a), wide(b)  # the small eigenproblem decides how orthogonal the result is
    a_hat = wide(W).mT @ a64
    Q = torch.linalg.qr(torch.cat([b64, a_hat], 1)).Q  # (n, 2r)
    Qb, Qa = Q.mT @ b64, Q.mT @ a_hat
    M = Qa @ Qb.mT + Qb @ Qa.mT + Qb @ (a64.mT @ a64) @ Qb.mT
    s, D = torch.linalg.eigh(M)
    if bool((1 + s <= 0).any()) or not bool(s.isfinite().all()):
        return polar_factor(W_tilde)
    u = Q @ D
    correction = (wide(W_tilde) @ u) * ((1 + s).rsqrt() - 1)
    return W_tilde + like(correction @ u.mT, W)
