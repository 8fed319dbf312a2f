"""Stored matrices: W of k-bit integers, and U."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from qornn.bits import BITS
from qornn.integer import check
from qornn.integer.layout import HOST_UNITS, SPARE_WORDS, Fields, Layout, aligned, blocks, pack_rows, pad_rows
from qornn.integer.matrices.base import Form, RecurrentMatrix, exact_product, packed_bytes
from qornn.integer.packing import Packed


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dense(RecurrentMatrix):
    """A stored matrix of k-bit integers; W_q = alpha·integers/2^(k−1), plus I with the identity offset."""

    kind = "dense"
    stored = True
    scheme = "per-row"
    native = True
    arrays: ClassVar = {"integers": np.int8, "alpha": np.float64}
    packed: ClassVar = {"integers": Packed(2)}

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
            raise check.ProgramError(f"the identity of W must be True or False, got {self.identity!r}")

    @property
    def n_h(self) -> int:
        return len(self.integers)

    @property
    def stored_bytes(self) -> int:
        return packed_bytes(self.integers.size, self.bits)

    @property
    def form(self) -> Form:
        return Form(function="qornn_dense", header="qornn_dense.h", buffers=2)

    def product(self, h: np.ndarray) -> np.ndarray:
        return exact_product(self.integers, h)

    def row_sums(self) -> np.ndarray:
        return np.abs(self.integers.astype(np.int64)).sum(1)

    def written_out(self) -> np.ndarray:
        return self.integers.astype(np.int64)

    def floats(self) -> np.ndarray:
        return dequantized(self) + (np.eye(self.n_h) if self.identity else 0)

    def fields(self, layout: Layout) -> Fields:
        if layout.packed:
            planes = pack_rows(self.integers, self.bits)
            spare = SPARE_WORDS if layout.host else 0
            return {"W_planes": np.pad(planes.reshape(-1), (0, spare)) if spare else planes}
        rows = pad_rows(self.integers, HOST_UNITS)
        # States are fed as h + 2^15 in two unsigned bytes (qornn_host_vnni.c); the sums start from what takes it back.
        start = -(2**15) * self.integers.astype(np.int64).sum(1)
        start = np.pad(start, (0, -len(start) % 16)).astype(np.int32)  # modulo 2^32
        return {
            "row_bytes": rows.shape[1],
            "W_bytes": rows,
            "W_blocks": aligned(blocks(self.integers)),
            "W_start": start,
        }

    def work(self) -> dict[str, int]:
        return {"per step": self.n_h**2}

    def describe(self, U_bits: int) -> str:
        return f"weights of {self.bits} bits (packed)"

    def rounds(self, unit: np.ndarray, largest: float, bits: int) -> bool:
        return False


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matrix(check.Checked):
    """U: n_h × n_i integers on their own number of bits; U_q = alpha·integers/2^(k_U−1)."""

    kind = "dense"
    arrays: ClassVar = {"integers": np.int8, "alpha": np.float64}
    packed: ClassVar = {"integers": Packed(2)}

    integers: np.ndarray  # (n_h, n_i) int8
    bits: int
    alpha: np.ndarray  # () or (n_h,) float64

    def __post_init__(self) -> None:
        _check(self, "U")

    @property
    def stored_bytes(self) -> int:
        return packed_bytes(self.integers.size, self.bits)

    def floats(self) -> np.ndarray:
        """U_q.  # (n_h, n_i) float64"""
        return dequantized(self)

    def sums(self, x: np.ndarray) -> np.ndarray:
        """Σ U_i x_i of numbers (B, n_i); codes (B,) read a column.  # -> (B, n_h) int64"""
        U = self.integers.astype(np.int64)
        return U.T[x] if x.ndim == 1 else x @ U.T


def _check(matrix: Dense | Matrix, name: str) -> None:
    low, high = BITS[0], BITS[-1]
    object.__setattr__(matrix, "bits", check.number(f"bits of {name}", matrix.bits, low, high))
    top = 2 ** (matrix.bits - 1)
    entries = check.integers(name, matrix.integers, np.int8, (None, None), -top, top - 1)
    object.__setattr__(matrix, "integers", entries)
    object.__setattr__(matrix, "alpha", check.scale(f"alpha of {name}", matrix.alpha, len(entries)))


def dequantized(matrix: Dense | Matrix) -> np.ndarray:
    """alpha·integers/2^(k−1)."""
    alpha = matrix.alpha[:, None] if matrix.alpha.ndim else matrix.alpha
    return matrix.integers * (alpha / 2 ** (matrix.bits - 1))
