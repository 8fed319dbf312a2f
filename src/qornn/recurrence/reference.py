"""h_t = σ(W h_{t−1} + U x_t + b) in plain torch: the specification every faster recurrence is tested against.

Only h_1..h_T are saved. The derivative of σ is read off h itself, so the backward pass is one product with Wᵀ per step,
and the gradients of W and U are one large product each at the end.

A 1-D W is u of W = diag(u) S/√n_h, S Sylvester's Hadamard matrix: orthogonal for signs u, and multiplied by additions.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from qornn.recurrence.once import once_differentiable
from qornn.structure import check_power

ACTIVATIONS = ("relu", "modrelu", "identity", "tanh")


def recurrence(
    x: Tensor,  # (B, T, n_i), or one-hot codes (B, T)
    W: Tensor,  # (n_h, n_h), or u (n_h,)
    U: Tensor,  # (n_h, n_i)
    b: Tensor | None,  # (n_h,)
    h0: Tensor,  # (B, n_h)
    lengths: Tensor | None,  # (B,)
    activation: str,
) -> tuple[Tensor, Tensor]:
    """All states (B, T, n_h), zero past each sequence's end, and the state (B, n_h) at each sequence's end."""
    check_structure(W)
    return _Recurrence.apply(x, W, U, b, h0, lengths, activation)


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        W: Tensor,
        U: Tensor,
        b: Tensor | None,
        h0: Tensor,
        lengths: Tensor | None,
        activation: str,
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)  # the readout of one step alone must not build a (B, T, n_h) tensor of zeros
        past = _past_the_end(x, lengths)
        h = _input_term(_without_padding(x, past), U)  # (T, B, n_h): U x_t, overwritten by h_t
        state = h0
        for t in range(len(h)):
            _add_product_(h[t], state, W)
            state = _activate_(h[t], b, activation)
            if past is not None:
                state.masked_fill_(past[t], 0)
        last = h[_ends(h, lengths)].clone()
        ctx.save_for_backward(x, W, U, h0, lengths, h)
        ctx.activation = activation
        return h.transpose(0, 1), last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        x, W, U, h0, lengths, h = ctx.saved_tensors
        past = _past_the_end(x, lengths)
        dz = _state_gradients(grads[0], grads[1], W, h, lengths, past, ctx.activation)  # (T, B, n_h)
        before = torch.cat([h0[None], h[:-1]])  # h_{t−1}
        need = ctx.needs_input_grad
        dW = _recurrent_weight_gradient(before, dz, W) if need[1] else None
        dU = _input_weight_gradient(_without_padding(x, past), dz, U) if need[2] else None
        db = (dz * h.sign() if ctx.activation == "modrelu" else dz).sum((0, 1)) if need[3] else None
        dh0 = state_gradient(dz[0], W) if need[4] else None
        dx = (dz @ U).transpose(0, 1) if need[0] else None
        return dx, dW, dU, db, dh0, None, None


def _state_gradients(
    grad_states: Tensor | None,  # (B, T, n_h)
    grad_last: Tensor | None,  # (B, n_h)
    W: Tensor,
    h: Tensor,
    lengths: Tensor | None,
    past: Tensor | None,
    activation: str,
) -> Tensor:
    """∂L/∂z_t = σ'(z_t) ⊙ (∂L/∂h_t + Wᵀ ∂L/∂z_{t+1}), from the last step to the first.  # (T, B, n_h)"""
    dz = (
        torch.zeros_like(h)
        if grad_states is None
        else grad_states.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    )
    if grad_last is not None:
        dz[_ends(h, lengths)] += grad_last
    for t in range(len(h) - 1, -1, -1):
        if t + 1 < len(h):
            _add_state_gradient_(dz[t], dz[t + 1], W)
        _times_derivative_(dz[t], h[t], activation)
        if past is not None:
            dz[t].masked_fill_(past[t], 0)
    return dz


def _activate_(z: Tensor, b: Tensor | None, activation: str) -> Tensor:
    """σ(z + b) in place. modReLU clips |z| + b, never z + b, and has no epsilon inside |z|, so it scales exactly."""
    if activation == "modrelu" and b is not None:
        sign = z.sign()
        return z.abs_().add_(b).relu_().mul_(sign)
    if b is not None:
        z.add_(b)
    return z.relu_() if activation == "relu" else z.tanh_() if activation == "tanh" else z


