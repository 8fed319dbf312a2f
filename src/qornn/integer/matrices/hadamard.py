"""Sylvester's matrix with signs, whole or in blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from qornn import structure
from qornn.integer import check
from qornn.integer.layout import Fields, Layout, pack_signs
from qornn.integer.matrices.base import Form, as_program_error, packed_bytes
from qornn.integer.matrices.structured import Structured, check_signs
from qornn.integer.packing import SIGNS


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hadamard(Structured):
    """diag(signs)·P·(I ⊗ S)/√block, S of size block: one block and no permutation P when block = n_h."""

    kind = "hadamard"
    native = True
    arrays: ClassVar = {"signs": np.int8}
    packed: ClassVar = {"signs": SIGNS}

    signs: np.ndarray  # (n_h,) int8, ±1
    block: int

    def __post_init__(self) -> None:
        check_signs(self)
        n = len(self.signs)
        object.__setattr__(self, "block", check.number("block of W", self.block, 2, n))
        as_program_error(structure.check_power, self.block, 2, "the block of W")
        as_program_error(structure.check_block, n, self.block)

    @property
    def n_h(self) -> int:
        return len(self.signs)

    @property
    def alpha(self) -> np.ndarray:
        return np.array(1 / math.sqrt(self.block))

    @property
    def stored_bytes(self) -> int:
        return packed_bytes(self.n_h, 1)

    @property
    def form(self) -> Form:
        """Several blocks take two buffers: P takes what a block gives to as many blocks as there are."""
        if self.block == self.n_h:
            return Form(function="qornn_hadamard", wide=True)
        return Form(function="qornn_blocks", buffers=2, sums=self.block)

    def product(self, h: np.ndarray) -> np.ndarray:
        mixed = structure.transform(h.reshape(-1, self.n_h // self.block, self.block)).reshape(h.shape)
        if self.block < self.n_h:
            mixed = mixed[..., structure.transposition(self.n_h, self.block)]
        return mixed * self.signs

    def row_sums(self) -> np.ndarray:
        """Also of every partial sum of the transform in place: log2(block) bits more than a state."""
        return np.full(self.n_h, self.block, np.int64)

    def fields(self, layout: Layout) -> Fields:
        return {"recurrent": "QORNN_HADAMARD", "block": self.block, "signs": pack_signs(self.signs)}

    @property
    def additions(self) -> int:
        return self.n_h * (self.block.bit_length() - 1)

    @property
    def known(self) -> str:
        blocks = "" if self.block == self.n_h else f" in {self.n_h // self.block} blocks of {self.block}"
        return f"W: signed Hadamard{blocks}, {pack_signs(self.signs).nbytes} bytes of signs"
