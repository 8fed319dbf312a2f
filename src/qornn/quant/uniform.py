"""The paper's quantizer q_k: a uniform grid of 2^k levels, scaled by the largest entry."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from qornn.bits import check_bits
from qornn.errors import SettingsError, unknown
from qornn.quant.base import Quantizer, round_half_away

SCALES = ("tensor", "row")
FITS = ("max", "mse")


@final
class Uniform(Quantizer):
    """Nearest point of the k-bit grid (paper, Quantization).

    alpha = max|W|, step = alpha / 2^(k−1), integer = clamp(round(W / step), −2^(k−1), 2^(k−1) − 1)

    Beyond the paper: one alpha per row (`scale="row"`), and alpha chosen to minimise ‖W − q_k(W)‖ (`fit="mse"`).
    """

    def __init__(self, bits: int, *, scale: str = "tensor", fit: str = "max") -> None:
        super().__init__()
        self.bits = check_bits(bits)
        if scale not in SCALES:
            raise unknown("scale", scale, SCALES)
        if fit not in FITS:
            raise unknown("fit", fit, FITS)
        self.scale = scale
        self.fit = fit

    def to_int(self, W: Tensor) -> tuple[Tensor, Tensor]:
        if not W.numel():
            raise SettingsError(f"cannot quantize an empty matrix, got shape {tuple(W.shape)}")
        W = W.detach()
        alpha = W.abs().amax(-1, keepdim=True) if self.scale == "row" else W.abs().max()
        if self.fit == "mse":
            alpha = self._least_squares(W, alpha)
        return self._round(W, alpha), alpha

    def dequantize(self, integers: Tensor, alpha: Tensor) -> Tensor:
        return integers * (alpha / 2 ** (self.bits - 1))

    def _round(self, W: Tensor, alpha: Tensor) -> Tensor:
        top = 2 ** (self.bits - 1)
        step = alpha / top
        units = torch.where(step > 0, W / step, torch.zeros_like(W))  # alpha = 0 (or lost to underflow): all zeros
        return torch.where(units.isnan(), W, round_half_away(units).clamp(-top, top - 1))  # NaN weights stay visible

    def _least_squares(self, W: Tensor, alpha: Tensor) -> Tensor:
        """The best of 40 shrinkages of the largest entry; exact enough, since the error is flat near its minimum."""
        best, best_error = alpha, torch.full_like(alpha, torch.inf)
        for factor in torch.linspace(0.3, 1.0, 40).tolist():
            candidate = alpha * factor
            error = (W - self.dequantize(self._round(W, candidate), candidate)).square()
            error = error.sum(-1, keepdim=True) if self.scale == "row" else error.sum()
            better = error < best_error
            best, best_error = torch.where(better, candidate, best), torch.where(better, error, best_error)
        return best

    def extra_repr(self) -> str:
        return f"bits={self.bits}, scale={self.scale!r}, fit={self.fit!r}"
