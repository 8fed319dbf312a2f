"""The interface of a map: it acts before the forward pass, after the optimizer's step, or as a term of the loss."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from qornn.errors import SettingsError
from qornn.maps.starts import start


class OrthogonalMap(nn.Module, ABC):
    """A map from W_raw, which the optimizer changes, to W, which the network uses."""

    exact = True  # W is orthogonal to round-off; the soft strategies say False
    retracts = False  # W must be brought back after every optimizer step
    penalises = False  # the loss has a term of this map's
    structured = False  # W is not stored: see maps/structured.py
    learned = True  # the optimizer moves W_raw
    biased = False  # a linear recurrence has a bias in its loop
    shifts = False  # W mostly moves numbers along
    permutes = False  # W moves numbers and turns signs, no more: nothing is rounded
    activation = "relu"  # default of the recurrence
    readout_activation = "identity"  # default of the states before they are read out

    def initial(self, n_h: int, *, init: str = "haar", generator: torch.Generator | None = None) -> Tensor:
        """W_raw before training.  # (n_h, n_h), or the few numbers that W is made of"""
        return start(init, n_h, generator=generator)

    def forward(self, W: Tensor) -> Tensor:
        """The differentiable map W_raw -> W; the identity for strategies that keep W_raw itself orthogonal."""
        return W

    def operator(self, W: Tensor) -> Tensor:
        """W as the recurrence multiplies by it: written out, or what a faster product needs."""
        return self(W)

    def product(self, W: Tensor) -> Callable[[Tensor], Tensor]:
        """A function that computes W h for every row of h (B, n_h), by shifts if `shifts` is true."""
        written_out = self(W)
        return lambda h: h @ written_out.mT

    def singular_values(self, W: Tensor) -> Tensor:
        """Singular values of the full matrix W, in any order.  # (n_h,)"""
        return torch.linalg.svdvals(self(W).cpu().double())

    def made_of(self, W: Tensor) -> tuple[str, dict[str, Any]] | None:
        """Where W is not stored, its kind in an IntegerProgram and the fields of that kind."""
        return None

    def right_inverse(self, W: Tensor) -> Tensor:
        """A W_raw that maps to W, so that torch's register_parametrization accepts the map."""
        return W

    def driven(self, n_h: int) -> Tensor | None:
        """The units that inputs reach, None for all."""
        return None

    @torch.no_grad()
    def retract_(self, W: Tensor, W_before: Tensor, *, generator: torch.Generator | None = None) -> None:
        """Bring W back to the manifold after optimizer.step(); by default nothing."""

    @torch.no_grad()
    def project_(self, W: Tensor, *, tolerance: float = 1e-4) -> None:
        """Make W orthogonal again if it must be and is off by more than the tolerance. By default nothing."""

    def penalty(self, W_q: Tensor) -> Tensor:
        """The term this strategy adds to the loss; by default 0."""
        return W_q.new_zeros(())


def check_square(W: Tensor, what: str) -> None:
    """Refuse anything but one square matrix of numbers."""
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not W.numel():
        raise SettingsError(f"{what} needs a square matrix (n_h, n_h), got shape {tuple(W.shape)}")
    if not W.is_floating_point():
        raise SettingsError(f"{what} needs floating-point weights, got {W.dtype}")


def deviation(W: Tensor) -> Tensor:
    """Largest entry of |WᵀW − I|."""
    return (W.mT @ W - torch.eye(W.shape[-1], dtype=W.dtype, device=W.device)).abs().max()


def polar_factor(W: Tensor) -> Tensor:
    """The nearest orthogonal matrix in Frobenius norm, by SVD in float64."""
    left, _, right = torch.linalg.svd(wide(W))
    return like(left @ right, W)


def wide(W: Tensor) -> Tensor:
    """W in float64; on the CPU where its own device has none (MPS)."""
    return (W.cpu() if W.device.type == "mps" else W).double()


def like(W: Tensor, other: Tensor) -> Tensor:
    """W back in the other's type and on its device; the type first, since the device may not know float64."""
    return W.to(other.dtype).to(other.device)
