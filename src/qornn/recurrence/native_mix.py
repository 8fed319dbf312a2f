"""A mix, and the scan of rotations of U x, each as one native call: the products and what follows them in one pass.

`mixing` specifies them. Every one is a torch operator, for torch.compile and torch.export. Called directly they skip
the dispatcher, which on small networks costs more than the arithmetic.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from qornn.recurrence import pool
from qornn.recurrence.checks import check_driven, check_mix, check_scan_gradients
from qornn.recurrence.native import PATH
from qornn.recurrence.native_rotations import Gradients, address, call, problem_of
from qornn.recurrence.once import once_differentiable

_i64, _pointer = ctypes.c_int64, ctypes.c_void_p

# Numbers of a matrix: the widest that was measured. Up to 128 by 256 one pass wins (84 ms per step against 144 ms with
# torch's products, three layers, one thread); at 192 by 384 both take as long. But torch's temporaries of 16 MB are
# aligned blocks of malloc, which glibc 2.36 hardly uses again: memory grew by 8 MB per step until it was full.
WIDEST = 256 * 512


class _Mix(ctypes.Structure):  # qornn_mix in mix.h
    _fields_ = (
        *((name, _i64) for name in ("rows", "n", "n_skip", "d", "top", "wide")),
        ("step", ctypes.c_double),
        ("threads", _i64),
        *((name, _pointer) for name in ("x", "skip", "C", "S", "c")),
    )


class _MixGradients(ctypes.Structure):  # qornn_mix_gradients in mix.h
    _fields_ = (
        ("alike", _i64),
        *((name, _pointer) for name in ("dy", "keep", "dx", "dskip", "dC", "dS", "dc")),
    )


class _Driven(ctypes.Structure):  # qornn_driven in mix.h
    _fields_ = (("n", _i64), *((name, _pointer) for name in ("x", "U", "dx", "dU")))


def usable(W: Tensor, *tensors: Tensor | None) -> bool:
    """float32 on the CPU goes native, where the matrix is narrow."""
    return (
        PATH is not None
        and W.numel() <= WIDEST
        and all(t is None or (t.device.type == "cpu" and t.dtype == torch.float32) for t in (W, *tensors))
    )


def _mixed(
    x: Tensor, C: Tensor, c: Tensor, skip: Tensor | None, S: Tensor | None, step: Tensor, top: int
) -> tuple[Tensor, Tensor, Tensor]:
    check_mix(x, C, c, skip, S, top)
    return mix_pass(float(step), top, *map(_dense, (x, C, c, skip, S)))


def mix_pass(
    step: float,
    top: int,
    x: Tensor,
    C: Tensor,
    c: Tensor,
    skip: Tensor | None,
    S: Tensor | None,
    *,
    wide: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The kernel on what is known to fit and to be dense: y, where gradients pass, and the largest sum ().

    `wide` adds both products in float64.
    """
    shape = (*x.shape[:-1], C.shape[0])
    y, keep, peak = pool.empty(*shape), torch.empty(shape, dtype=torch.int8), torch.empty((), dtype=x.dtype)
    problem = _mix_problem(x, C, c, skip, S, step, top, wide)
    call("qornn_mix_forward", ctypes.byref(problem), address(y), address(keep), address(peak))
    return y, keep, peak


