"""A layer of a stack, or its readout, from raw weights as one autograd function: on their grids, then its kernel.

Gradients pass straight through rounding, so the weights need no function of their own: on a small batch an autograd
function costs more than the arithmetic. `native_weights` and `native_mix` are its parts; `qornn.model` specifies it,
and runs plain torch where `usable` says no.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from qornn.recurrence.checks import check_driven, check_mix
from qornn.recurrence.native_mix import WIDEST, mix_pass, mix_pass_back, scan_pass, scan_pass_back
from qornn.recurrence.native_weights import MixGrids, QuantizedTurns, TurnGrids, quantized_mix, quantized_readout
from qornn.recurrence.once import once_differentiable


def usable(W: Tensor, *inputs: Tensor | None) -> bool:
    """Of weights that `native_weights` can use: inputs are float32 on the CPU too, and the matrix is narrow."""
    return W.numel() <= WIDEST and all(t is None or (t.dtype is torch.float32 and t.is_cpu) for t in inputs)


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        skip: Tensor | None,
        C_raw: Tensor,
        S_raw: Tensor | None,
        c_raw: Tensor,
        grids: MixGrids,
        step: float,
        top: int,
        wide: bool,
    ) -> tuple[Tensor, Tensor]:
        C, S, c = quantized_mix(C_raw, S_raw, c_raw, grids)
        y, keep, peak = mix_pass(step, top, x, C, c, skip, S, wide=wide)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(peak)
        ctx.save_for_backward(keep, x, C, skip, S)
        return y, peak

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
        if dy is None:
            return (None,) * 9
        dx, dC, dc, dskip, dS = mix_pass_back(ctx.needs_input_grad[:2], dy, *ctx.saved_tensors)
        return dx, dskip, dC, dS, dc, None, None, None, None


def mix(
    x: Tensor,  # (..., n)
    skip: Tensor | None,  # (..., m)
    C_raw: Tensor,  # (d, n)
    S_raw: Tensor | None,  # (d, m)
    c_raw: Tensor,  # (d,)
    grids: MixGrids,
    step: Tensor | float,
    top: int,
    *,
    wide: bool = False,
) -> tuple[Tensor, Tensor]:
    """rounded_relu(C x + c [+ S skip]) with C, S and c on their grids, and the largest sum ().

    `wide` adds both products in float64, where float32 does not hold their sum.
    """
    check_mix(x, C_raw, c_raw, skip, S_raw, top)
    skip = None if skip is None else skip.contiguous()
    return _Mix.apply(x.contiguous(), skip, C_raw, S_raw, c_raw, grids, float(step), top, wide)


class _DrivenScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        U_raw: Tensor,
        nu: Tensor,
        phi: Tensor,
        z0: Tensor,
        lengths: Tensor | None,
        grids: TurnGrids,
        top: int,
        scale: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.turns = turns = QuantizedTurns(U_raw, nu, phi, grids)
        ctx.scale = scale
        states, last, peak = scan_pass(top, scale, x, turns.U, turns.a, turns.b, z0, lengths)
        ctx.set_materialize_grads(False)  # reading the last state alone must not build a (B, T, 2p) tensor of zeros
        ctx.mark_non_differentiable(peak)
        ctx.save_for_backward(x, z0, lengths, states)
        return states, last, peak

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dstates: Tensor | None, dlast: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
        x, z0, lengths, states = ctx.saved_tensors
        turns, wanted = ctx.turns, ctx.needs_input_grad[0]
        dstates, dlast = (None if t is None else t.contiguous() for t in (dstates, dlast))
        tensors = (dstates, dlast, x, turns.U, turns.a, turns.b, z0, lengths, states)
        dx, *dweights, dz0 = scan_pass_back(ctx.scale, wanted, *tensors)
        return dx, *turns.gradients(*dweights), dz0, None, None, None, None


def driven_scan(
    x: Tensor,  # (B, T, n)
    U_raw: Tensor,  # (2p, n)
    nu: Tensor,  # (p,)
    phi: Tensor,  # (p,)
    z0: Tensor,  # (B, 2p)
    lengths: Tensor | None,  # (B,)
    grids: TurnGrids,
    top: int,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The scan of U x by λ, both on their grids: scaled states, the last ones and each pair's largest |value|."""
    check_driven(x, U_raw, nu, phi, z0, lengths, top, scale)
    lengths = None if lengths is None else lengths.contiguous()
    return _DrivenScan.apply(x.contiguous(), U_raw, nu, phi, z0.contiguous(), lengths, grids, top, scale)


class _MeanReadout(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, y: Tensor, V_raw: Tensor, b_raw: Tensor, step: Tensor, bits: int, lengths: Tensor | None
    ) -> Tensor:
        V, b = (weight.double() for weight in quantized_readout(V_raw, b_raw, step, bits))
        total = y.sum(1).double()
        T = y.shape[1] if lengths is None else lengths[:, None].double()
        ctx.save_for_backward(total, V, lengths)
        ctx.T, ctx.shape = T, y.shape
        return ((total @ V.T + T * b) / T).float()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dmean: Tensor) -> tuple[Tensor | None, ...]:
        total, V, lengths = ctx.saved_tensors
        g, T = dmean.double() / ctx.T, ctx.T  # (B, n_o)
        db = g.sum(0) * T if lengths is None else (g * T).sum(0)
        dy = (g @ V).float()[:, None].expand(ctx.shape)  # the same at every step: not made as a whole
        return dy, (total.T @ g).T.float().contiguous(), db.float(), None, None, None


def mean_readout(
    y: Tensor,  # (B, T, n_h), whole numbers times `step`; float32 must hold their sums
    V_raw: Tensor,  # (n_o, n_h)
    b_raw: Tensor,  # (n_o,)
    step: Tensor,  # ()
    bits: int,
    lengths: Tensor | None,  # (B,)
) -> Tensor:
    """(V Σ y_t + T b_o)/T with V and b_o on their grids.  # (B, n_o)"""
    return _MeanReadout.apply(y, V_raw, b_raw, step, bits, lengths)
