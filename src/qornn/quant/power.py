"""A grid whose unit is a power of two, so that requantization is a shift."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from qornn.bits import check_bits
from qornn.errors import SettingsError, unknown
from qornn.quant.base import Quantizer, round_half_away, straight_through
from qornn.quant.uniform import SCALES


@final
class PowerOfTwo(Quantizer):
    """Nearest point of a k-bit grid with a power-of-two unit, one per row or one for the whole matrix.

    unit = 2^round(log2(max|W|/(2^(k−1) − ½))), integer = clamp(round(W/unit), −2^(k−1), 2^(k−1) − 1)

    The unit is rounded to the nearest power, so the largest entries may be clipped; the others gain half a bit.
    """

    def __init__(self, bits: int, *, scale: str = "row") -> None:
        super().__init__()
        self.bits = check_bits(bits)
        if scale not in SCALES:
            raise unknown("scale", scale, SCALES)
        self.scale = scale

    def unit(self, W: Tensor) -> Tensor:
        """The value of one unit: (rows, 1), or () for the whole matrix; 0 where all entries are."""
        if not W.numel():
            raise SettingsError(f"cannot quantize an empty matrix, got shape {tuple(W.shape)}")
        W = W.detach()
        largest = W.abs().amax(-1, keepdim=True) if self.scale == "row" else W.abs().max()
        ratio = largest / (2 ** (self.bits - 1) - 0.5)
        # By frexp, not log2: the same power on every machine. The mantissa is in [½, 1), and 2^−½ is halfway in log2.
        mantissa, _ = torch.frexp(ratio)
        power = ratio / mantissa  # exact: a number by its own mantissa
        unit = torch.where(mantissa < 0.5**0.5, power / 2, power)
        return torch.where(largest > 0, unit, torch.zeros_like(largest))

    def integers(self, W: Tensor, unit: Tensor) -> Tensor:
        """Whole numbers, in W's own type, at this unit; zeros where it is 0."""
        top = 2 ** (self.bits - 1)
        units = torch.where(unit > 0, W.detach() / unit, torch.zeros_like(W))
        return torch.where(units.isnan(), W.detach(), round_half_away(units).clamp(-top, top - 1))

    def at(self, W: Tensor, unit: Tensor) -> Tensor:
        """W_q at a unit that was chosen elsewhere; the gradient passes unchanged."""
        return straight_through(W, self.integers(W, unit) * unit)

    def to_int(self, W: Tensor) -> tuple[Tensor, Tensor]:
        unit = self.unit(W)
        return self.integers(W, unit), unit * 2 ** (self.bits - 1)

    def dequantize(self, integers: Tensor, alpha: Tensor) -> Tensor:
        return integers * (alpha / 2 ** (self.bits - 1))

    def extra_repr(self) -> str:
        return f"bits={self.bits}, scale={self.scale!r}"
