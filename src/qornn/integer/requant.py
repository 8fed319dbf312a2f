"""From accumulators to states: the four forms of the requantization h_i' = min(round(a·c), 2^(k_a−1) − 1).

Scheme `paper` (one real factor c for all rows): a table, thresholds, or a multiplier and a shift.
Scheme `per-row`: the two sums meet at different real scales, so two multipliers and one shift per row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, final

import numpy as np

from qornn.errors import ProgramError
from qornn.integer import check
from qornn.integer.check import INT32

if TYPE_CHECKING:
    from qornn.integer.layout import Fields, Layout
    from qornn.integer.state import State

LIMIT: Final = 2**31
WIDE: Final = 2**62


class Requant(check.Checked, ABC):
    """What makes a state of the sums of a row."""

    __slots__ = ()
    kind: ClassVar[str]
    scheme: ClassVar[str]
    bias_bytes: ClassVar[int]  # of one row
    limit: ClassVar[int] = LIMIT  # which no 32-bit sum reaches
    numpy_only: ClassVar[str] = ""  # what neither C nor ONNX knows, and the way out

    @abstractmethod
    def combined(self, sums: np.ndarray, drive: np.ndarray, h: np.ndarray) -> np.ndarray:
        """The one sum of a row: of Σ W_i h_i, Σ U_i x_i and its own state.  # int64"""

    @abstractmethod
    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        """min(round(a·c), top) of a ≥ 0, the last axis along the rows.  # int64 -> int64"""

    @abstractmethod
    def of_recurrent(self, sums: np.ndarray, rows: np.ndarray, top: int) -> np.ndarray:
        """The magnitudes that these Σ W_i h_i alone become, for each different one of the rows.  # (…, len(sums))"""

    @abstractmethod
    def check(self, n_h: int, state: State, *, identity: bool) -> None:
        """Refuse what does not belong to such a layer."""

    @abstractmethod
    def bounds(self, sum_W: np.ndarray, sum_U: np.ndarray, bias: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """Bounds of the 32-bit sums, one array of rows for each sum that is kept apart."""

    @abstractmethod
    def check_wide(self, sum_W: np.ndarray, sum_U: np.ndarray, bias: np.ndarray | None, top: int) -> None:
        """Prove that sums of 64 bits fit."""

    @property
    @abstractmethod
    def stored_bytes(self) -> int:
        """Bytes it takes on a device."""

    @abstractmethod
    def fields(self, bias: np.ndarray | None, rows: np.ndarray | slice, bound: int, layout: Layout) -> Fields:
        """Its fields of qornn_recurrent, for these rows and sums that stay within the bound."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paper(Requant):
    """acc = 2^shift_W·Σ W_i h_i + 2^shift_U·Σ U_i x_i, in 32 bits; then one magnitude a ≥ 0 becomes a state."""

    scheme = "paper"
    bias_bytes = 4

    shift_W: int
    shift_U: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift_W", check.number("shift of the recurrent sum", self.shift_W, 0, 30))
        object.__setattr__(self, "shift_U", check.number("shift of the input sum", self.shift_U, 0, 30))

    @abstractmethod
    def first(self, top: int) -> np.ndarray:
        """The least a that becomes each state 1..top; 2^31 − 1 for what none does.  # (top,) int64"""

    @abstractmethod
    def own_fields(self, bound: int) -> Fields:
        """The fields of its own form."""

    def combined(self, sums: np.ndarray, drive: np.ndarray, h: np.ndarray) -> np.ndarray:
        return (sums << self.shift_W) + (drive << self.shift_U)

    def of_recurrent(self, sums: np.ndarray, rows: np.ndarray, top: int) -> np.ndarray:
        return self.magnitude(sums << self.shift_W, top)

    def check(self, n_h: int, state: State, *, identity: bool) -> None:
        if identity:
            raise ProgramError('the identity offset needs the multipliers M_I; lower with scheme="per-row"')

    def bounds(self, sum_W: np.ndarray, sum_U: np.ndarray, bias: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """2^s Σ|W_i| h_max + 2^max(e,0) Σ|U_i| x_max + |b_acc|, one sum."""
        sum_W, sum_U = sum_W.astype(object), sum_U.astype(object)  # Python's integers: shifted, these pass 64 bits
        return ((sum_W << self.shift_W) + (sum_U << self.shift_U) + (0 if bias is None else np.abs(bias)),)

    def check_wide(self, sum_W: np.ndarray, sum_U: np.ndarray, bias: np.ndarray | None, top: int) -> None:
        pass

    def fields(self, bias: np.ndarray | None, rows: np.ndarray | slice, bound: int, layout: Layout) -> Fields:
        found: Fields = {"shift_W": self.shift_W, "shift_U": self.shift_U, **self.own_fields(bound)}
        if bias is not None:
            found["bias"] = bias[rows].astype(np.int32)  # proved to fit
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Multiplier(Paper):
    """(a·multiplier + 2^(shift−1)) >> shift: the default on devices."""

    kind = "multiplier"

    multiplier: int
    shift: int

    def __post_init__(self) -> None:
        Paper.__post_init__(self)
        object.__setattr__(self, "multiplier", check.number("multiplier", self.multiplier, 0, INT32[1]))
        object.__setattr__(self, "shift", check.number("shift", self.shift, 1, 61))

    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        return np.minimum((a * self.multiplier + (1 << (self.shift - 1))) >> self.shift, top)

    def first(self, top: int) -> np.ndarray:
        if not self.multiplier:
            return np.full(top, INT32[1])
        half = 1 << (self.shift - 1)
        least = [check.ceil(Fraction((i << self.shift) - half, self.multiplier)) for i in range(1, top + 1)]
        return np.array([min(a, INT32[1]) for a in least])

    @property
    def stored_bytes(self) -> int:
        return 5

    def own_fields(self, bound: int) -> Fields:
        shift = self.pure_shift(bound)
        if shift is not None:
            return {"requant": "QORNN_SHIFT", "shift": shift}
        return {"requant": "QORNN_MULTIPLIER", "multiplier": self.multiplier, "shift": self.shift}

    def pure_shift(self, bound: int) -> int | None:
        """The s where it is (a + 2^(s−1)) >> s and fits 32 bits for sums within the bound, or None."""
        if self.multiplier.bit_count() != 1:
            return None
        s = self.shift - (self.multiplier.bit_length() - 1)
        return s if 0 <= s <= 30 and bound + (1 << s) // 2 < 2**31 else None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thresholds(Paper):
    """The number of thresholds that a reaches: values[i] is the least a that rounds to i + 1."""

    kind = "thresholds"
    arrays: ClassVar = {"values": np.int32}
    limit = LIMIT - 1  # a threshold that no sum reaches is stored as this

    values: np.ndarray  # (top,) int32

    def __post_init__(self) -> None:
        Paper.__post_init__(self)
        values = check.integers("thresholds", self.values, np.int32, (None,), 0, INT32[1])
        if (np.diff(values) < 0).any():
            raise ProgramError("thresholds must not decrease")
        object.__setattr__(self, "values", values)

    def check(self, n_h: int, state: State, *, identity: bool) -> None:
        Paper.check(self, n_h, state, identity=identity)
        if len(self.values) != state.top:
            raise ProgramError(f"{state.bits}-bit states take {state.top} thresholds, got {len(self.values)}")

    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        return np.searchsorted(self.values, a, side="right").astype(np.int64)

    def first(self, top: int) -> np.ndarray:
        return self.values.astype(np.int64)

    @property
    def stored_bytes(self) -> int:
        return self.values.nbytes

    def own_fields(self, bound: int) -> Fields:
        return {"requant": "QORNN_THRESHOLDS", "thresholds": self.values}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(Paper):
    """The paper's direct table: values[a], and the last entry for every larger a. In numpy alone."""

    kind = "table"
    arrays: ClassVar = {"values": np.int16}
    numpy_only = (
        'requantization by a table; lower again with requant="thresholds" or "multiplier" (--requant thresholds)'
    )

    values: np.ndarray  # int16

    def __post_init__(self) -> None:
        Paper.__post_init__(self)
        object.__setattr__(self, "values", check.integers("table", self.values, np.int16, (None,), 0, 2**15 - 1))

    def check(self, n_h: int, state: State, *, identity: bool) -> None:
        Paper.check(self, n_h, state, identity=identity)
        if self.values.max() > state.top:
            raise ProgramError(f"the table holds states above the largest, {state.top}")

    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        return self.values[np.minimum(a, len(self.values) - 1)].astype(np.int64)

    def first(self, top: int) -> np.ndarray:
        found = np.searchsorted(self.values, np.arange(1, top + 1))
        return np.where(found < len(self.values), found, INT32[1])

    @property
    def stored_bytes(self) -> int:
        return self.values.nbytes

    def own_fields(self, bound: int) -> Fields:
        raise ProgramError(f"C export does not support {self.numpy_only}")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerRow(Requant):
    """v = M_W·Σ W_i h_i + M_U·Σ U_i x_i (+ M_I·h_i[j]) in 64 bits, then (a + 2^(shift−1)) >> shift, row by row."""

    kind = "per-row"
    scheme = "per-row"
    bias_bytes = 8
    arrays: ClassVar = {"M_W": np.int32, "M_U": np.int32, "M_I": np.int32, "shift": np.uint8}

    M_W: np.ndarray  # (n_h,) int32
    M_U: np.ndarray  # (n_h,) int32
    shift: np.ndarray  # (n_h,) uint8
    M_I: np.ndarray | None = None  # (n_h,) int32: the identity offset

    def __post_init__(self) -> None:
        shift = check.integers("shifts", self.shift, np.uint8, (None,), 1, 61)
        object.__setattr__(self, "shift", shift)
        for name in ("M_W", "M_U") if self.M_I is None else ("M_W", "M_U", "M_I"):
            array = check.integers(name, getattr(self, name), np.int32, shift.shape, 0, INT32[1])
            object.__setattr__(self, name, array)

    def check(self, n_h: int, state: State, *, identity: bool) -> None:
        if identity and self.M_I is None:
            raise ProgramError('the identity offset needs the multipliers M_I; lower with scheme="per-row"')
        if not identity and self.M_I is not None:
            raise ProgramError("M_I multiplies the identity offset, which this W does not have")
        if self.shift.shape != (n_h,):
            raise ProgramError(f"multipliers and shifts must be ({n_h},), got {self.shift.shape}")

    def combined(self, sums: np.ndarray, drive: np.ndarray, h: np.ndarray) -> np.ndarray:
        z = self.M_W.astype(np.int64) * sums + self.M_U.astype(np.int64) * drive
        return z if self.M_I is None else z + self.M_I.astype(np.int64) * h

    def magnitude(self, a: np.ndarray, top: int) -> np.ndarray:
        shift = self.shift.astype(np.int64)
        return np.minimum((a + (1 << (shift - 1))) >> shift, top)

    def of_recurrent(self, sums: np.ndarray, rows: np.ndarray, top: int) -> np.ndarray:
        different = {(int(self.M_W[j]), int(self.shift[j])) for j in rows}
        return np.array([(sums * M_W + (1 << (shift - 1)) >> shift).clip(max=top) for M_W, shift in different])

    def bounds(self, sum_W: np.ndarray, sum_U: np.ndarray, bias: np.ndarray | None) -> tuple[np.ndarray, ...]:
        return sum_W, sum_U

    def check_wide(self, sum_W: np.ndarray, sum_U: np.ndarray, bias: np.ndarray | None, top: int) -> None:
        sums_W, sums_U = sum_W.tolist(), sum_U.tolist()
        biases = [0] * len(sums_W) if bias is None else bias.tolist()
        own = [0] * len(sums_W) if self.M_I is None else self.M_I.tolist()
        for j in range(len(sums_W)):  # Python's integers: the check must not overflow itself
            v = int(self.M_W[j]) * sums_W[j] + int(self.M_U[j]) * sums_U[j] + own[j] * top + abs(biases[j])
            if v >= WIDE:
                raise ProgramError(f"row {j}: its 64-bit sum can reach {v:.3g}, past 2^62; use smaller shifts")

    @property
    def alike(self) -> bool:
        """Whether all rows have the same multipliers and shift, as with one scale per matrix; stored once then."""
        arrays = (self.M_W, self.M_U, self.shift) if self.M_I is None else (self.M_W, self.M_U, self.M_I, self.shift)
        return all((array == array[0]).all() for array in arrays)

    @property
    def stored_bytes(self) -> int:
        rows = 1 if self.alike else len(self.shift)
        return rows * (9 if self.M_I is None else 13)

    def fields(self, bias: np.ndarray | None, rows: np.ndarray | slice, bound: int, layout: Layout) -> Fields:
        once = self.alike and not layout.host  # wide kernels load a row's own
        kept = slice(1) if once else rows
        arrays = {"M_W": self.M_W, "M_U": self.M_U, "M_I": self.M_I, "row_shift": self.shift}
        found: Fields = {"requant": "QORNN_PER_ROW", "alike": int(once)}
        found |= {name: values[kept] for name, values in arrays.items() if values is not None}
        return found if bias is None else found | {"bias_wide": bias[rows]}


REQUANTS: dict[str, type[Requant]] = {kind.kind: kind for kind in (Multiplier, Thresholds, Table, PerRow)}
