"""The network in integers: the single source of truth from which everything that runs on a device is made.

    acc  = Σ W_i h_i and Σ U_i x_i       32 bits, proved from the actual integers when the program is built
    h_i' = requant(activation(acc))      k_a bits                                      (requant.py)
    y    = V h_i + b_o                   float32, or 8-bit V and 32-bit sums           (parts.py)

`simulate` is the law; the native engine, exported C and ONNX (but for its float readout) equal it bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from qornn.errors import ProgramError, SettingsError
from qornn.integer.check import Checked
from qornn.integer.matrix import Matrix, Recurrent, packed_bytes
from qornn.integer.parts import (
    Activation,
    Codes,
    IntReadout,
    Readout,
    ReLU,
    Samples,
    State,
)
from qornn.integer.requant import PerRow, Requant, Table, Thresholds

if TYPE_CHECKING:
    from qornn.integer.engine import Session

LIMIT = 2**31
WIDE = 2**62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntegerProgram(Checked):
    """Arrays and plain numbers, validated on construction, closed to writing."""

    W: Recurrent
    U: Matrix
    state: State
    input: Codes | Samples
    activation: Activation
    requant: Requant
    readout: Readout
    steps: Literal["last", "all"] = "last"  # which states are read out
    provenance: dict[str, Any] = field(default_factory=dict)  # recipe, seed, version, metric: plain JSON

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_widths(self)
        _check_driven(self)
        _check_bounds(self)

    @property
    def n_i(self) -> int:
        return self.input.n_i

    @property
    def n_h(self) -> int:
        return self.W.n_h

    @property
    def n_o(self) -> int:
        return len(self.readout.V)

    @property
    def bits(self) -> int:
        """Bits of the widest stored matrix: of W and U, or where W is not stored of U and V."""
        V = 0 if self.W.bits > 1 else getattr(self.readout, "bits", 0)
        return max(self.W.bits, self.U.bits, V)

    @property
    def activation_bits(self) -> int:
        """Bits of the widest state."""
        return self.state.bits

    @property
    def scheme(self) -> str:
        return "per-row" if isinstance(self.requant, PerRow) else "paper"

    @property
    def bias(self) -> np.ndarray | None:
        """The bias of modReLU, or of a linear recurrence.  # (n_h,) int64"""
        return None if isinstance(self.activation, ReLU) else self.activation.bias

    @property
    def accumulator_bound(self) -> int:
        """The largest magnitude any 32-bit sum of a step can reach, from the actual integers."""
        return int(max(bounds.max() for bounds in accumulator_bounds(self)))

    @property
    def accumulator_bits(self) -> int:
        """Bits, sign included, that hold every sum of a step."""
        return self.accumulator_bound.bit_length() + 1

    @property
    def true_bytes(self) -> int:
        """Everything a device must store: packed weights, biases, requantization and readout."""
        rows = self.n_h if self.W.driven is None else len(self.W.driven)  # of U and of the bias; the others are zero
        bias = 0 if self.bias is None else (8 if self.scheme == "per-row" else 4) * rows
        norm = 0 if isinstance(self.input, Codes) or self.input.plain else 9 * self.n_i
        matrices = self.W.stored_bytes + packed_bytes(rows * self.n_i, self.U.bits)
        return matrices + self.requant.stored_bytes + self.readout.stored_bytes + bias + norm

    def accept(self, x: Any, lengths: Any = None, *, saturate: bool = False) -> tuple[np.ndarray, np.ndarray, int]:
        """Inputs and true lengths, checked, and how many inputs were clipped."""
        x = np.asarray(x)
        if x.ndim < 2 or 0 in x.shape[:2]:
            raise SettingsError(f"x must hold at least one sequence of at least one step, got shape {x.shape}")
        raw, clipped = self.input.accept(x, saturate=saturate)
        B, T = raw.shape[:2]
        if lengths is None:
            return raw, np.full(B, T), clipped
        lengths = np.asarray(lengths)
        if lengths.shape != (B,) or lengths.dtype.kind not in "iu" or not ((lengths >= 1) & (lengths <= T)).all():
            raise SettingsError(f"lengths must be {B} whole numbers in 1..{T}, one a sequence; got {lengths}")
        return raw, lengths.astype(np.int64), clipped

    def run(self, x: Any, lengths: Any = None, *, saturate: bool = False, threads: int | None = None) -> np.ndarray:
        """Outputs of raw integers (B, T, n_i) or codes (B, T), by the native engine.  # (B, n_o) or (B, T, n_o)"""
        from qornn.integer.engine import run

        return run(self, x, lengths, saturate=saturate, threads=threads)

    def session(self) -> Session:
        """A stream: one sample in, one answer out, constant memory."""
        from qornn.integer.engine import Session

        return Session(self)

    def save(self, path: str | Path) -> None:
        """Write one safetensors file, weights packed at their bits."""
        from qornn.integer.storage import save

        save(self, Path(path))

    def with_provenance(self, **facts: Any) -> IntegerProgram:
        """The same program with more said about where it comes from."""
        return replace(self, provenance={**self.provenance, **facts})


