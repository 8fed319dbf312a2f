"""The recurrent layer of the paper, in integers.

acc  = Σ W_i h_i and Σ U_i x_i       32 bits, proved from the actual integers when the program is built
h_i' = requant(activation(acc))      k_a bits
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from qornn.errors import ProgramError
from qornn.integer import layout as layouts
from qornn.integer.activations import ACTIVATIONS, Activation
from qornn.integer.layers.base import Layer
from qornn.integer.layout import ON_STACK, WORD_BITS, Fields, Layout, pack_columns, pack_rows, pack_words, units
from qornn.integer.matrices import MATRICES, Matrix, RecurrentMatrix, packed_bytes
from qornn.integer.requant import LIMIT, REQUANTS, Requant
from qornn.integer.state import Source, State, Units


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recurrent(Layer):
    """h ← requant(σ(W_i h + U_i x)); W stored or known, its output the state."""

    kind = "recurrent"
    constant = "QORNN_RECURRENT"
    struct = "qornn_recurrent"
    host_struct = "qornn_host_recurrent"
    parts: ClassVar = {
        "W": MATRICES,
        "U": {Matrix.kind: Matrix},
        "state": {State.kind: State},
        "activation": ACTIVATIONS,
        "requant": REQUANTS,
    }

    W: RecurrentMatrix
    U: Matrix
    state: State
    activation: Activation
    requant: Requant

    def __post_init__(self) -> None:
        kinds = {"W": RecurrentMatrix, "U": Matrix, "state": State, "activation": Activation, "requant": Requant}
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise ProgramError(f"{name} cannot be a {type(getattr(self, name)).__name__}")
        if len(self.U.integers) != self.n_h:
            raise ProgramError(f"U must be (n_h, n_i) = ({self.n_h}, {self.n_in}), got {self.U.integers.shape}")
        if self.bias is not None and self.bias.shape != (self.n_h,):
            raise ProgramError(f"the bias must be ({self.n_h},), got {self.bias.shape}")
        self.requant.check(self.n_h, self.state, identity=self.W.identity)
        self._check_driven()

    @property
    def n_in(self) -> int:
        return self.U.integers.shape[1]

    @property
    def n_h(self) -> int:
        return self.W.n_h

    @property
    def n_state(self) -> int:
        return self.W.n_h

    @property
    def output(self) -> Units:
        return Units(n_i=self.n_h, bits=self.state.bits)

    @property
    def top(self) -> int:
        return self.state.top

    @property
    def signed(self) -> bool:
        return self.activation.signed

    @property
    def numpy_only(self) -> str:
        return self.requant.numpy_only

    @property
    def native(self) -> bool:
        return self.W.native

    @property
    def scheme(self) -> str:
        return self.requant.scheme

    @property
    def bias(self) -> np.ndarray | None:
        """The bias of modReLU, or of a linear recurrence.  # (n_h,) int64"""
        return self.activation.bias

    @property
    def weight_bits(self) -> int:
        return max(self.W.bits, self.U.bits) if self.W.stored else self.U.bits

    @property
    def stores_W(self) -> bool:
        return self.W.stored

    @property
    def state_bits(self) -> int:
        return self.state.bits

    @property
    def parameters(self) -> int:
        return (self.n_h**2 if self.W.stored else 0) + self.n_driven * self.n_in

    @property
    def n_driven(self) -> int:
        """Rows that are stored of U and of the bias; the others are zero."""
        return self.n_h if self.W.driven is None else len(self.W.driven)

    @property
    def stored_bytes(self) -> int:
        rows = self.n_driven
        bias = 0 if self.bias is None else self.requant.bias_bytes * rows
        return self.W.stored_bytes + packed_bytes(rows * self.n_in, self.U.bits) + self.requant.stored_bytes + bias

    def floats(self) -> dict[str, np.ndarray]:
        found = {"W_raw": self.W.floats(), "U_raw": self.U.floats()}
        if self.bias is not None:
            raise ProgramError(
                f"a training cannot begin with a program that has the activation {self.activation.kind}, whose bias is "
                "known only in units of its sums; begin with its run folder"
            )
        return found

    def step(self, state: np.ndarray, x: np.ndarray, skip: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        z = self.requant.combined(self.W.product(state), self.U.sums(x), state)
        h = self.activation.next(z, lambda a: self.requant.magnitude(a, self.top), self.bias)
        return h, h

    def sums(self, source: Source) -> tuple[np.ndarray, np.ndarray]:
        """Σ|W_i| h_max and max|Σ U_i x_i| of each row.  # two (n_h,) int64"""
        return self.W.row_sums() * self.top, source.sum_bound(self.U.integers)

    def bounds(self, source: Source) -> tuple[np.ndarray, ...]:
        return self.requant.bounds(*self.sums(source), self.bias)

    def check(self, source: Source) -> None:
        if self.n_in != source.n_i:
            raise ProgramError(f"U must be (n_h, n_i) = ({self.n_h}, {source.n_i}), got {self.U.integers.shape}")
        if self.bias is not None and self.requant.bias_bytes == 4 and np.abs(self.bias).max() >= LIMIT:
            raise self._overflow(int(np.abs(self.bias).max()), source)
        largest = int(max(bounds.max() for bounds in self.bounds(source)))
        if largest >= self.requant.limit:
            raise self._overflow(largest, source)
        self.requant.check_wide(*self.sums(source), self.bias, self.top)

    def _overflow(self, largest: int, source: Source) -> ProgramError:
        return ProgramError(
            f"a sum of this program can reach {largest}, but the 32-bit accumulator holds at most {LIMIT - 1} "
            f"(n_h={self.n_h}, weights {self.W.bits} bits, states {self.state.bits} bits, "
            f"inputs {source.bits} bits); use fewer activation bits, weight bits or input bits"
        )

    def _check_driven(self) -> None:
        """Where inputs reach only some units, nothing is stored for the others."""
        if self.W.driven is None:
            return
        still = np.delete(np.arange(self.n_h), self.W.driven)
        for name, rows in (("U", self.U.integers), ("the bias", self.bias)):
            if rows is not None and rows[still].any():
                first = next(row for row in still if rows[row].any())
                raise ProgramError(
                    f"inputs reach only the first unit of each delay line; row {first} of {name} must be 0"
                )

    def fields(self, source: Source, layout: Layout) -> Fields:
        moves = not layout.host and self.W.keeps(self.requant, self.top)
        rows = self.W.driven if moves and self.W.driven is not None else slice(None)
        bound = int(max(bounds.max() for bounds in self.bounds(source)))
        return {
            "n_i": self.n_in,
            "n_h": self.n_h,
            "bits_W": self.W.bits,
            "bits_U": self.U.bits,
            "bits_h": self.state.bits,
            "activation": self.activation.constant,
            "moves": int(moves),
            **source.layer_fields(),
            **self.W.fields(layout),
            **self._fields_of_U(source, rows, layout),
            **self.requant.fields(self.bias, rows, bound, layout),
        }

    def _fields_of_U(self, source: Source, rows: np.ndarray | slice, layout: Layout) -> Fields:
        """U row by row or column by column, by the field that says which."""
        U, bits = self.U.integers[rows], self.U.bits
        if not layout.packed:
            return {"U_bytes": np.ascontiguousarray(U.T)}
        if self._in_rows(source):
            return {"U_planes": pack_rows(U, bits)}
        if not layout.host and not self.W.stored and bits in WORD_BITS:
            return {"U_words": pack_words(U, bits)}
        return {"U_packed": pack_columns(U, bits)}

    def _in_rows(self, source: Source) -> bool:
        """Whether packed U lies row by row, for the kernels of a stored W; a code reads a column."""
        return self.W.stored and source.multiplied and layouts.in_rows(self.n_in, self.U.bits)

    def room(self, source: Source, layout: Layout) -> int:
        if not source.multiplied:
            return 0
        return units(self.n_in, self.U.bits) if layout.packed and self._in_rows(source) else self.n_in

    @property
    def state_room(self) -> int:
        """Length of a buffer of states on a device: what the kernels of W read."""
        return units(self.n_h, self.W.bits) if self.W.stored else self.n_h

    @property
    def wide_state(self) -> bool:
        return self.W.form.wide

    def kept(self, room: int) -> dict[int, int]:
        form = self.W.form
        words = form.sums if form.sums > ON_STACK else 0
        if form.wide:  # what reads it reads 16 bits, of which there is a copy
            return {4: words + self.n_h, 2: room}
        units = max(self.state_room, room)
        return {4: words + 1, 2: 2 * units} if form.buffers == 2 else {**({4: words} if words else {}), 2: units}

    def work(self, source: Source) -> dict[str, int]:
        """Multiply-accumulates; codes select a column of U, which is only added."""
        driven = self.n_driven * self.n_in if source.multiplied else 0
        found = self.W.work()
        if self.W.stored:
            return {"per step": found["per step"] + driven}
        return {**found, "per step: U": driven}

    @property
    def facts(self) -> dict[str, str]:
        return {
            "scheme": self.scheme,
            "W": self.W.kind,
            "weight_bits": str(self.W.bits),
            "state_bits": str(self.state.bits),
        }

    def describe(self) -> str:
        return f"{self.W.describe(self.U.bits)}, states of {self.state.bits} bits"
