"""Mix: a ReLU of what it reads and, with a skip, of what the layer before was given; in shifts and additions.

acc = (Σ C_i x_i)·2^max(f−g, 0) + (Σ S_i skip_i)·2^max(g−f, 0) + bias
y   = min(R(max(acc, 0), t), 127), where t < 0 shifts to the left
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np

from qornn._io.text import counted
from qornn.errors import ProgramError
from qornn.integer import check
from qornn.integer.check import INT16, INT32
from qornn.integer.layers import powers
from qornn.integer.layers.base import Layer
from qornn.integer.layout import Fields, Layout
from qornn.integer.matrices import Matrix
from qornn.integer.state import Source, Units

BITS: Final = 8  # of an output, which is never negative


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mix(Layer):
    """y = relu(C_i x [+ S_i skip] + bias) of each step alone: it keeps no state."""

    kind = "mix"
    constant = "QORNN_MIX"
    struct = "qornn_mix_layer"
    host_struct = "qornn_host_mix_layer"
    arrays: ClassVar = {"bias": np.int32, "shift": np.int8, "apart": np.int8}
    parts: ClassVar = {"C": {Matrix.kind: Matrix}, "S": {Matrix.kind: Matrix}}

    C: Matrix  # (d, n_in)
    bias: np.ndarray  # (d,) int32, in units of the sum
    shift: np.ndarray  # (d,) int8: t
    S: Matrix | None = None  # (d, width of the skip)
    apart: np.ndarray | None = None  # (d,) int8: f − g, where there is a skip

    def __post_init__(self) -> None:
        for name, value in (("C", self.C), ("S", self.S)):
            if not isinstance(value, Matrix) and (name == "C" or value is not None):
                raise ProgramError(f"{name} cannot be a {type(value).__name__}")
        d = self.width
        object.__setattr__(self, "bias", check.integers("the bias of a mix", self.bias, np.int32, (d,), *INT32))
        object.__setattr__(self, "shift", powers.shifts("the shifts of a mix", self.shift, d))
        if (self.S is None) != (self.apart is None):
            raise ProgramError("a mix with a skip needs S and apart, and a mix without a skip has neither")
        if self.S is not None:
            if len(self.S.integers) != d:
                raise ProgramError(f"S must have a row for each of the {d} of C, got {len(self.S.integers)}")
            object.__setattr__(self, "apart", powers.shifts("the shifts between C and S", self.apart, d))

    @classmethod
    def made(  # type: ignore[override]  # by name, as a trained layer says them
        cls,
        source: Source,
        *,
        C: np.ndarray,
        bits: int,
        unit: np.ndarray,
        source_step: float,
        bias: np.ndarray,
        step: float,
        S: np.ndarray | None = None,
        unit_S: np.ndarray | None = None,
        skip_step: float | None = None,
    ) -> tuple[Mix, float]:
        """The trained integers with their shifts: f = log2(unit·source_step), g = log2(unit_S·skip_step).

        - `C` (d, n_in) and with a skip `S` (d, width), both of `bits` bits: integers.
        - `unit`, `unit_S` (d,): the value of one unit of each row.
        - `source_step`, `skip_step`: the value of one unit of what C and S read when they were trained.
        - `bias` (d,): integers, in units of 2^min(f, g), or 2^f without a skip.
        - `step`: the value of one unit of the output.
        """
        d = len(C)
        powers.check_step("the inputs of a mix", source, source_step)
        f = powers.exponents("the units of C", unit, (d,)) + powers.exponents("source_step", source_step, ())
        y = powers.exponents("step", step, ())
        made_C = powers.matrix("C", C, bits, np.asarray(unit, np.float64))
        if S is None:
            return cls(C=made_C, bias=bias, shift=y - f), float(step)
        powers.check_step("the skip of a mix", source.skip, skip_step)  # type: ignore[arg-type]  # with S it is given
        g = powers.exponents("the units of S", unit_S, (d,)) + powers.exponents("skip_step", skip_step, ())
        made_S = powers.matrix("S", S, bits, np.asarray(unit_S, np.float64))
        return cls(C=made_C, bias=bias, shift=y - np.minimum(f, g), S=made_S, apart=f - g), float(step)

    @property
    def width(self) -> int:
        return len(self.C.integers)

    @property
    def n_in(self) -> int:
        return self.C.integers.shape[1]

    @property
    def n_state(self) -> int:
        return 0

    @property
    def output(self) -> Units:
        return Units(n_i=self.width, bits=BITS)

    @property
    def top(self) -> int:
        return self.output.top

    @property
    def signed(self) -> bool:
        return False

    @property
    def weight_bits(self) -> int:
        return self.C.bits if self.S is None else max(self.C.bits, self.S.bits)

    @property
    def native(self) -> bool:
        return True

    @property
    def stores_W(self) -> bool:
        return False

    @property
    def state_bits(self) -> int:
        return 0

    @property
    def parameters(self) -> int:
        return self.C.integers.size + (0 if self.S is None else self.S.integers.size)

    @property
    def stored_bytes(self) -> int:
        skip = 0 if self.S is None or self.apart is None else self.S.stored_bytes + self.apart.size
        return self.C.stored_bytes + self.shift.size + self.bias.size * (4 if self.wide_bias else 2) + skip

    @property
    def wide_bias(self) -> bool:
        """Whether some bias does not fit 16 bits."""
        return bool(self.bias.min() < INT16[0] or self.bias.max() > INT16[1])

    def step(self, state: np.ndarray, x: np.ndarray, skip: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        acc = self.C.sums(x)
        if self.S is not None and self.apart is not None:
            assert skip is not None  # check(source) has found one
            apart = self.apart.astype(np.int64)
            acc = powers.left(acc, apart) + powers.left(self.S.sums(skip), -apart)
        acc = powers.left(np.maximum(acc + self.bias, 0), -self.shift.astype(np.int64))
        return state, np.minimum(powers.rounded(acc, self._down), self.top)

    @property
    def _down(self) -> np.ndarray:
        """How far a sum is shifted to the right.  # (d,)"""
        return np.maximum(self.shift.astype(np.int64), 0)

    def bounds(self, source: Source) -> tuple[np.ndarray, ...]:
        """Σ|C_i| x_max and Σ|S_i| skip_max as they are shifted, |bias|, and half; shifted to the left where t < 0."""
        sums = source.sum_bound(self.C.integers)
        if self.S is not None and self.apart is not None and source.skip is not None:
            apart = self.apart.astype(np.int64)
            sums = powers.largest(sums, apart) + powers.largest(source.skip.sum_bound(self.S.integers), -apart)
        sums = sums + np.abs(self.bias.astype(np.int64))
        shift = self.shift.astype(np.int64)
        return (powers.largest(sums, -shift) + powers.half_of(shift),)

    def check(self, source: Source) -> None:
        powers.check_width("C", self.C, source)
        skip = ""
        if self.S is not None:
            if source.skip is None:
                raise ProgramError(
                    f"S reads {self.S.integers.shape[1]} numbers from the input of the layer before, but "
                    "this is the first layer"
                )
            powers.check_width("S", self.S, source.skip)
            skip = f", skip {source.skip.bits} bits"
        what = f"{self.n_in} inputs of {source.bits} bits, weights {self.weight_bits} bits{skip}"
        powers.check_sums(self.bounds(source), what)

    def fields(self, source: Source, layout: Layout) -> Fields:
        wide = layout.host or self.wide_bias
        skip: Fields = {}
        if self.S is not None and source.skip is not None:
            skip = {"n_skip": source.skip.n_i, "bits_S": self.S.bits, "apart": self.apart}
            skip |= powers.laid_out("S", self.S, source.skip, layout)
        return {
            "n_i": self.n_in,
            "width": self.width,
            "bits_C": self.C.bits,
            "right": int(self.shift.min() > 0),
            **powers.laid_out("C", self.C, source, layout),
            **({"bias_wide": self.bias} if wide else {"bias": self.bias.astype(np.int16)}),
            "shift": self.shift,
            **skip,
        }

    def room(self, source: Source, layout: Layout) -> int:
        return powers.room_for(self.C, source, layout)

    def skip_room(self, source: Source, layout: Layout) -> int:
        return 0 if self.S is None or source.skip is None else powers.room_for(self.S, source.skip, layout)

    def work(self, source: Source) -> dict[str, int]:
        """Multiply-accumulates; codes select a column, which is only added."""
        skip = self.S is not None and source.skip is not None and source.skip.multiplied
        S = self.S.integers.size if skip and self.S is not None else 0
        return {"per step": (self.C.integers.size if source.multiplied else 0) + S}

    @property
    def facts(self) -> dict[str, str]:
        return {"layer": self.kind, "weight_bits": str(self.weight_bits)}

    def describe(self) -> str:
        outputs = counted(self.width, "output") + ("" if self.S is None else " and a skip")
        return f"a mix of {outputs}, weights of {self.weight_bits} bits, outputs of {BITS} bits"
