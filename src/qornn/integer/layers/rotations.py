"""Rotations: p complex states, each turned by its own λ at every step, in shifts and additions.

acc = (â re − b̂ im)·2^max(−e, 0) + (Σ U_i x_i)·2^max(e, 0)     and with â im + b̂ re for the imaginary part
re' = sat(R(acc, L + max(−e, 0)))                               λ = (â + i b̂)/2^L
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np

from qornn._io.text import counted
from qornn.errors import ProgramError
from qornn.integer import check
from qornn.integer.layers import powers
from qornn.integer.layers.base import Layer
from qornn.integer.layout import Fields, Layout
from qornn.integer.matrices import Matrix
from qornn.integer.state import ACTIVATION_BITS, Source, Units

LAMBDA_BITS: Final = range(8, 13)
RANGE: Final = 4.0  # states that C of a mix reads lie in ±4: one unit is 2^(3 − k_a)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rotations(Layer):
    """z ← sat(R(λ ⊙ z + U_i x)), the p real parts first, then the p imaginary ones; its output the state."""

    kind = "rotations"
    constant = "QORNN_ROTATIONS"
    struct = "qornn_rotations"
    host_struct = "qornn_host_rotations"
    arrays: ClassVar = {"turns": np.int16, "shift": np.int8}
    parts: ClassVar = {"U": {Matrix.kind: Matrix}}

    turns: np.ndarray  # (2, p) int16: â in −(2^L − 1)..2^L, b̂ in −2^L..2^L − 1, L = lambda_bits − 1
    U: Matrix  # (2p, n_in)
    shift: np.ndarray  # (2p,) int8: e
    bits: int  # of a state
    lambda_bits: int = 8

    def __post_init__(self) -> None:
        bits = check.number("state bits", self.bits, ACTIVATION_BITS[0], ACTIVATION_BITS[-1])
        object.__setattr__(self, "bits", bits)
        lambda_bits = check.number("lambda_bits", self.lambda_bits, LAMBDA_BITS[0], LAMBDA_BITS[-1])
        object.__setattr__(self, "lambda_bits", lambda_bits)
        if not isinstance(self.U, Matrix):
            raise ProgramError(f"U cannot be a {type(self.U).__name__}")
        turns = check.integers("turns", self.turns, np.int16, (2, None), -self.one, self.one)
        object.__setattr__(self, "turns", turns)
        self._check_disc()
        if len(self.U.integers) != 2 * self.pairs:
            raise ProgramError(f"U must have {2 * self.pairs} rows, two for each pair, got {len(self.U.integers)}")
        object.__setattr__(self, "shift", powers.shifts("the shifts of U", self.shift, 2 * self.pairs))

    def _check_disc(self) -> None:
        """No state grows: |λ| ≤ 1, a fact about integers."""
        a, b = self.turns.astype(np.int64)
        outside = np.flatnonzero(a**2 + b**2 > self.one**2)
        if len(outside):
            j = int(outside[0])
            raise ProgramError(
                f"lambda must lie in the unit disc, or states would grow: pair {j} has ({a[j]} + {b[j]}i)/{self.one}"
            )
        if (a == -self.one).any() or (b == self.one).any():  # as a byte of -a and one of b hold them
            raise ProgramError(f"turns must lie in {1 - self.one}..{self.one} and {-self.one}..{self.one - 1}")

    @classmethod
    def made(  # type: ignore[override]  # by name, as a trained layer says them
        cls,
        source: Source,
        *,
        turns: np.ndarray,
        U: np.ndarray,
        bits: int,
        unit: np.ndarray,
        step: np.ndarray,
        source_step: float,
        state_bits: int,
        lambda_bits: int = 8,
    ) -> tuple[Rotations, float]:
        """The trained integers with their shifts e = L + log2(unit) + log2(source_step) − log2(step).

        - `turns` (2, p), `U` (2p, n_in) of `bits` bits: integers.
        - `unit` (2p,): the value of one unit of each row of U. Of a row of zeros it may be anything.
        - `step` (p,): the value of one unit of each pair's state.
        - `source_step`: the value of one unit of what the layer read when it was trained.
        """
        powers.check_step("the inputs of a layer of rotations", source, source_step)
        p = np.shape(turns)[-1]
        silent = ~np.asarray(U).any(1)  # their shift changes nothing: R(v·2^k, s + k) = R(v, s)
        unit = np.where(silent, 1.0, np.asarray(unit, np.float64))
        e = lambda_bits - 1 + powers.exponents("the units of U", unit, (2 * p,))
        e += powers.exponents("source_step", source_step, ()) - np.tile(powers.exponents("step", step, (p,)), 2)
        e[silent] = 0
        made = cls(
            turns=turns,
            U=powers.matrix("U", U, bits, unit),
            shift=e,
            bits=state_bits,
            lambda_bits=lambda_bits,
        )
        return made, made.output.step

    @property
    def pairs(self) -> int:
        return self.turns.shape[1]

    @property
    def one(self) -> int:
        """λ = 1."""
        return int(2 ** (self.lambda_bits - 1))

    @property
    def n_in(self) -> int:
        return self.U.integers.shape[1]

    @property
    def n_state(self) -> int:
        return 2 * self.pairs

    @property
    def output(self) -> Units:
        """Normalised states: the columns that read them contain their steps."""
        return Units(n_i=self.n_state, bits=self.bits, alpha=RANGE)

    @property
    def top(self) -> int:
        return 2 ** (self.bits - 1) - 1

    @property
    def signed(self) -> bool:
        return True

    @property
    def weight_bits(self) -> int:
        return self.U.bits

    @property
    def native(self) -> bool:
        return True

    @property
    def stores_W(self) -> bool:
        return False

    @property
    def state_bits(self) -> int:
        return self.bits

    @property
    def parameters(self) -> int:
        return self.turns.size + self.U.integers.size

    @property
    def stored_bytes(self) -> int:
        return self.U.stored_bytes + self.turns.size * (2 if self.wide else 1) + self.shift.size

    @property
    def wide(self) -> bool:
        """Whether bytes do not hold λ."""
        return self.lambda_bits > 8

    def step(self, state: np.ndarray, x: np.ndarray, skip: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        a, b = self.turns.astype(np.int64)
        re, im = state[:, : self.pairs], state[:, self.pairs :]
        turned = np.concatenate([a * re - b * im, a * im + b * re], 1)  # (B, 2p)
        e = self.shift.astype(np.int64)
        acc = powers.left(turned, -e) + powers.left(self.U.sums(x), e)
        z = powers.rounded(acc, self._down).clip(-self.top, self.top)
        return z, z

    @property
    def _down(self) -> np.ndarray:
        """How far a sum is shifted to the right.  # (2p,)"""
        return self.lambda_bits - 1 + np.maximum(-self.shift.astype(np.int64), 0)

    def bounds(self, source: Source) -> tuple[np.ndarray, ...]:
        """((|â| + |b̂|)·top)·2^max(−e, 0) + max|Σ U_i x_i|·2^max(e, 0) + half: no partial sum is larger.  # (2p,)"""
        turned = np.tile(np.abs(self.turns.astype(np.int64)).sum(0) * self.top, 2)
        e = self.shift.astype(np.int64)
        driven = source.sum_bound(self.U.integers)
        return (powers.largest(turned, -e) + powers.largest(driven, e) + powers.half_of(self._down),)

    def check(self, source: Source) -> None:
        powers.check_width("U", self.U, source)
        what = f"{self.pairs} pairs, weights {self.U.bits} bits, states {self.bits} bits, inputs {source.bits} bits"
        powers.check_sums(self.bounds(source), what)

    def fields(self, source: Source, layout: Layout) -> Fields:
        """λ as −â and b̂: so a signed byte holds λ = 1."""
        turns = self.turns * np.array([[-1], [1]], np.int16)
        wide = layout.host or self.wide
        return {
            "n_i": self.n_in,
            "pairs": self.pairs,
            "bits_U": self.U.bits,
            "bits_z": self.bits,
            "bits_lambda": self.lambda_bits,
            "upward": int(self.shift.min() >= 0),
            **powers.laid_out("U", self.U, source, layout, parts=2),
            **({"turns_wide": turns} if wide else {"turns": turns.astype(np.int8)}),
            "shift": self.shift,
            **({"turn_pairs": self._turn_pairs()} if layout.host else {}),
        }

    def _turn_pairs(self) -> np.ndarray:
        """(â, −b̂) of each pair, then (b̂, â): what (re, im) is multiplied by, sixteen at a time.  # (2, 16·n, 2)"""
        a, b = self.turns
        each = np.stack([np.stack([a, -b], 1), np.stack([b, a], 1)])  # (2, p, 2)
        return np.pad(each, ((0, 0), (0, -self.pairs % 16), (0, 0)))

    def room(self, source: Source, layout: Layout) -> int:
        return powers.room_for(self.U, source, layout)

    def work(self, source: Source) -> dict[str, int]:
        """Multiply-accumulates: four for each pair, and U."""
        return {"per step": 4 * self.pairs + (self.U.integers.size if source.multiplied else 0)}

    @property
    def facts(self) -> dict[str, str]:
        return {
            "layer": self.kind,
            "lambda_bits": str(self.lambda_bits),
            "weight_bits": str(self.U.bits),
            "state_bits": str(self.bits),
        }

    def describe(self) -> str:
        return (
            f"{counted(self.pairs, 'rotation')} of {self.lambda_bits} bits, weights of {self.U.bits} bits, "
            f"states of {self.bits} bits"
        )
