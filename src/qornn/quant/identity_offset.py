"""W_q = I + q_k(W − I): for networks that stay close to the identity (the adding task with STE-projUNN)."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.quant.base import Quantizer
from qornn.quant.uniform import Uniform


@final
class IdentityOffset(Quantizer):
    """I + q_k(W − I), alpha = max|W − I| (paper, Adding task).

    [ours] alpha is that of W − I. The paper says the plain quantizer "reverts to the identity"; the real cause is that
    q_k(I) = (1 − 2^(1−k)) I shrinks: at k = 8 to 0.3 % after 750 steps.
    """

    def __init__(self, bits: int, *, scale: str = "tensor") -> None:
        super().__init__()
        self.uniform = Uniform(bits, scale=scale)

    @property
    def bits(self) -> int:
        return self.uniform.bits

    @bits.setter
    def bits(self, bits: int) -> None:
        self.uniform.bits = bits

    @property
    def scale(self) -> str:
        return self.uniform.scale

    def to_int(self, W: Tensor) -> tuple[Tensor, Tensor]:
        if W.ndim != 2 or W.shape[0] != W.shape[1]:
            raise SettingsError(f"the identity offset needs a square matrix, got shape {tuple(W.shape)}")
        return self.uniform.to_int(W - _identity_like(W))

    def dequantize(self, integers: Tensor, alpha: Tensor) -> Tensor:
        return _identity_like(integers) + self.uniform.dequantize(integers, alpha)


def _identity_like(W: Tensor) -> Tensor:
    return torch.eye(len(W), dtype=W.dtype, device=W.device)
