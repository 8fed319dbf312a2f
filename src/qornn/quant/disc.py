"""Complex numbers of the unit disc on a grid, so that stability is a fact about integers."""

from __future__ import annotations

import torch
from torch import Tensor

from qornn.quant.base import round_half_away


def on_disc(a: Tensor, b: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Whole numbers â, b̂ with â² + b̂² ≤ 4^(bits−1): the nearest, stepped towards zero while outside the disc.

    â in −(2^L − 1)..2^L and b̂ in −2^L..2^L − 1, L = bits − 1: −â and b̂ fit `bits` bits, and λ = 1 exists.
    """
    top = 2 ** (bits - 1)
    a, b = (round_half_away(v.detach() * top) for v in (a, b))
    a, b = a.clamp(-(top - 1), top), b.clamp(-top, top - 1)
    for _ in range(3):  # a rounded point is at most 0.71 outside: one step of the larger part is enough, or nearly
        outside = a * a + b * b > top * top
        if not torch.compiler.is_compiling() and not bool(outside.any()):
            break
        larger = a.abs() >= b.abs()
        a = torch.where(outside & larger, a - a.sign(), a)
        b = torch.where(outside & ~larger, b - b.sign(), b)
    return a, b
