"""The native recurrence as torch operators: autograd, torch.compile and DDP see ordinary ones.

The kernel (csrc/) is called through ctypes. Like the reference it keeps only the states for the backward pass; it also
reads the gradient of a readout, y = V h + b_o or V relu(h) + b_o, on the way, and sums the gradients of all weights
inside.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from qornn._io.libraries import library_path
from qornn.recurrence import pool
from qornn.recurrence.checks import check, expect
from qornn.recurrence.once import refuse_second_derivative
from qornn.recurrence.reference import ACTIVATIONS, state_gradient

_i64, _i32, _pointer = ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p

PATH = library_path("recurrence")  # looked for once, here: torch.compile cannot trace a look at the disk


class _Problem(ctypes.Structure):  # qornn_problem in recurrence.h
    _fields_ = (
        *((name, _i64) for name in ("B", "T", "n_i", "n_h", "n_o")),
        *((name, _i32) for name in ("activation", "threads", "readout_relu")),
        *((name, _pointer) for name in ("x", "codes", "W", "u", "U", "b", "V", "b_o", "h0", "lengths", "h", "y")),
    )


class _Gradients(ctypes.Structure):  # qornn_gradients in recurrence.h
    _fields_ = (
        ("states", _pointer),
        ("states_b", _i64),
        ("states_t", _i64),
        ("dy", _pointer),
        ("dy_b", _i64),
        ("dy_t", _i64),
        *((name, _pointer) for name in ("last", "dW", "dU", "db", "dV", "dz0", "dz")),
    )


@cache
def library() -> ctypes.CDLL | None:
    """The kernel, or None where the package was installed without one."""
    if PATH is None:
        return None
    found = ctypes.CDLL(str(PATH))
    found.qornn_isa.restype = ctypes.c_char_p
    found.qornn_use_isa.argtypes = (ctypes.c_char_p,)
    found.qornn_use_threads.argtypes = (_pointer,)
    found.qornn_scan.argtypes = found.qornn_mix_forward.argtypes = found.qornn_driven_scan.argtypes = (_pointer,) * 4
    found.qornn_rounded_relu.argtypes = (_i64, _pointer, ctypes.c_double, _i64, _i32, _i32, _pointer, _pointer)
    found.qornn_use_threads(_torch_threads())
    return found


def _torch_threads() -> int | None:
    """Address of GOMP_parallel in the OpenMP runtime torch itself runs on, where that is GNU's.

    After each of torch's operations its threads wait busily for the next one, for some 10 ms; threads of our own would
    share the cores with them meanwhile.
    """
    for path in sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*")):
        try:
            parallel = ctypes.CDLL(str(path)).GOMP_parallel  # the copy that is loaded already
        except (OSError, AttributeError):
            continue
        return ctypes.cast(parallel, _pointer).value
    return None


def usable(*tensors: Tensor | None) -> bool:
    """float32 on the CPU goes native; everything else goes to the reference."""
    return PATH is not None and all(
        t is None or (t.device.type == "cpu" and t.dtype in (torch.float32, torch.int64)) for t in tensors
    )


@torch.library.custom_op("qornn::recurrence", mutates_args=())
def forward_op(
    x: Tensor,
    W: Tensor,
    U: Tensor,
    b: Tensor | None,
    V: Tensor | None,
    b_o: Tensor | None,
    h0: Tensor,
    lengths: Tensor | None,
    activation: str,
    readout_relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """States (T, B, n_h), outputs (T, B, n_o) or none (0), and the states at the sequences' ends (B, n_h)."""
    check(x, W, U, b, V, b_o, h0, lengths)
    h, y, last = _empty_outputs(x, W, V, pool.empty(x.shape[1], len(x), len(W)))
    problem, alive = _problem(x, W, U, b, V, b_o, h0, lengths, h, y, activation, readout_relu)
    _call("qornn_forward", problem)
    del alive
    ends = -1 if lengths is None else (lengths - 1, torch.arange(len(x)))
    last.copy_(h[ends])
    return h, y, last


