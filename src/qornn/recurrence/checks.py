"""Everything the kernel takes on trust: shapes, types, codes and lengths."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.recurrence.reference import check_structure

LARGEST_TOP = (1 << 23) - 1  # up to here float32 has every half, so rounding is exact


def check(
    x: Tensor,
    W: Tensor,
    U: Tensor,
    b: Tensor | None,
    V: Tensor | None,
    b_o: Tensor | None,
    h0: Tensor,
    lengths: Tensor | None,
    *,
    codes_checked: bool = False,
) -> None:
    """Refuse a problem that the kernel would read or write past the end of."""
    check_structure(W)
    B, T, n_h, n_i = len(x), x.shape[1] if x.ndim > 1 else 0, len(W), U.shape[-1]
    expect(W=(W, (n_h,) * min(W.ndim, 2)), U=(U, (n_h, n_i)), b=(b, (n_h,)), h0=(h0, (B, n_h)))
    expect(V=(V, (0 if V is None else len(V), n_h)), b_o=(b_o, (0 if V is None else len(V),)))
    if not B or not T:
        raise SettingsError(f"x must hold at least one sequence of at least one step, got shape {tuple(x.shape)}")
    if x.is_floating_point():
        expect(x=(x, (B, T, n_i)))
    else:
        _expect_integers(x, (B, T), "codes")
        if not codes_checked:
            check_codes(x, n_i)
    if lengths is not None:
        _expect_integers(lengths, (B,), "lengths")
        _expect_within(lengths, "lengths", 1, T)


def check_codes(x: Tensor, n_i: int) -> None:
    """Refuse codes (B, T) that U has no column for; other inputs pass. One look at every code: done once per batch."""
    if not x.is_floating_point() and not torch.compiler.is_compiling():
        _expect_within(x, "codes", 0, n_i - 1)


def check_scan(drive: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Tensor | None, top: int, scale: float) -> None:
    """Refuse what the scan of rotations would read or write past the end of."""
    B, T = (*drive.shape, 0, 0)[:2]
    _expect_as(drive, drive=(drive, (B, T, 2 * a.numel())))
    _check_turns(drive, B, T, a, b, z0, lengths, top, scale)


def _check_turns(
    like: Tensor,
    B: int,
    T: int,
    a: Tensor,
    b: Tensor,
    z0: Tensor,
    lengths: Tensor | None,
    top: int,
    scale: float,
) -> None:
    p = a.numel()
    _expect_as(like, a=(a, (p,)), b=(b, (p,)), z0=(z0, (B, 2 * p)))
    if not B or not T or not p:
        raise SettingsError(f"drive must hold at least one step of one pair, got shape {(B, T, 2 * p)}")
    _expect_top(top, 0)
    if not (0 < scale < math.inf and math.frexp(scale)[0] == 0.5):
        raise SettingsError(f"scale must be a power of two, got {scale}")
    if lengths is not None:
        _expect_integers(lengths, (B,), "lengths")
        if not torch.compiler.is_compiling():
            _expect_within(lengths, "lengths", 1, T)


def check_scan_gradients(dstates: Tensor | None, dlast: Tensor | None, states: Tensor) -> None:
    B, T, width = states.shape
    _expect_as(states, dstates=(dstates, (B, T, width)), dlast=(dlast, (B, width)))


def check_rounded_relu(acc: Tensor, step: Tensor, top: int) -> None:
    if not acc.numel():
        raise SettingsError(f"acc must hold at least one value, got shape {tuple(acc.shape)}")
    _expect_as(acc, step=(step, ()))
    _expect_top(top, 1)


def check_mix(x: Tensor, C: Tensor, c: Tensor, skip: Tensor | None, S: Tensor | None, top: int) -> None:
    """Refuse what a mix would read or write past the end of."""
    d, n = C.shape
    rows = x.shape[:-1]
    _expect_as(C, x=(x, (*rows, n)), c=(c, (d,)))
    if (skip is None) != (S is None):
        raise SettingsError("a mix takes both a skip and S, or neither")
    if skip is not None and S is not None:
        _expect_as(C, skip=(skip, (*rows, S.shape[-1])), S=(S, (d, S.shape[-1])))
    if not x.numel() or not d:
        raise SettingsError(f"x must hold at least one value, got shape {tuple(x.shape)}")
    _expect_top(top, 1)


def check_driven(
    x: Tensor, U: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Tensor | None, top: int, scale: float
) -> None:
    """The same of a scan whose drive is U x."""
    B, T = (*x.shape, 0, 0)[:2]
    n = U.shape[1]
    _expect_as(U, x=(x, (B, T, n)), U=(U, (2 * a.numel(), n)))
    if not n:
        raise SettingsError("x must have at least one number per step")
    _check_turns(U, B, T, a, b, z0, lengths, top, scale)


def _expect_top(top: int, least: int) -> None:
    if not least <= top <= LARGEST_TOP:
        raise SettingsError(f"top must lie in {least}..{LARGEST_TOP}, got {top}")


def _expect_as(like: Tensor, **tensors: tuple[Tensor | None, tuple[int, ...]]) -> None:
    for name, (t, shape) in tensors.items():
        if t is not None and (t.shape != shape or t.dtype != like.dtype):
            raise SettingsError(
                f"{name} must be {like.dtype} of shape {shape}, got {t.dtype} of shape {tuple(t.shape)}"
            )


def expect(**tensors: tuple[Tensor | None, tuple[int, ...]]) -> None:
    for name, (t, shape) in tensors.items():
        if t is not None and (t.shape != shape or t.dtype != torch.float32):
            raise SettingsError(f"{name} must be float32 of shape {shape}, got {t.dtype} of shape {tuple(t.shape)}")


def _expect_integers(t: Tensor, shape: tuple[int, ...], name: str) -> None:
    if t.shape != shape or t.dtype != torch.int64:
        raise SettingsError(f"{name} must be int64 of shape {shape}, got {t.dtype} of shape {tuple(t.shape)}")


def _expect_within(t: Tensor, name: str, low: int, high: int) -> None:
    least, most = (int(v) for v in torch.aminmax(t))
    if least < low or most > high:
        raise SettingsError(f"{name} must lie in {low}..{high}, got {least}..{most}")
