"""Checks of inputs, lengths and first states, and their conversion for the recurrence."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from qornn.errors import SettingsError


def refuse_transforms() -> None:
    """torch.func cannot look into the recurrence's own backward pass, and would say so in words about its parts."""
    if torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is None:
        return
    raise SettingsError(
        "torch.func (vmap, grad, jvp, ...) does not work on this network: call it on a batch (B, T, n_i), and take "
        "gradients with loss.backward() or torch.autograd.grad"
    )


def checked_lengths(x: Tensor, lengths: Tensor | None) -> Tensor | None:
    """True lengths as (B,) int64, each in 1..T."""
    if lengths is None:
        return None
    lengths = torch.as_tensor(lengths, device=x.device)
    if lengths.shape != (x.shape[0],) or lengths.is_floating_point():
        raise SettingsError(
            f"lengths must be {len(x)} integers, one per sequence; got shape {tuple(lengths.shape)}, {lengths.dtype}"
        )
    if not torch.compiler.is_compiling() and not bool(((lengths >= 1) & (lengths <= x.shape[1])).all()):
        raise SettingsError(
            f"lengths must lie in 1..{x.shape[1]} (the padded length), got {int(lengths.min())}..{int(lengths.max())}"
        )
    return lengths.long()


def checked_input(x: Tensor, lengths: Tensor | None, n_i: int, dtype: torch.dtype) -> Tensor:
    """x (B, T, n_i) in the network's type, or codes (B, T) as int64, whose range the recurrence checks."""
    if x.ndim == 2 and not x.is_floating_point():
        _refuse_empty(x)
        return without_padding(x, lengths).long()
    if x.ndim != 3 or x.shape[2] != n_i:
        raise SettingsError(
            f"x must be (B, T, {n_i}), or integer codes (B, T) below {n_i}; got shape {tuple(x.shape)}, {x.dtype}"
        )
    _refuse_empty(x)
    if not x.is_floating_point():
        raise SettingsError(f"x of shape (B, T, n_i) must be floating point, got {x.dtype}; call x.float() first")
    return x.to(dtype)


def checked_state(x: Tensor, h0: Tensor | None, n_h: int, like: Tensor) -> Tensor:
    """h0 (B, n_h) in the network's type; zeros where there is none."""
    if h0 is None:
        return like.new_zeros(x.shape[0], n_h)  # not len(x): torch.export would fix the size of a batch
    if h0.shape != (x.shape[0], n_h):
        raise SettingsError(f"h0 must be (B, n_h) = ({len(x)}, {n_h}), got shape {tuple(h0.shape)}")
    return h0.to(like.dtype)


def without_autocast(x: Tensor) -> AbstractContextManager[None]:
    """Inside the context autocast is off. Without autocast nothing is entered, because entering takes long."""
    kind = x.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def refuse_non_finite(x: Tensor, dtype: torch.dtype, lengths: Tensor | None) -> None:
    """A NaN or an infinity in one sample would silently poison every weight at the next step."""
    if torch.compiler.is_compiling() or not isinstance(x, Tensor) or not x.is_floating_point() or x.ndim != 3:
        return
    largest = torch.finfo(dtype).max  # what is too large for the network's numbers is infinite in them
    if x.numel() and all(abs(float(v)) <= largest for v in torch.aminmax(x.detach())):  # one look; NaN fails it
        return
    bad = ~(x.abs() <= largest)
    if not bool(bad.any()):
        return
    if lengths is not None:
        bad &= ~_padding(x, lengths)[..., None]
    if bool(bad.any()):
        place = tuple(bad.nonzero()[0].tolist())
        value = "NaN" if bool(x[place].isnan()) else f"{float(x[place]):g}"
        raise SettingsError(
            f"x holds {value}, first at (sequence, step, channel) = {place}; fill or drop missing values first, and "
            f"keep the others finite in {dtype}"
        )


def without_padding(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Zeros past each sequence's end, whatever was there.  # (B, T) or (B, T, n)"""
    if lengths is None:
        return x
    padding = _padding(x, lengths)
    return x.masked_fill(padding if x.ndim == 2 else padding[..., None], 0)


def _refuse_empty(x: Tensor) -> None:
    if not (x.shape[0] and x.shape[1]):
        raise SettingsError(f"x must hold at least one sequence of at least one step, got shape {tuple(x.shape)}")


def _padding(x: Tensor, lengths: Tensor) -> Tensor:
    """True past each sequence's end.  # (B, T)"""
    return torch.arange(x.shape[1], device=x.device) >= torch.as_tensor(lengths, device=x.device)[:, None]