@torch.library.custom_op("qornn::recurrence_backward", mutates_args=())
def backward_op(
    dh: Tensor | None,
    dy: Tensor | None,
    dlast: Tensor | None,
    x: Tensor,
    W: Tensor,
    U: Tensor,
    b: Tensor | None,
    V: Tensor | None,
    h0: Tensor,
    lengths: Tensor | None,
    h: Tensor,
    activation: str,
    readout_relu: bool,
    learn_W: bool,
    every_step: bool,
    codes_checked: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of W, if it learns, U, b and V, and ∂L/∂z of the first step (B, n_h) and, if asked for, of every one.

    That one is (T, B, n_h). What is not asked for is empty. `codes_checked`: by the forward pass, on the same x.
    """
    check(x, W, U, b, V, None, h0, lengths, codes_checked=codes_checked)
    T, B, n_h = x.shape[1], len(x), len(W)
    expect(h=(h, (T, B, n_h)), dh=(dh, (T, B, n_h)), dlast=(dlast, (B, n_h)))
    expect(dy=(dy, (T, B, 0 if V is None else len(V))))
    dW, dU, db, dV, dz0, dz = _empty_gradients(W, U, b, V if dy is not None else None, h, learn_W, every_step)
    problem, alive = _problem(x, W, U, b, V, None, h0, lengths, h, None, activation, readout_relu)
    dh, dy = _rows(dh), _rows(dy)
    dlast = None if dlast is None else dlast.contiguous()
    gradients = _Gradients(
        _address(dh),
        *((0, 0) if dh is None else (dh.stride(1), dh.stride(0))),
        _address(dy),
        *((0, 0) if dy is None else (dy.stride(1), dy.stride(0))),
        _address(dlast),
        *(_address(t if t.numel() else None) for t in (dW, dU, db, dV, dz0, dz)),
    )
    _call("qornn_backward", problem, gradients)
    del alive
    return dW, dU, db, dV, dz0, dz


@forward_op.register_fake
def _(x: Tensor, W: Tensor, U: Any, b: Any, V: Tensor | None, *rest: Any) -> Any:
    return _empty_outputs(x, W, V)


@backward_op.register_fake
def _(
    dh: Any,
    dy: Tensor | None,
    dlast: Any,
    x: Tensor,
    W: Tensor,
    U: Tensor,
    b: Tensor | None,
    V: Tensor | None,
    h0: Any,
    lengths: Any,
    h: Tensor,
    activation: str,
    readout_relu: bool,
    learn_W: bool,
    every_step: bool,
    codes_checked: bool,
) -> Any:
    return _empty_gradients(W, U, b, V if dy is not None else None, h, learn_W, every_step)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, W, U, b, V, _, h0, lengths, *ctx.settings = inputs  # activation and readout_relu
    ctx.set_materialize_grads(False)  # the readout of one step alone must not build a (T, B, n_h) tensor of zeros
    ctx.save_for_backward(x, W, U, b, V, h0, lengths, output[0])


def _backward(ctx: Any, dh: Tensor | None, dy: Tensor | None, dlast: Tensor | None) -> tuple[Tensor | None, ...]:
    refuse_second_derivative()
    x, W, U, b, V, h0, lengths, h = ctx.saved_tensors
    if V is None:
        dy = None
    need = ctx.needs_input_grad
    dW, dU, db, dV, dz0, dz = backward_op(
        dh, dy, dlast, x, W, U, b, V, h0, lengths, h, *ctx.settings, need[1], need[0] and x.is_floating_point(), True
    )
    return (
        (dz @ U).transpose(0, 1) if need[0] else None,
        dW if need[1] else None,
        dU if need[2] else None,
        db if need[3] else None,
        dV if need[4] and dy is not None else None,
        dy.sum((0, 1)) if need[5] and dy is not None else None,
        state_gradient(dz0, W) if need[6] else None,
        None,
        None,
        None,
    )


torch.library.register_autograd("qornn::recurrence", _backward, setup_context=_setup_context)


def _empty_outputs(x: Tensor, W: Tensor, V: Tensor | None, h: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    B, T, n_h = x.shape[0], x.shape[1], W.shape[0]
    y = W.new_empty(0) if V is None else W.new_empty(T, B, V.shape[0])
    return W.new_empty(T, B, n_h) if h is None else h, y, W.new_empty(B, n_h)


def _empty_gradients(
    W: Tensor, U: Tensor, b: Tensor | None, V: Tensor | None, h: Tensor, learn_W: bool, every_step: bool
) -> tuple[Tensor, ...]:
    T, B, n_h = h.shape
    return (
        W.new_empty(W.shape if learn_W else 0),
        W.new_empty(n_h, U.shape[1]),
        W.new_empty(0 if b is None else n_h),
        W.new_empty(0, n_h) if V is None else W.new_empty(V.shape[0], n_h),
        W.new_empty(B, n_h),
        W.new_empty(T, B, n_h) if every_step else W.new_empty(0),
    )


def _problem(
    x: Tensor,
    W: Tensor,
    U: Tensor,
    b: Tensor | None,
    V: Tensor | None,
    b_o: Tensor | None,
    h0: Tensor,
    lengths: Tensor | None,
    h: Tensor,
    y: Tensor | None,
    activation: str,
    readout_relu: bool,
) -> tuple[_Problem, list[Tensor | None]]:
    """The C structure, and the tensors it points into, to be kept alive during the call."""
    dense = x.is_floating_point()
    parts = [None if t is None else t.detach().contiguous() for t in (x, W, U, b, V, b_o, h0, lengths)]
    x_, W_, *rest = (_address(t) for t in parts)
    n_o = 0 if V is None else V.shape[0]
    y_ = None if y is None or V is None else y.data_ptr()
    problem = _Problem(
        len(x),
        x.shape[1],
        U.shape[1],
        W.shape[0],
        n_o,
        ACTIVATIONS.index(activation),
        torch.get_num_threads(),
        readout_relu,
        *((x_, None) if dense else (None, x_)),
        *((W_, None) if W.ndim == 2 else (None, W_)),
        *rest,
        h.data_ptr(),
        y_,
    )
    return problem, parts


def _rows(t: Tensor | None) -> Tensor | None:
    """A gradient whose rows are dense, whatever the order of the rows."""
    return t if t is None or t.stride(-1) == 1 else t.contiguous()


def _address(t: Tensor | None) -> int | None:
    return None if t is None else t.data_ptr()


def _call(name: str, *structures: ctypes.Structure) -> None:
    if getattr(library(), name)(*(ctypes.byref(s) for s in structures)) != 0:
        raise MemoryError(f"{name}: not enough memory for the packed weights and partial sums")