def _times_derivative_(dz: Tensor, h: Tensor, activation: str) -> None:
    """dz ⊙ σ'(z), with σ' read off h = σ(z): h ≠ 0 for ReLU and modReLU, 1 − h² for tanh."""
    if activation in ("relu", "modrelu"):
        dz.masked_fill_(h == 0, 0)
    elif activation == "tanh":
        dz.mul_(1 - h * h)


def transform(h: Tensor) -> Tensor:
    """S h along the last axis, S_1 = 1, S_2n = [[S, S], [S, −S]], by n log2 n additions.  # (..., n_h)

    >>> transform(torch.tensor([1, 0, 0, 2])).tolist()
    [3, -1, -1, 3]
    """
    n, apart = h.shape[-1], 1
    while apart < n:
        a, b = h.unflatten(-1, (n // (2 * apart), 2, apart)).unbind(-2)
        h = torch.stack([a + b, a - b], -2).flatten(-3)
        apart *= 2
    return h


def _add_product_(z: Tensor, h: Tensor, W: Tensor) -> None:
    """z += W h.  # (B, n_h)"""
    if W.ndim == 2:
        z.addmm_(h, W.mT)
    else:
        z.addcmul_(W, transform(h), value=1 / math.sqrt(len(W)))


def _add_state_gradient_(dh: Tensor, dz: Tensor, W: Tensor) -> None:
    """dh += Wᵀ dz.  # (B, n_h)"""
    if W.ndim == 2:
        dh.addmm_(dz, W)
    else:
        dh.add_(state_gradient(dz, W))


def state_gradient(dz: Tensor, W: Tensor) -> Tensor:
    """Wᵀ ∂L/∂z_{t+1}, the part of ∂L/∂h_t that comes from the next step; S is symmetric.  # (B, n_h)"""
    return dz @ W if W.ndim == 2 else transform(W * dz) / math.sqrt(len(W))


def _recurrent_weight_gradient(before: Tensor, dz: Tensor, W: Tensor) -> Tensor:
    """Σ_t ∂L/∂z_t h_{t−1}ᵀ, or of u Σ_t ∂L/∂z_t ⊙ S h_{t−1}/√n_h."""
    if W.ndim == 2:
        return dz.flatten(0, 1).mT @ before.flatten(0, 1)
    return (dz * transform(before)).sum((0, 1)) / math.sqrt(len(W))


def check_structure(W: Tensor) -> None:
    """Refuse a 1-D W of a length no Sylvester matrix has."""
    if W.ndim == 1:
        check_power(len(W), 2, "the length n_h of a 1-D W")


def _ends(h: Tensor, lengths: Tensor | None) -> Any:
    """Index into (T, B, n_h) of each sequence's last state."""
    return -1 if lengths is None else (lengths - 1, torch.arange(len(lengths), device=h.device))


def _past_the_end(x: Tensor, lengths: Tensor | None) -> Tensor | None:
    """True where a step lies past its sequence's end.  # (T, B, 1)"""
    if lengths is None:
        return None
    return (torch.arange(x.shape[1], device=x.device)[:, None] >= lengths)[..., None]


def _without_padding(x: Tensor, past: Tensor | None) -> Tensor:
    """x with zeros past each end: whatever stands there, NaN included, cannot leak into a gradient."""
    if past is None:
        return x
    past = past.transpose(0, 1)  # (B, T, 1)
    return x.masked_fill(past if x.ndim == 3 else past[..., 0], 0)


def _input_term(x: Tensor, U: Tensor) -> Tensor:
    """U x_t for all steps at once; for codes a column of U is read instead of multiplied.  # (T, B, n_h)"""
    if x.ndim == 2:
        return F.embedding(x.mT, U.mT)
    return (x.transpose(0, 1) @ U.mT).contiguous()


def _input_weight_gradient(x: Tensor, dz: Tensor, U: Tensor) -> Tensor:
    """Σ_t ∂L/∂z_t x_tᵀ; for codes the gradients of equal codes are summed.  # (n_h, n_i)"""
    if x.ndim == 2:
        return torch.zeros_like(U.mT).index_add_(0, x.mT.flatten(), dz.flatten(0, 1)).mT
    return dz.flatten(0, 1).mT @ x.transpose(0, 1).flatten(0, 1)
