"""The recurrences in operators that torch itself has, for torch.export: the program runs without this package.

One step is written down once and scanned over time, so that the program is small and takes sequences of any length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from qornn.recurrence.reference import check_structure, transform
from qornn.recurrence.rotations import rounded

HAS_SCAN = torch.__version__ >= (2, 8)  # type: ignore[operator]  # older ones do not export it: steps are unrolled


def exporting() -> bool:
    """Whether torch.export is tracing. torch.compile is not meant: it runs the package's own operators."""
    known = getattr(torch.compiler, "is_exporting", None)  # from torch 2.7 on
    if known is not None:
        return known()
    return torch.compiler.is_compiling() and not torch.compiler.is_dynamo_compiling()


def recurrence(
    x: Tensor,
    W: Tensor,
    U: Tensor,
    b: Tensor | None,
    h0: Tensor,
    lengths: Tensor | None,
    activation: str,
) -> tuple[Tensor, Tensor]:
    """`reference.recurrence`: all states (B, T, n_h), and the state (B, n_h) at each sequence's end."""
    if W.ndim == 1:  # written out: torch takes half a minute to trace a fast transform inside a scan
        check_structure(W)
        W = W[:, None] * transform(torch.eye(W.shape[0], dtype=W.dtype, device=W.device)) / math.sqrt(W.shape[0])
    Wt = W.mT

    def step(h: Tensor, read: tuple[Tensor, Tensor | None]) -> Tensor:
        drive, past = read
        return _zero(_activated(torch.addmm(drive, h, Wt), b, activation), past)

    past = _past_the_end(x, lengths)
    return _ended(_over_time(step, h0, _drive(x, U, past), past), lengths)


def scan(
    drive: Tensor, a: Tensor, b: Tensor, z0: Tensor, lengths: Tensor | None, top: int, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`rotations.scan`, whose largest values are those of training alone: they are zeros here."""

    def step(z: Tensor, read: tuple[Tensor, Tensor | None]) -> Tensor:
        drive_t, past = read
        re, im = z.chunk(2, -1)
        v = _zero(torch.cat([a * re - b * im, a * im + b * re], -1) + drive_t, past)
        return rounded(v).clamp(-top, top) if top else v

    past = _past_the_end(drive, lengths)
    states, last = _ended(_over_time(step, z0, drive.transpose(0, 1), past), lengths)
    return states if scale == 1 else states * scale, last, torch.zeros_like(a)


def _over_time(
    step: Callable[[Tensor, tuple[Tensor, Tensor | None]], Tensor],
    state: Tensor,  # (B, n)
    drive: Tensor,  # (T, B, n)
    past: Tensor | None,  # (T, B, 1)
) -> Tensor:
    """The states that `step` gives one after another.  # (T, B, n)"""
    if HAS_SCAN:
        from torch._higher_order_ops.scan import scan as scan_over

        def once(state: Tensor, read: Any) -> tuple[Tensor, Tensor]:
            drive_t, past_t = read if isinstance(read, tuple | list) else (read, None)
            state = step(state, (drive_t, past_t))
            return state, state.clone()  # the operator's outputs must not share memory

        return scan_over(once, state.clone(), drive if past is None else (drive, past), dim=0)[1]
    states = []
    for t in range(drive.shape[0]):
        state = step(state, (drive[t], None if past is None else past[t]))
        states.append(state)
    return torch.stack(states)


def _activated(z: Tensor, b: Tensor | None, activation: str) -> Tensor:
    if activation == "modrelu" and b is not None:
        return z.sign() * torch.relu(z.abs() + b)
    z = z if b is None else z + b
    return z.relu() if activation == "relu" else z.tanh() if activation == "tanh" else z


def _drive(x: Tensor, U: Tensor, past: Tensor | None) -> Tensor:
    """U x_t of all steps; for codes a column of U is read instead of multiplied.  # (T, B, n_h)"""
    x = x.transpose(0, 1)
    if x.ndim == 2:
        return F.embedding(x if past is None else x.masked_fill(past[..., 0], 0), U.mT)
    return _zero(x, past) @ U.mT


def _zero(v: Tensor, past: Tensor | None) -> Tensor:
    return v if past is None else v.masked_fill(past, 0)


def _ended(states: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """States (T, B, n) with the batch first, and the state at each sequence's end."""
    if lengths is None:
        return states.transpose(0, 1), states[-1]
    rows = torch.arange(states.shape[1], device=states.device)
    return states.transpose(0, 1), states[lengths - 1, rows]


def _past_the_end(x: Tensor, lengths: Tensor | None) -> Tensor | None:
    """True where a step lies past its sequence's end.  # (T, B, 1)"""
    if lengths is None:
        return None
    return (torch.arange(x.shape[1], device=x.device)[:, None] >= lengths)[..., None]
