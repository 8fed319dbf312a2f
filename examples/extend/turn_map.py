"""A W that is not stored, as it is trained: pairs of units, turned by 90 degrees at every step."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.maps import MAPS, Structured


@final
class Turn(Structured):
    """(a, b) ← (−b, a) for each pair of units. W⁴ = I, so that a constant input does not accumulate."""

    biased = False  # without a bias, states stay on the grid of U and nothing is rounded
    permutes = True

    def raw(self, n_h: int) -> Tensor:
        if n_h % 2:
            raise SettingsError(f"map='turn' needs an even n_h, got {n_h}; take {n_h + 1}")
        return torch.tensor([-1.0, 1.0]).repeat(n_h // 2)

    def forward(self, W: Tensor) -> Tensor:
        partner = torch.arange(len(W), device=W.device) ^ 1  # 1, 0, 3, 2, …
        return W[:, None] * torch.eye(len(W), dtype=W.dtype, device=W.device)[partner]

    def singular_values(self, W: Tensor) -> Tensor:
        return W.abs()

    def made_of(self, W: Tensor) -> tuple[str, dict[str, Any]]:
        return "turn", {"units": len(W)}  # of turn_matrix.py


MAPS["turn"] = Turn
