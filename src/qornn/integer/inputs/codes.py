"""Codes in place of one-hot vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from qornn.errors import SettingsError
from qornn.integer import check
from qornn.integer.check import INT16
from qornn.integer.inputs.base import Input, shape_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Codes(Input):
    """One-hot inputs by their codes: a column of U is read, nothing multiplied (formally α_i = 2, k_i = 2, x_i = 1)."""

    kind = "codes"
    noun = "code"
    multiplied = False

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check.number("number of codes", self.size, 1, INT16[1]))

    @property
    def bits(self) -> int:
        return 2

    @property
    def alpha(self) -> float:
        return 2.0

    @property
    def n_i(self) -> int:
        return self.size

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def limits(self) -> tuple[int, int]:
        return 0, self.size - 1

    @property
    def stored_bytes(self) -> int:
        return 0

    @property
    def takes_floats(self) -> bool:
        return False

    @property
    def in_double(self) -> bool:
        return False

    def integers(self, raw: np.ndarray) -> np.ndarray:
        return raw

    def sum_bound(self, U: np.ndarray) -> np.ndarray:
        """max|Σ U_i x_i| of each row: one column at a time is read.  # (n_h,)"""
        return np.abs(U.astype(np.int64)).max(1)

    def accept(self, x: np.ndarray, *, saturate: bool = False) -> tuple[np.ndarray, int]:
        """Codes (B, T), checked; a code outside the table means nothing, so none is ever replaced."""
        if x.ndim != 2 or x.dtype.kind not in "iu":
            raise SettingsError(f"this program reads codes: integers (B, T) below {self.size}; got {shape_of(x)}")
        if x.min() < 0 or x.max() >= self.size:
            raise SettingsError(f"codes must lie in 0..{self.size - 1}, got {x.min()}..{x.max()}")
        return x.astype(np.int16), 0

    def from_floats(self, x: np.ndarray) -> np.ndarray:
        """Codes are their own raw form."""
        return np.asarray(x)

    from_network = from_floats

    def clip(self, raw: np.ndarray) -> np.ndarray:
        """A code outside the table is not replaced."""
        return raw

    def draw(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        return rng.integers(0, self.size, (steps, 1)).astype(np.int16)

    def draw_floats(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        return np.zeros((0, self.size), np.float32)

    def fields(self, room: int) -> dict[str, Any]:
        return {"n_i": self.size, "kind": "QORNN_CODES"}

    def layer_fields(self) -> dict[str, Any]:
        return {"input": "QORNN_CODES"}
