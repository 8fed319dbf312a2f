"""A mix, and the scan of rotations of U x, in plain torch: the specification of `native_mix`."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from qornn.recurrence import rotations


def mix(
    x: Tensor,  # (..., n)
    C: Tensor,  # (d, n)
    c: Tensor,  # (d,)
    skip: Tensor | None,  # (..., m)
    S: Tensor | None,  # (d, m)
    step: Tensor,  # ()
    top: int,
) -> tuple[Tensor, Tensor]:
    """y = rounded_relu(C x + c [+ S skip]), and the largest of the sums."""
    sums = F.linear(x, C) + c
    if skip is not None and S is not None:
        sums = sums + F.linear(skip, S)
    return rotations.rounded_relu(sums, step, top)


def driven_scan(
    x: Tensor,  # (B, T, n)
    U: Tensor,  # (2p, n)
    a: Tensor,
    b: Tensor,
    z0: Tensor,
    lengths: Tensor | None,
    top: int,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """The scan of drive = U x."""
    return rotations.scan(F.linear(x, U), a, b, z0, lengths, top, scale)
