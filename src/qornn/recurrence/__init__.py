"""The recurrence as a pure function of inputs and weights: native where it can be, the reference everywhere else.

torch.export gets neither: see `portable`.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from qornn.recurrence import native, native_mix, native_rotations, portable, reference, rotations
from qornn.recurrence.checks import check_codes, check_driven, check_mix, check_rounded_relu, check_scan
from qornn.recurrence.portable import exporting
from qornn.recurrence.reference import ACTIVATIONS

__all__ = [
    "ACTIVATIONS",
    "check_codes",
    "driven_scan",
    "exporting",
    "in_use",
    "mix",
    "recurrence",
    "recurrence_with_readout",
    "rounded_relu",
    "scan",
]


def recurrence(
    x: Tensor,  # (B, T, n_i), or one-hot codes (B, T)
    W: Tensor,  # (n_h, n_h), or u (n_h,) of diag(u) S/√n_h, S Sylvester's matrix
    U: Tensor,  # (n_h, n_i)
    b: Tensor | None,  # (n_h,); modReLU adds it to |z|, every other activation to z
    h0: Tensor,  # (B, n_h)
    lengths: Tensor | None,  # (B,)
    activation: str,
) -> tuple[Tensor, Tensor]:
    """All states (B, T, n_h), zero past each sequence's end, and the state (B, n_h) at each sequence's end."""
    if exporting():
        return portable.recurrence(x, W, U, b, h0, lengths, activation)
    if not native.usable(x, W, U, b, h0, lengths):
        check_codes(x, U.shape[-1])  # the native one does so itself
        return reference.recurrence(x, W, U, b, h0, lengths, activation)
    h, _, last = native.forward_op(x, W, U, b, None, None, h0, lengths, activation, False)
    return h.transpose(0, 1), last


def recurrence_with_readout(
    x: Tensor,
    W: Tensor,
    U: Tensor,
    b: Tensor | None,
    V: Tensor,  # (n_o, n_h)
    b_o: Tensor,  # (n_o,)
    h0: Tensor,
    lengths: Tensor | None,
    activation: str,
    readout_relu: bool = False,
) -> tuple[Tensor, Tensor]:
    """y_t = V h_t + b_o, or V relu(h_t) + b_o, of all steps (B, T, n_o), and the state (B, n_h) at each sequence's end.

    The same as reading `recurrence`'s states, without ever making their gradient, a (B, T, n_h) tensor.
    """
    if exporting() or not native.usable(x, W, U, b, V, b_o, h0, lengths):
        states, last = recurrence(x, W, U, b, h0, lengths, activation)
        return F.linear(states.relu() if readout_relu else states, V, b_o), last
    _, y, last = native.forward_op(x, W, U, b, V, b_o, h0, lengths, activation, readout_relu)
    return y.transpose(0, 1), last


def scan(
    drive: Tensor,  # (B, T, 2p), in units of one state step
    a: Tensor,  # (p,)
    b: Tensor,  # (p,)
    z0: Tensor,  # (B, 2p)
    lengths: Tensor | None = None,  # (B,)
    top: int = 0,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """z_t = λ z_{t−1} + drive_t of p complex units λ = a + ib, rounded and held within ±top; top 0: neither.

    All states (B, T, 2p) times `scale`, a power of two, zero past each sequence's end; the state (B, 2p) at each
    sequence's end, not scaled; and of each pair the largest |value| before rounding and saturation (p,), which has no
    gradient. A row is p real parts, then p imaginary.
    """
    if exporting():
        return portable.scan(drive, a, b, z0, lengths, top, scale)
    if native_rotations.usable(drive, a, b, z0, lengths):
        return native_rotations.scan_op(drive, a, b, z0, lengths, top, scale)
    check_scan(drive, a, b, z0, lengths, top, scale)  # the native one does so itself
    return rotations.scan(drive, a, b, z0, lengths, top, scale)


def rounded_relu(acc: Tensor, step: Tensor | float, top: int = 127) -> tuple[Tensor, Tensor]:
    """step·min(R(relu(acc)/step), top), step a power of two or 0 for a plain ReLU; and the largest value of acc ()."""
    step = torch.as_tensor(step, dtype=acc.dtype, device=acc.device)
    if not exporting() and native_rotations.usable(acc):
        return native_rotations.rounded_relu_op(acc, step, top)
    check_rounded_relu(acc, step, top)
    return rotations.rounded_relu(acc, step, top)


def driven_scan(
    x: Tensor,  # (B, T, n)
    U: Tensor,  # (2p, n)
    a: Tensor,
    b: Tensor,
    z0: Tensor,
    lengths: Tensor | None = None,
    top: int = 0,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """`scan` of the drive U x, which is not made as a whole where U is narrow."""
    if not exporting() and native_mix.usable(U, x, a, b, z0):
        return native_mix.driven_scan(x, U, a, b, z0, lengths, top, scale)
    check_driven(x, U, a, b, z0, lengths, top, scale)
    return scan(F.linear(x, U), a, b, z0, lengths, top, scale)


def mix(
    x: Tensor,  # (..., n)
    C: Tensor,  # (d, n)
    c: Tensor,  # (d,)
    skip: Tensor | None = None,  # (..., m)
    S: Tensor | None = None,  # (d, m)
    step: Tensor | float = 0.0,
    top: int = 127,
) -> tuple[Tensor, Tensor]:
    """`rounded_relu` of C x + c [+ S skip], whose sums are not kept where C is narrow; and the largest sum ()."""
    step = torch.as_tensor(step, dtype=x.dtype, device=x.device)
    if not exporting() and native_mix.usable(C, x, c, skip, S):
        y, _, peak = native_mix.mix(x, C, c, skip, S, step, top)
        return y, peak
    check_mix(x, C, c, skip, S, top)
    sums = F.linear(x, C) + c
    return rounded_relu(sums if S is None or skip is None else sums + F.linear(skip, S), step, top)


def in_use() -> str:
    """Which recurrence float32 networks on the CPU run on."""
    library = native.library()
    return "reference" if library is None else f"native ({library.qornn_isa().decode()})"
