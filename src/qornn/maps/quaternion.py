"""Butterflies of integer quaternions: a learned W of few bits that is orthogonal whatever it learns."""

from __future__ import annotations

import math
from typing import Any, final

import torch
from torch import Tensor

from qornn import structure
from qornn.maps.structured import Structured, signs

SIGNS = 0  # the seed of u


@final
class Quaternion(Structured):
    """W = diag(u) B_{s−1}…B_0: s = log_4 n stages of 4×4 blocks, each a quaternion of norm 7, entries −2..2, over √7.

    W_raw (s, n/4, 4) are latent quaternions; the nearest of the 64 is used, with the gradient of the identity.
    The signs u are the same for every seed, so that W_raw alone says what W is.
    """

    learned = True

    def raw(self, n_h: int) -> Tensor:
        stages = structure.check_power(n_h, 4, "n_h of map='quaternion'")
        return torch.randn(stages, n_h // 4, 4, generator=torch.Generator().manual_seed(self.seed))

    def forward(self, W: Tensor) -> Tensor:
        stages, blocks, _ = W.shape
        n = 4 * blocks
        q = W + (nearest(W) - W).detach()
        place = torch.tensor(structure.PLACE, device=W.device)
        sign = torch.tensor(structure.SIGN, dtype=W.dtype, device=W.device) / math.sqrt(structure.NORM)
        made = torch.eye(n, dtype=W.dtype, device=W.device)
        for s in range(stages):
            apart = 4**s  # the four rows that a block mixes lie so far apart
            rows = made.view(n // (4 * apart), 4, apart, n).transpose(1, 2).reshape(blocks, 4, n)
            mixed = (q[s][:, place] * sign) @ rows
            made = mixed.view(n // (4 * apart), apart, 4, n).transpose(1, 2).reshape(n, n)
        return signs(n, SIGNS).to(W)[:, None] * made

    def singular_values(self, W: Tensor) -> Tensor:
        return torch.ones(4 * W.shape[1])  # whatever it learns

    def made_of(self, W: Tensor) -> tuple[str, dict[str, Any]]:
        q = nearest(W.detach()).cpu()
        codes = ((q < 0) * torch.tensor([1, 2, 4, 8])).sum(-1) + 16 * q.abs().argmax(-1)
        return "quaternion", {"signs": structure.signs(4 * W.shape[1], SIGNS), "codes": codes.numpy()}


def nearest(q: Tensor) -> Tensor:
    """The nearest quaternion of norm 7: ±2 where |q| is largest, ±1 elsewhere.  # (..., 4)"""
    size = torch.ones_like(q)
    size.scatter_(-1, q.abs().argmax(-1, keepdim=True), 2.0)
    return torch.where(q < 0, -size, size)
