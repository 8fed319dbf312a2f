"""The matrices of a program. W sits behind a small interface, since not every W is a stored matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from qornn.bits import BITS
from qornn.integer import check

EXACT = 2**53  # float64 holds every integer below


class Recurrent(check.Checked, ABC):
    """W of the recurrence: integers h -> Σ W_i h_i, how many bits it has and how many bytes it takes."""

    kind: ClassVar[str]

    # For the type checker alone: a dataclass would take an inherited property for the default of its field.
    if TYPE_CHECKING:

        @property
        def bits(self) -> int:
            """Bits of an entry."""

        @property
        def alpha(self) -> np.ndarray:
            """() or (n_h,) float64: W_q = alpha·integers/2^(bits−1)."""

        @property
        def identity(self) -> bool:
            """Whether I is added to it (the identity offset)."""

    @property
    @abstractmethod
    def n_h(self) -> int:
        """Width of the state."""

    @property
    @abstractmethod
    def stored_bytes(self) -> int:
        """Bytes it takes on a device, packed."""

    @abstractmethod
    def product(self, h: np.ndarray) -> np.ndarray:
        """W_i h of every state, exactly.  # (B, n_h) int64 -> (B, n_h) int64"""

    @abstractmethod
    def row_sums(self) -> np.ndarray:
        """Σ_j |W_i[i, j]|: what bounds every partial sum of a row.  # (n_h,) int64"""

    @abstractmethod
    def written_out(self) -> np.ndarray:
        """W_i entry by entry.  # (n_h, n_h) int64"""

    @property
    def driven(self) -> np.ndarray | None:
        """The units that inputs reach, or None for all."""
        return None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dense(Recurrent):
    """A stored matrix of k-bit integers; W_q = alpha·integers/2^(k−1), plus I with the identity offset."""

    kind = "dense"
    integers: np.ndarray  # (n_h, n_h) int8
    bits: int
    alpha: np.ndarray  # () or (n_h,) float64
    identity: bool = False

    def __post_init__(self) -> None:
        _check(self, "W")
        n = len(self.integers)
        if self.integers.shape != (n, n):
            raise check.ProgramError(f"W must be square, got shape {self.integers.shape}")
        if not isinstance(self.identity, bool):
            raise check.ProgramError(f"the identity of W is yes or no, got {self.identity!r}")

    @property
    def n_h(self) -> int:
        return len(self.integers)

    @property
    def stored_bytes(self) -> int:
        return packed_bytes(self.integers.size, self.bits)

    def product(self, h: np.ndarray) -> np.ndarray:
        return exact_product(self.integers, h)

    def row_sums(self) -> np.ndarray:
        return np.abs(self.integers.astype(np.int64)).sum(1)

    def written_out(self) -> np.ndarray:
        return self.integers.astype(np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matrix(check.Checked):
    """U: n_h × n_i integers on their own number of bits; U_q = alpha·integers/2^(k_U−1)."""

    integers: np.ndarray  # (n_h, n_i) int8
    bits: int
    alpha: np.ndarray  # () or (n_h,) float64

    def __post_init__(self) -> None:
        _check(self, "U")

    @property
    def stored_bytes(self) -> int:
        return packed_bytes(self.integers.size, self.bits)


def _check(matrix: Dense | Matrix, name: str) -> None:
    low, high = BITS[0], BITS[-1]
    object.__setattr__(matrix, "bits", check.number(f"bits of {name}", matrix.bits, low, high))
    top = 2 ** (matrix.bits - 1)
    entries = check.integers(name, matrix.integers, np.int8, (None, None), -top, top - 1)
    object.__setattr__(matrix, "integers", entries)
    object.__setattr__(matrix, "alpha", check.scale(f"alpha of {name}", matrix.alpha, len(entries)))


def exact_product(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x Aᵀ of integers; by way of float64 (and the machine's fast product) where it holds every partial sum."""
    largest = int(np.abs(x).max(initial=0)) * A.shape[1] * 128
    if largest < EXACT:
        return (x.astype(np.float64) @ A.T.astype(np.float64)).astype(np.int64)
    return x.astype(np.int64) @ A.T.astype(np.int64)


def packed_bytes(count: int, bits: int) -> int:
    """Bytes of `count` integers packed side by side, rounded up."""
    return -(-count * bits // 8)
