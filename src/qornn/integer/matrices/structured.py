"""What recurrent matrices that are not stored have in common: orthogonal exactly, made of signs and shifts.

`product` multiplies by W with additions. `written_out` is the same matrix entry by entry, for comparison.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from qornn.integer import check
from qornn.integer.matrices.base import RecurrentMatrix

UNITS = 2**16  # the widest state


class Structured(RecurrentMatrix):
    """W = alpha·integers: entries have one bit, or few, and need no storage."""

    __slots__ = ()
    stored = False
    scheme = "paper"

    @property
    def bits(self) -> int:
        return 1

    @property
    def identity(self) -> bool:
        return False

    def written_out(self) -> np.ndarray:
        return self.product(np.eye(self.n_h, dtype=np.int64)).T

    def work(self) -> dict[str, int]:
        return {"per step: W, additions alone": self.additions}

    def describe(self, U_bits: int) -> str:
        return f"U of {U_bits} bits (packed), {self.known}"

    def rounds(self, unit: np.ndarray, largest: float, bits: int) -> bool:
        return True

    @property
    @abstractmethod
    def additions(self) -> int:
        """Additions of W_i h."""

    @property
    @abstractmethod
    def known(self) -> str:
        """What W is, and what is stored of it."""


def check_signs(W: Any) -> None:
    """Signs are +1 and −1."""
    signs = check.integers("signs of W", W.signs, np.int8, (None,), -1, 1)
    if not signs.all():
        raise check.ProgramError("the signs of W are +1 and −1, got 0")
    object.__setattr__(W, "signs", signs)
