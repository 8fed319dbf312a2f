"""STE-pen: no projection, orthogonality only as a term of the loss (the paper's ablation)."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.maps.base import OrthogonalMap


@final
class Penalty(OrthogonalMap):
    """L(q_k(W), …) + λ‖W_q W_qᵀ − I‖_F² (paper, Penalized STE).

    [ours] The norm is squared, as in the appendix; the main text omits the square.
    """

    exact = False
    penalises = True

    def __init__(self, strength: float = 0.1) -> None:
        super().__init__()
        if not strength >= 0:
            raise SettingsError(f"the penalty's strength λ must be at least 0, got {strength}")
        self.strength = strength

    def penalty(self, W_q: Tensor) -> Tensor:
        identity = torch.eye(len(W_q), dtype=W_q.dtype, device=W_q.device)
        return self.strength * (W_q @ W_q.mT - identity).square().sum()

    def extra_repr(self) -> str:
        return f"strength={self.strength}"