def accumulator_bounds(program: IntegerProgram) -> tuple[np.ndarray, ...]:
    """Bounds of the 32-bit sums, one array of rows for each sum that is kept apart.

    scheme paper:   2^s Σ|W_i| h_max + 2^max(e,0) Σ|U_i| x_max + |b_acc|, one sum
    scheme per-row: Σ|W_i| h_max, and Σ|U_i| x_max
    and for an integer readout Σ|V_i| h_max + |bias|, of a mixed state its own (_mixed_bounds).
    """
    sum_W, sum_U = row_sums(program.W, program.U, program.input, program.state)
    readout = program.readout
    outputs: tuple[np.ndarray, ...] = ()
    if readout.mix:
        outputs = _mixed_bounds(readout, program.state.top)
    elif isinstance(readout, IntReadout):
        V = np.abs(readout.V.astype(np.int64)).sum(1)
        outputs = (V * program.state.top + np.abs(readout.bias.astype(np.int64)),)
    if isinstance(program.requant, PerRow):
        return sum_W, sum_U, *outputs
    bias = 0 if program.bias is None else np.abs(program.bias)
    sum_W, sum_U = sum_W.astype(object), sum_U.astype(object)  # Python's integers: shifted, these pass 64 bits
    return (sum_W << program.requant.shift_W) + (sum_U << program.requant.shift_U) + bias, *outputs


def _mixed_bounds(readout: Readout, top: int) -> tuple[np.ndarray, ...]:
    """Bounds of S h and of every partial sum of V relu(S h) + bias.

    |(S h)_j| ≤ n·top, and by Cauchy-Schwarz, since ‖S h‖₂ = √n ‖h‖₂ ≤ n·top, |Σ V_j (S h)_j| ≤ ‖V‖₂ n·top,
    whichever j are summed and whichever of them relu leaves out; Σ|V_j| n·top is never less.
    """
    largest = readout.V.shape[1] * top
    sums = np.array([largest], object)
    if not isinstance(readout, IntReadout):
        return (sums,)
    squares = (readout.V.astype(np.int64) ** 2).sum(1).tolist()
    norms = [math.isqrt(max(square * largest**2 - 1, 0)) + (square > 0) for square in squares]  # rounded up
    return sums, np.array(norms, object) + np.abs(readout.bias.astype(np.int64))


def row_sums(W: Recurrent, U: Matrix, input: Codes | Samples, state: State) -> tuple[np.ndarray, np.ndarray]:
    """Σ|W_i| h_max and Σ|U_i| x_max of each row.  # two (n_h,) int64"""
    return W.row_sums() * state.top, input.sum_bound(U.integers)