def _mix_gradients(
    dy: Tensor, keep: Tensor, x: Tensor, C: Tensor, skip: Tensor | None, S: Tensor | None, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, C, c, skip and S; empty where that of x or the skip is not needed or does not exist."""
    check_mix(x, C, C[:, 0], skip, S, 1)
    if dy.shape != keep.shape or keep.shape != (*x.shape[:-1], len(C)) or dy.dtype != x.dtype:
        raise ValueError(f"dy {tuple(dy.shape)} and keep {tuple(keep.shape)} do not belong to x {tuple(x.shape)}")
    dx, dC, dc, dskip, dS = mix_pass_back(wanted, dy, *map(_dense, (keep, x, C, skip, S)))
    return tuple(x.new_empty(0) if t is None else t for t in (dx, dC, dc, dskip, dS))  # type: ignore[return-value]


def mix_pass_back(
    wanted: Sequence[bool], dy: Tensor, keep: Tensor, x: Tensor, C: Tensor, skip: Tensor | None, S: Tensor | None
) -> tuple[Tensor | None, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Gradients of x, C, c, skip and S, of what is known to fit and, dy aside, to be dense."""
    alike = dy.shape[1] if dy.ndim == 3 and dy.stride(1) == 0 else 1  # a mean's is one row per sequence
    dy = dy[:, 0].contiguous() if alike > 1 else dy.contiguous()
    dx = pool.empty(*x.shape) if wanted[0] else None
    dskip = None if skip is None or not wanted[1] else pool.empty(*skip.shape)
    dC, dc, dS = torch.empty_like(C), C.new_empty(C.shape[0]), None if S is None else torch.empty_like(S)
    problem = _mix_problem(x, C, None, skip, S, 0.0, 1)
    gradients = _MixGradients(alike, *map(address, (dy, keep, dx, dskip, dC, dS, dc)))
    call("qornn_mix_backward", ctypes.byref(problem), ctypes.byref(gradients))
    return dx, dC, dc, dskip, dS


def _mix_problem(
    x: Tensor,
    C: Tensor,
    c: Tensor | None,
    skip: Tensor | None,
    S: Tensor | None,
    step: float,
    top: int,
    wide: bool = False,
) -> _Mix:
    d, n = C.shape
    rows, n_skip = x.numel() // n, 0 if S is None else S.shape[1]
    return _Mix(rows, n, n_skip, d, top, wide, step, torch.get_num_threads(), *map(address, (x, skip, C, S, c)))


def _dense(t: Any) -> Any:
    return None if t is None else t.detach().contiguous()


def _scanned(
    x: Tensor, U: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Tensor | None, top: int, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    check_driven(x, U, a, b, z0, lengths, top, scale)
    return scan_pass(top, scale, *map(_dense, (x, U, a, b, z0, lengths)))


def scan_pass(
    top: int, scale: float, x: Tensor, U: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The kernel on what is known to fit and to be dense: states, the last ones, and each pair's largest |value|."""
    states, last, peak = pool.empty(*x.shape[:2], U.shape[0]), torch.empty_like(z0), torch.empty_like(a)
    problem = problem_of(states, a, b, z0, lengths, top, scale)
    driven = _Driven(U.shape[1], address(x), address(U), None, None)
    call("qornn_driven_scan", ctypes.byref(problem), ctypes.byref(driven), address(last), address(peak))
    return states, last, peak


def _scan_gradients(
    dstates: Tensor | None,
    dlast: Tensor | None,
    x: Tensor,
    U: Tensor,
    a: Tensor,
    b: Tensor,
    z0: Tensor,
    lengths: Tensor | None,
    states: Tensor,
    scale: float,
    wanted: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, U, a, b and z0; that of x is empty where it is not needed."""
    check_driven(x, U, a, b, z0, lengths, 0, scale)
    check_scan_gradients(dstates, dlast, states)
    tensors = (dstates, dlast, x, U, a, b, z0, lengths, states)
    dx, dU, da, db, dz0 = scan_pass_back(scale, wanted, *map(_dense, tensors))
    return x.new_empty(0) if dx is None else dx, dU, da, db, dz0


def scan_pass_back(
    scale: float, wanted: bool, dstates: Tensor | None, dlast: Tensor | None, *kept: Any
) -> tuple[Tensor | None, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, U, a, b and z0, of what is known to fit and to be dense: the forward pass kept it."""
    x, U, a, b, z0, lengths, states = kept
    dx, (dU, da, db, dz0) = pool.empty(*x.shape) if wanted else None, map(torch.empty_like, (U, a, b, z0))
    problem = problem_of(states, a, b, z0, lengths, 0, scale)
    gradients = Gradients(*map(address, (dstates, dlast, None, da, db, dz0)))
    driven = _Driven(U.shape[1], *map(address, (x, U, dx, dU)))
    call("qornn_driven_scan_backward", ctypes.byref(problem), ctypes.byref(gradients), ctypes.byref(driven))
    return dx, dU, da, db, dz0


mix_op = torch.library.custom_op("qornn::mix", _mixed, mutates_args=())
mix_backward_op = torch.library.custom_op("qornn::mix_backward", _mix_gradients, mutates_args=())
scan_op = torch.library.custom_op("qornn::driven_scan", _scanned, mutates_args=())
scan_backward_op = torch.library.custom_op("qornn::driven_scan_backward", _scan_gradients, mutates_args=())


@mix_op.register_fake
def _(x: Tensor, C: Tensor, c: Tensor, skip: Any, S: Any, step: Any, top: int) -> Any:
    shape = (*x.shape[:-1], len(C))
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int8), x.new_empty(())


@mix_backward_op.register_fake
def _(dy: Tensor, keep: Any, x: Tensor, C: Tensor, skip: Any, S: Any, wanted: list[bool]) -> Any:
    dx = x.new_empty(x.shape if wanted[0] else 0)
    dskip = x.new_empty(0 if skip is None or not wanted[1] else skip.shape)
    return dx, C.new_empty(C.shape), C.new_empty(len(C)), dskip, C.new_empty(0 if S is None else S.shape)


@scan_op.register_fake
def _(x: Tensor, U: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Any, top: int, scale: float) -> Any:
    return x.new_empty((*x.shape[:2], len(U))), z0.new_empty(z0.shape), a.new_empty(a.shape)


@scan_backward_op.register_fake
def _(
    dstates: Any,
    dlast: Any,
    x: Any,
    U: Any,
    a: Any,
    b: Any,
    z0: Any,
    lengths: Any,
    states: Any,
    scale: Any,
    wanted: Any,
) -> Any:
    return x.new_empty(x.shape if wanted else 0), *(t.new_empty(t.shape) for t in (U, a, b, z0))


def _keep_mix(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, C, _, skip, S, _, _ = inputs
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(output[1], x, C, skip, S)


def _mix_backward(
    ctx: Any, dy: Tensor | None, *_: Any, compute: Callable[..., Any] = mix_backward_op
) -> tuple[Tensor | None, ...]:
    if dy is None:
        return (None,) * 7
    needs = ctx.needs_input_grad
    dx, dC, dc, dskip, dS = compute(dy, *ctx.saved_tensors, [needs[0], needs[3]])
    found = zip(needs, (dx, dC, dc, dskip, dS, None, None), strict=True)
    return tuple(gradient if needed else None for needed, gradient in found)


def _keep_scan(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.scale = inputs[7]
    ctx.set_materialize_grads(False)  # reading the last state alone must not build a (B, T, 2p) tensor of zeros
    ctx.mark_non_differentiable(output[2])
    ctx.save_for_backward(*inputs[:6], output[0])


def _scan_backward(
    ctx: Any,
    dstates: Tensor | None,
    dlast: Tensor | None,
    _: Any,
    compute: Callable[..., Any] = scan_backward_op,
) -> tuple[Tensor | None, ...]:
    dx, *others = compute(dstates, dlast, *ctx.saved_tensors, ctx.scale, ctx.needs_input_grad[0])
    return dx if ctx.needs_input_grad[0] else None, *others, None, None, None


torch.library.register_autograd("qornn::mix", _mix_backward, setup_context=_keep_mix)
torch.library.register_autograd("qornn::driven_scan", _scan_backward, setup_context=_keep_scan)


class _Mixing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
        output = _mixed(*inputs)
        _keep_mix(ctx, inputs, output)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return _mix_backward(ctx, *grads, compute=_mix_gradients)


class _Scanning(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
        output = _scanned(*inputs)
        _keep_scan(ctx, inputs, output)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return _scan_backward(ctx, grads[0], grads[1], None, compute=_scan_gradients)


def mix(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """y, where gradients pass, and the largest sum (); arguments as those of `_mixed`."""
    return (mix_op if torch.compiler.is_compiling() else _Mixing.apply)(*arguments)


def driven_scan(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Scaled states, the last ones and each pair's largest |value|; arguments as those of `_scanned`."""
    return (scan_op if torch.compiler.is_compiling() else _Scanning.apply)(*arguments)
