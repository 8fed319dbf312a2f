"""The native scan of rotations and rounded ReLU as torch operators; `rotations` specifies them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from qornn.recurrence import pool
from qornn.recurrence.checks import check_rounded_relu, check_scan, check_scan_gradients
from qornn.recurrence.native import PATH, library
from qornn.recurrence.once import refuse_second_derivative

_i64, _i32, _pointer = ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p


class _Rotations(ctypes.Structure):  # qornn_rotations in rotations.h
    _fields_ = (
        *((name, _i64) for name in ("B", "T", "p", "top")),
        ("scale", ctypes.c_double),
        *((name, _i32) for name in ("threads", "wide")),
        *((name, _pointer) for name in ("a", "b", "z0", "lengths", "states")),
    )


class Gradients(ctypes.Structure):  # qornn_rotations_gradients in rotations.h
    _fields_ = tuple((name, _pointer) for name in ("states", "last", "drive", "a", "b", "z0"))


def usable(*tensors: Tensor | None) -> bool:
    """float32 and float64 on the CPU go native; everything else goes to the reference."""
    return PATH is not None and all(
        t is None or (t.device.type == "cpu" and t.dtype in (torch.float32, torch.float64, torch.int64))
        for t in tensors
    )


@torch.library.custom_op("qornn::scan", mutates_args=())
def scan_op(
    drive: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Tensor | None, top: int, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Scaled states (B, T, 2p), the states at the sequences' ends (B, 2p), and each pair's largest |value| (p,)."""
    check_scan(drive, a, b, z0, lengths, top, scale)
    drive, a, b, z0 = (t.detach().contiguous() for t in (drive, a, b, z0))
    lengths = None if lengths is None else lengths.contiguous()
    states, last, peak = pool.empty(*drive.shape, dtype=drive.dtype), torch.empty_like(z0), torch.empty_like(a)
    problem = problem_of(states, a, b, z0, lengths, top, scale)
    call("qornn_scan", ctypes.byref(problem), *(address(t) for t in (drive, last, peak)))
    return states, last, peak


def scan_call(drive: Tensor, *, top: int) -> Callable[[], object] | None:
    """The kernel alone on memory that is there already, for measurements; None without one."""
    if not usable(drive):
        return None
    B, _, width = drive.shape
    a, z0, states = drive.new_full((width // 2,), 0.5), drive.new_zeros(B, width), torch.empty_like(drive)
    last, peak = torch.empty_like(z0), torch.empty_like(a)
    problem, alive = problem_of(states, a, a, z0, None, top, 1.0), (a, z0, states)

    def once() -> object:
        call("qornn_scan", ctypes.byref(problem), *(address(t) for t in (drive, last, peak)))
        return alive

    return once


@torch.library.custom_op("qornn::scan_backward", mutates_args=())
def scan_backward_op(
    dstates: Tensor | None,
    dlast: Tensor | None,
    a: Tensor,
    b: Tensor,
    z0: Tensor,
    lengths: Tensor | None,
    states: Tensor,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of the drive (B, T, 2p), of a and b (p,) and of z0 (B, 2p)."""
    check_scan(states, a, b, z0, lengths, 0, scale)
    check_scan_gradients(dstates, dlast, states)
    states, a, b, z0 = (t.detach().contiguous() for t in (states, a, b, z0))
    dstates, dlast, lengths = (None if t is None else t.detach().contiguous() for t in (dstates, dlast, lengths))
    ddrive, da, db, dz0 = pool.empty(*states.shape, dtype=states.dtype), *(torch.empty_like(t) for t in (a, b, z0))
    problem = problem_of(states, a, b, z0, lengths, 0, scale)
    gradients = Gradients(*(address(t) for t in (dstates, dlast, ddrive, da, db, dz0)))
    call("qornn_scan_backward", ctypes.byref(problem), ctypes.byref(gradients))
    return ddrive, da, db, dz0


@torch.library.custom_op("qornn::rounded_relu", mutates_args=())
def rounded_relu_op(acc: Tensor, step: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """step·min(R(relu(acc)/step), top), relu(acc) where step is 0, and the largest of acc ()."""
    check_rounded_relu(acc, step, top)
    acc = acc.detach().contiguous()
    y, peak = pool.empty(*acc.shape, dtype=acc.dtype), acc.new_empty(())
    how = (float(step), top, torch.get_num_threads(), acc.dtype == torch.float64)
    call("qornn_rounded_relu", acc.numel(), address(acc), *how, address(y), address(peak))
    return y, peak


@scan_op.register_fake
def _(drive: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Any, top: int, scale: float) -> Any:
    return drive.new_empty(drive.shape), z0.new_empty(z0.shape), a.new_empty(a.shape)


@scan_backward_op.register_fake
def _(dstates: Any, dlast: Any, a: Tensor, b: Tensor, z0: Tensor, lengths: Any, states: Tensor, scale: float) -> Any:
    return states.new_empty(states.shape), *(t.new_empty(t.shape) for t in (a, b, z0))


@rounded_relu_op.register_fake
def _(acc: Tensor, step: Any, top: int) -> Any:
    return acc.new_empty(acc.shape), acc.new_empty(())


def _keep_scan(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, a, b, z0, lengths, _, ctx.scale = inputs
    ctx.set_materialize_grads(False)  # reading the last state alone must not build a (B, T, 2p) tensor of zeros
    ctx.mark_non_differentiable(output[2])
    ctx.save_for_backward(a, b, z0, lengths, output[0])


def _scan_backward(ctx: Any, dstates: Tensor | None, dlast: Tensor | None, _: Any) -> tuple[Tensor | None, ...]:
    refuse_second_derivative()
    return *scan_backward_op(dstates, dlast, *ctx.saved_tensors, ctx.scale), None, None, None


def _keep_relu(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(inputs[0])


def _relu_backward(ctx: Any, dy: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    refuse_second_derivative()
    (acc,) = ctx.saved_tensors
    return torch.ops.aten.threshold_backward(dy, acc, 0), None, None


torch.library.register_autograd("qornn::scan", _scan_backward, setup_context=_keep_scan)
torch.library.register_autograd("qornn::rounded_relu", _relu_backward, setup_context=_keep_relu)


def problem_of(
    states: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Tensor | None, top: int, scale: float
) -> _Rotations:
    B, T, _ = states.shape
    wide = states.dtype == torch.float64
    return _Rotations(
        B, T, len(a), top, scale, torch.get_num_threads(), wide, *(address(t) for t in (a, b, z0, lengths, states))
    )


def address(t: Tensor | None) -> int | None:
    return None if t is None else t.data_ptr()


def call(name: str, *arguments: Any) -> None:
    if getattr(library(), name)(*arguments) != 0:
        raise MemoryError(f"{name}: not enough memory for partial sums")