def _check_kinds(program: IntegerProgram) -> None:
    kinds = {
        "W": Recurrent,
        "U": Matrix,
        "state": State,
        "input": Codes | Samples,
        "activation": Activation,
        "requant": Requant,
        "readout": Readout,
        "provenance": dict,
    }
    for name, kind in kinds.items():
        if not isinstance(getattr(program, name), kind):
            raise ProgramError(f"{name} cannot be a {type(getattr(program, name)).__name__}")
    if program.steps not in ("last", "all"):
        raise ProgramError(f"steps read out are 'last' or 'all', got {program.steps!r}")
    if program.readout.mix and program.steps != "last":
        raise ProgramError("mix transforms the last state before it is read out; this program reads out every step")
    if program.W.identity and not (isinstance(program.requant, PerRow) and program.requant.M_I is not None):
        raise ProgramError('the identity offset needs the multipliers M_I; lower with scheme="per-row"')
    if not program.W.identity and isinstance(program.requant, PerRow) and program.requant.M_I is not None:
        raise ProgramError("M_I multiplies the identity offset, which this W does not have")


def _check_widths(program: IntegerProgram) -> None:
    n_h, n_i = program.n_h, program.input.n_i
    if program.U.integers.shape != (n_h, n_i):
        raise ProgramError(f"U must be (n_h, n_i) = ({n_h}, {n_i}), got {program.U.integers.shape}")
    if program.readout.V.shape[1] != n_h:
        raise ProgramError(f"V must have a column for each of the {n_h} units, got {program.readout.V.shape}")
    if program.bias is not None and program.bias.shape != (n_h,):
        raise ProgramError(f"the bias must be ({n_h},), got {program.bias.shape}")
    requant = program.requant
    if isinstance(requant, PerRow) and requant.shift.shape != (n_h,):
        raise ProgramError(f"multipliers and shifts must be ({n_h},), got {requant.shift.shape}")
    if isinstance(requant, Thresholds) and len(requant.values) != program.state.top:
        raise ProgramError(
            f"{program.state.bits}-bit states take {program.state.top} thresholds, got {len(requant.values)}"
        )
    if isinstance(requant, Table) and requant.values.max() > program.state.top:
        raise ProgramError(f"the table leads past the largest state {program.state.top}")


def _check_driven(program: IntegerProgram) -> None:
    """Where inputs reach only some units, nothing is stored for the others."""
    if program.W.driven is None:
        return
    still = np.delete(np.arange(program.n_h), program.W.driven)
    for name, rows in (("U", program.U.integers), ("the bias", program.bias)):
        if rows is not None and rows[still].any():
            first = next(row for row in still if rows[row].any())
            raise ProgramError(f"inputs reach only the first unit of each delay line; row {first} of {name} must be 0")


def _check_bounds(program: IntegerProgram) -> None:
    """No sum of a step can overflow, whatever the inputs: proved here, once, from the integers."""
    if program.scheme == "paper" and program.bias is not None and np.abs(program.bias).max() >= LIMIT:
        raise _overflow(int(np.abs(program.bias).max()), program)
    largest = program.accumulator_bound
    # A threshold that no sum reaches is stored as LIMIT − 1, so no sum may reach that.
    if largest >= LIMIT - isinstance(program.requant, Thresholds):
        raise _overflow(largest, program)
    requant = program.requant
    if isinstance(requant, PerRow):
        sum_W, sum_U = (sums.tolist() for sums in row_sums(program.W, program.U, program.input, program.state))
        bias = [0] * program.n_h if program.bias is None else program.bias.tolist()
        own = [0] * program.n_h if requant.M_I is None else requant.M_I.tolist()
        for j in range(program.n_h):  # Python's integers: the check must not overflow itself
            v = int(requant.M_W[j]) * sum_W[j] + int(requant.M_U[j]) * sum_U[j] + own[j] * program.state.top
            if v + abs(bias[j]) >= WIDE:
                raise ProgramError(
                    f"row {j}: its 64-bit sum can reach {v + abs(bias[j]):.3g}, past 2^62; use smaller shifts"
                )


def _overflow(largest: int, program: IntegerProgram) -> ProgramError:
    return ProgramError(
        f"a sum of this program can reach {largest}, past the 32-bit accumulator's {LIMIT - 1} "
        f"(n_h={program.n_h}, weights {program.W.bits} bits, states {program.state.bits} bits, "
        f"inputs {program.input.bits} bits); use fewer activation bits, weight bits or input bits"
    )
