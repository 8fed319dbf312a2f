"""The paper's quantizer q_k: a uniform grid of 2^k levels, scaled by the largest entry."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from qornn.bits import check_bits
from qornn.errors import SettingsError, unknown
from qornn.quant.base import Quantizer, round_half_away

SCALES = ("tensor", "row")


@final
class Uniform(Quantizer):
    """Nearest point of the k-bit grid (paper, Quantization).

    alpha = max|W|, step = alpha / 2^(k−1), integer = clamp(round(W / step), −2^(k−1), 2^(k−1) − 1)

    Beyond the paper: one alpha per row (`scale="row"`).
    """

    def __init__(self, bits: int, *, scale: str = "tensor") -> None:
        super().__init__()
        self.bits = check_bits(bits)
        if scale not in SCALES:
            raise unknown("scale", scale, SCALES)
        self.scale = scale

    def to_int(self, W: Tensor) -> tuple[Tensor, Tensor]:
        if not W.numel():
            raise SettingsError(f"cannot quantize an empty matrix, got shape {tuple(W.shape)}")
        W = W.detach()
        alpha = W.abs().amax(-1, keepdim=True) if self.scale == "row" else W.abs().max()
        top = 2 ** (self.bits - 1)
        step = alpha / top
        units = torch.where(step > 0, W / step, torch.zeros_like(W))  # alpha = 0 (or lost to underflow): all zeros
        integers = round_half_away(units).clamp(-top, top - 1)
        return torch.where(units.isnan(), W, integers), alpha  # NaN weights stay visible

    def dequantize(self, integers: Tensor, alpha: Tensor) -> Tensor:
        return integers * (alpha / 2 ** (self.bits - 1))

    def extra_repr(self) -> str:
        return f"bits={self.bits}, scale={self.scale!r}"
