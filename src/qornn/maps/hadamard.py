"""Signed Walsh-Hadamard matrices (after HadamRNN: Foucault, Mamalet, Malgouyres, ICLR 2025)."""

from __future__ import annotations

import math
from typing import Any, final

import torch
from torch import Tensor

from qornn import structure
from qornn.maps.structured import Structured, sign_through, signs, sylvester, whole


@final
class Hadamard(Structured):
    """W = diag(u) S_n/√n. The signs u are drawn from the seed, or learned with `learn`, which did not help us."""

    def __init__(self, seed: int = 0, learn: bool = False) -> None:
        super().__init__(seed)
        self.learned = learn

    def raw(self, n_h: int) -> Tensor:
        structure.check_power(n_h, 2, "n_h of map='hadamard'")
        return 0.5 * signs(n_h, self.seed) if self.learned else signs(n_h, self.seed)

    def operator(self, W: Tensor) -> Tensor:
        """u, all that the fast transform needs.  # (n_h,)"""
        return sign_through(W) if self.learned else W

    def forward(self, W: Tensor) -> Tensor:
        return self.operator(W)[:, None] * sylvester(len(W), W) / math.sqrt(len(W))

    def singular_values(self, W: Tensor) -> Tensor:
        return self.operator(W).abs()

    def made_of(self, W: Tensor) -> tuple[str, dict[str, Any]]:
        return "hadamard", {"signs": whole(self.operator(W)), "block": len(W)}

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, learn={self.learned}"


@final
class HadamardBlock(Structured):
    """W = diag(u)·P·(I ⊗ S_m)/√m: blocks of m, and a fixed permutation P without which they would never mix."""

    def __init__(self, seed: int = 0, block: int = 16) -> None:
        super().__init__(seed)
        structure.check_power(block, 2, "the block of map='hadamard-block'")
        self.block = block

    def raw(self, n_h: int) -> Tensor:
        structure.check_block(n_h, self.block)
        return signs(n_h, self.seed)

    def forward(self, W: Tensor) -> Tensor:
        n, m = len(W), self.block
        blocks = torch.block_diag(*[sylvester(m, W) / math.sqrt(m)] * (n // m))
        if m < n:
            blocks = blocks[torch.from_numpy(structure.transposition(n, m)).to(W.device)]
        return W[:, None] * blocks

    def singular_values(self, W: Tensor) -> Tensor:
        return W.abs()

    def made_of(self, W: Tensor) -> tuple[str, dict[str, Any]]:
        return "hadamard", {"signs": whole(W), "block": self.block}

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, block={self.block}"
