"""The scan of rotations z_t = R(λ z_{t−1} + drive_t) and a mix's epilogue, in plain torch: the specification.

States are whole numbers, in units of one state step: the caller divides the drive by the step. p complex units are 2p
real ones, p real parts and then p imaginary parts. Rounding is to nearest, ties away from zero, computed as
trunc(v + copysign(½, v)). It is exact wherever |v| + ½ is, so for all sums of weights and inputs that training makes;
elsewhere, as just below ½, it may be one unit in the last place early.

Both functions pass gradients straight through rounding and saturation.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from qornn.recurrence.once import once_differentiable


def scan(
    drive: Tensor,  # (B, T, 2p)
    a: Tensor,  # (p,): real parts of λ
    b: Tensor,  # (p,): imaginary parts
    z0: Tensor,  # (B, 2p)
    lengths: Tensor | None,  # (B,)
    top: int,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Scaled states (B, T, 2p), the state (B, 2p) at each sequence's end, and each pair's largest |value| (p,)."""
    states, last, peak = _Scan.apply(drive, a, b, z0, lengths, top)
    return states if scale == 1 else states * scale, last, peak


def rounded_relu(acc: Tensor, step: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """step·min(R(relu(acc)/step), top), or relu(acc) where step is 0; and the largest value of acc."""
    return _RoundedRelu.apply(acc, step, top)


def rounded(v: Tensor) -> Tensor:
    """The nearest whole number, ties away from zero.

    >>> rounded(torch.tensor([0.5, 1.5, -0.5, -2.4])).tolist()
    [1.0, 2.0, -1.0, -2.0]
    """
    return torch.trunc(v + torch.copysign(torch.full_like(v, 0.5), v))


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, drive: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Tensor | None, top: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(False)  # reading the last state alone must not build a (B, T, 2p) tensor of zeros
        T, past = drive.shape[1], _past_the_end(drive, lengths)
        states = torch.zeros_like(drive, memory_format=torch.contiguous_format)
        peak = torch.zeros_like(a)
        re, im = z0.chunk(2, -1)
        for t in range(T):
            v = torch.cat([a * re - b * im, a * im + b * re], -1) + drive[:, t]
            if past is not None:
                v = v.masked_fill(past[:, t], 0)
            peak = torch.maximum(peak, v.abs().unflatten(-1, (2, -1)).amax((0, 1)))
            states[:, t] = rounded(v).clamp(-top, top) if top else v
            re, im = states[:, t].chunk(2, -1)
        last = states[_ends(states, lengths)].clone()
        ctx.save_for_backward(a, b, z0, lengths, states)
        ctx.mark_non_differentiable(peak)
        return states, last, peak

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        a, b, z0, lengths, states = ctx.saved_tensors
        G = _linear_gradients(grads[0], grads[1], a, b, lengths, states)  # (B, T, 2p)
        re, im = torch.cat([z0[:, None], states[:, :-1]], 1).chunk(2, -1)  # z_{t−1}
        Gre, Gim = G.chunk(2, -1)
        da = (Gre * re + Gim * im).sum((0, 1))
        db = (Gim * re - Gre * im).sum((0, 1))
        return G, da, db, _turned_back(G[:, 0], a, b), None, None


def _linear_gradients(
    grad_states: Tensor | None, grad_last: Tensor | None, a: Tensor, b: Tensor, lengths: Tensor | None, states: Tensor
) -> Tensor:
    """G_t = g_t + conj(λ) G_{t+1} from the last step to the first, 0 past a sequence's end.  # (B, T, 2p)"""
    past = _past_the_end(states, lengths)
    G = torch.zeros_like(states) if grad_states is None else grad_states.clone(memory_format=torch.contiguous_format)
    if past is not None:
        G = G.masked_fill(past, 0)
    if grad_last is not None:
        G[_ends(G, lengths)] += grad_last
    for t in range(G.shape[1] - 2, -1, -1):
        G[:, t] += _turned_back(G[:, t + 1], a, b)
    return G


def _turned_back(G: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """conj(λ) G.  # (B, 2p)"""
    Gre, Gim = G.chunk(2, -1)
    return torch.cat([a * Gre + b * Gim, a * Gim - b * Gre], -1)


class _RoundedRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, acc: Tensor, step: Tensor, top: int) -> tuple[Tensor, Tensor]:
        peak = acc.detach().amax()
        ctx.save_for_backward(acc)
        ctx.mark_non_differentiable(peak)
        positive = acc.relu()
        y = step * rounded(positive * (1 / step)).clamp(max=top)  # a power of two: its inverse is exact
        return torch.where(step == 0, positive, y), peak

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (acc,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grads[0], acc, 0), None, None


def _ends(states: Tensor, lengths: Tensor | None) -> Any:
    """Index into (B, T, 2p) of each sequence's last state."""
    rows = slice(None) if lengths is None else torch.arange(len(states), device=states.device)
    return rows, -1 if lengths is None else lengths - 1


def _past_the_end(x: Tensor, lengths: Tensor | None) -> Tensor | None:
    """True where a step lies past its sequence's end.  # (B, T, 1)"""
    if lengths is None:
        return None
    return (torch.arange(x.shape[1], device=x.device) >= lengths[:, None])[..., None]
