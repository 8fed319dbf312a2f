"""What is read out of the last layer: y = V h + b_o, in float32 or in integers.

Of the last step, of every step, or of the mean of all: then y = V Σh + T·bias, to be divided by T for values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, final

import numpy as np

from qornn.bits import BITS
from qornn.errors import SettingsError
from qornn.integer import check, mean
from qornn.integer.check import INT32
from qornn.integer.layout import Fields, Layout, pack_stream
from qornn.integer.matrices.base import as_program_error, exact_product, packed_bytes
from qornn.integer.packing import Packed
from qornn.integer.readout_base import WHEN, Held, Readout, Steps
from qornn.structure import check_power

__all__ = ["FLOAT32", "READOUTS", "FloatReadout", "Held", "IntReadout", "Readout", "Steps"]

WHOLE: Final = 8  # V of so many bits lies as it is
FLOAT32: Final = float(np.finfo(np.float32).max)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloatReadout(Readout):
    """y = scale·(V h_i) + b_o in float32: products and sums in the order j = 0…n_h−1, none fused.

    With `mix` the 1/√n of the transform is in the scale.
    """

    kind = "float"
    dtype = np.float32
    exact = False
    arrays: ClassVar = {"V": np.float32, "b_o": np.float32}

    V: np.ndarray  # (n_o, n_h) float32
    b_o: np.ndarray  # (n_o,) float32
    scale: float  # a float32
    relu: bool = False  # of the state, for linear recurrences
    mix: bool = False
    steps: Steps = "last"

    def __post_init__(self) -> None:
        if self.steps == "mean":
            raise check.ProgramError(
                "a mean must be read out in integers, so that every runtime gives the same bits; make an IntReadout or "
                "lower with readout='int8'"
            )
        _check(self, check.floats("V", self.V, np.float32, np.shape(self.V)))
        object.__setattr__(self, "b_o", check.floats("b_o", self.b_o, np.float32, (len(self.V),)))
        with np.errstate(over="ignore"):  # past float32 becomes infinity, refused below
            object.__setattr__(self, "scale", float(np.float32(check.positive("readout scale", self.scale))))
        check.positive("readout scale (as float32)", self.scale)

    @property
    def bits_V(self) -> None:
        return None

    @property
    def steps_max(self) -> None:
        return None

    @property
    def offset(self) -> float:
        return 0.0

    @property
    def stored_bytes(self) -> int:
        return self.V.nbytes + self.b_o.nbytes + 4

    def floats(self) -> dict[str, np.ndarray]:
        return {"V": self.V, "b_o": self.b_o}

    def outputs(self, h: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        h = self.seen(h).astype(np.float32)
        total = np.zeros((*h.shape[:-1], len(self.V)), np.float32)
        for j in range(h.shape[-1]):
            total += h[..., j, None] * self.V[:, j]
        return total * np.float32(self.scale) + self.b_o

    def values(self, y: np.ndarray, counts: Any = None) -> np.ndarray:
        return y

    def in_units(self, scale: float, offset: float) -> FloatReadout:
        return replace(self, V=self.V * scale, b_o=self.b_o * scale + offset)

    def sums_bounds(self, top: int) -> tuple[np.ndarray, ...]:
        return ()

    def largest(self, top: int) -> float:
        sums = np.abs(self.V.astype(np.float64)).sum(1) * top * (self.n_h if self.mix else 1)
        return float(max(sums.max(), (sums * self.scale + np.abs(self.b_o)).max()))

    def fields(self, layout: Layout, *, wide: bool) -> Fields:
        columns = {"V_columns": self.V.T} if layout.host else {}
        return {
            **self.common_fields(),
            "kind": "QORNN_FLOAT",
            "V": self.laid_out_V(),
            "b_o": self.b_o,
            "scale": np.float32(self.scale),
            **columns,
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntReadout(Readout):
    """y_i = V_i h_i + bias, all integers: argmax needs no float; y = scale·y_i + offset.

    Of a mean y_i = V_i Σh_i + T·bias, whose argmax needs no division; y = scale·y_i/T + offset. The offset is of values
    far from zero, as of temperatures: a bias so large would take the room of the sums.
    """

    kind = "integer"
    dtype = np.int32
    exact = True
    arrays: ClassVar = {"V": np.int8, "bias": np.int32}
    packed: ClassVar = {"V": Packed(2)}

    V: np.ndarray  # (n_o, n_h) int8
    bias: np.ndarray  # (n_o,) int32
    scale: float
    relu: bool = False
    bits: int = 8  # of V
    mix: bool = False  # the bias is in units of V_i S h_i
    steps: Steps = "last"
    steps_max: int | None = None  # of a mean: where T is so large, Σh and T are halved
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", check.number("bits of V", self.bits, BITS[0], BITS[-1]))
        top = 2 ** (self.bits - 1)
        _check(self, check.integers("V", self.V, np.int8, (None, None), -top, top - 1))
        object.__setattr__(self, "bias", check.integers("b_o", self.bias, np.int32, (len(self.V),), *INT32))
        object.__setattr__(self, "scale", check.positive("readout scale", self.scale))
        object.__setattr__(self, "offset", check.finite("readout offset", self.offset))
        object.__setattr__(self, "steps_max", mean.check_steps_max(self.steps_max, pooled=self.pooled))

    @classmethod
    def packed_at(cls, bits: object) -> Mapping[str, Packed]:
        return {} if bits == WHOLE else cls.packed

    @property
    def bits_V(self) -> int:
        return self.bits

    @property
    def stored_bytes(self) -> int:
        return packed_bytes(self.V.size, self.bits) + self.bias.nbytes

    def outputs(self, h: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        if self.pooled:
            assert counts is not None  # of what is held
            return (exact_product(self.V, h) + counts[:, None] * self.bias.astype(np.int64)).astype(np.int32)
        flat = self.seen(h).reshape(-1, h.shape[-1])
        return (exact_product(self.V, flat) + self.bias).astype(np.int32).reshape(*h.shape[:-1], len(self.V))

    def values(self, y: np.ndarray, counts: Any = None) -> np.ndarray:
        if not self.pooled:
            return (y * self.scale + self.offset).astype(np.float32)
        if counts is None:
            raise SettingsError(
                "outputs of a mean are sums over the steps: call values(y, readout.counts(steps)) with the length of "
                "each sequence"
            )
        counts = np.maximum(counts, 1)  # before the first step there is nothing to divide
        return (y * self.scale / counts[..., None] + self.offset).astype(np.float32)

    def in_units(self, scale: float, offset: float) -> IntReadout:
        if not scale:  # of whatever V reads
            return replace(self, V=np.zeros_like(self.V), bias=np.zeros_like(self.bias), offset=offset)
        return replace(self, scale=self.scale * scale, offset=self.offset * scale + offset)

    def sums_bounds(self, top: int) -> tuple[np.ndarray, ...]:
        """Σ|V_i| h_max + |bias|; of a mean Σ|V_i| Σh_max + T·|bias| at its last step before it is halved.

        Of a mixed state by Cauchy-Schwarz: since ‖S h‖₂ = √n ‖h‖₂ ≤ n·top, |Σ V_j (S h)_j| ≤ ‖V‖₂ n·top, whichever j
        are summed and whichever of them relu leaves out; Σ|V_j| n·top is never less.
        """
        V, bias = self.V.astype(np.int64), np.abs(self.bias.astype(np.int64))
        if self.steps_max is not None:
            return mean.bounds(np.abs(V).sum(1), bias, top, self.steps_max)
        if not self.mix:
            return (np.abs(V).sum(1) * top + bias,)
        largest, squares = self.n_h * top, (V**2).sum(1).tolist()
        norms = [math.isqrt(max(square * largest**2 - 1, 0)) + (square > 0) for square in squares]  # rounded up
        return (np.array(norms, object) + bias,)

    def way_out(self, top: int) -> str:
        if not self.pooled or not (most := mean.most_steps(self.V, self.bias, top)):
            return Readout.way_out(self, top)
        return f"use a steps_max of at most {most}, not {self.steps_max}"

    def largest(self, top: int) -> float:
        return 0.0

    def fields(self, layout: Layout, *, wide: bool) -> Fields:
        found: Fields = {**self.common_fields(), "kind": "QORNN_INT", "b_o_int": self.bias}
        if not layout.host and (self.bits < WHOLE or self.mix or self.pooled or wide):
            return found | {"bits_V": self.bits, "V_packed": pack_stream(self.laid_out_V(), self.bits)}
        return found | {"V_int": self.laid_out_V()}


READOUTS: dict[str, type[Readout]] = {kind.kind: kind for kind in (FloatReadout, IntReadout)}


def _check(readout: FloatReadout | IntReadout, V: np.ndarray) -> None:
    if V.ndim != 2 or not V.size:
        raise check.ProgramError(f"V must be (n_o, n_h), got shape {V.shape}")
    object.__setattr__(readout, "V", V)
    for name in ("relu", "mix"):
        if not isinstance(getattr(readout, name), bool):
            raise check.ProgramError(f"the readout's {name} must be True or False, got {getattr(readout, name)!r}")
    if readout.steps not in tuple(WHEN):  # compared, not hashed: a file may say anything
        raise check.ProgramError(f"steps read out are 'last', 'all' or 'mean', got {readout.steps!r}")
    if readout.mix:
        if readout.steps != "last":
            which = "every step" if readout.every else "the mean of all"
            raise check.ProgramError(
                f"mix transforms the last state before it is read out; this program reads out {which}"
            )
        as_program_error(check_power, V.shape[1], 2, "n_h of a readout with mix")
