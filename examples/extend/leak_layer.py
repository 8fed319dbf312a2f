"""The same layer in integers: s ← s + round((x − s)/2^shift), on the grid of what it reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from qornn.errors import ProgramError
from qornn.integer import check
from qornn.integer.engine.structs import FOLDERS
from qornn.integer.layers import LAYERS, Layer
from qornn.integer.layout import Fields, Layout
from qornn.integer.state import Source, State, Units

UNITS = 1024


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leak(Layer):
    """Leaky integrators: nothing is stored but the shift."""

    kind = "leak"
    struct = "qornn_leak"
    parts: ClassVar = {"state": {State.kind: State}}

    units: int
    shift: int
    state: State

    def __post_init__(self) -> None:
        check.number("units of a leak", self.units, 1, UNITS)
        check.number("shift of a leak", self.shift, 1, 8)

    @classmethod
    def made(cls, source: Source, **numbers: Any) -> tuple[Layer, float]:
        """On the grid of the source; where that reaches −2^(k−1), as samples do, states have k + 1 bits."""
        step = source.alpha / 2 ** (source.bits - 1)
        bits = int(_largest(source).max()).bit_length() + 1
        state = State(bits=bits, alpha=step * 2 ** (bits - 1))
        return cls(units=source.n_i, state=state, **numbers), step

    @property
    def n_in(self) -> int:
        return self.units

    @property
    def n_state(self) -> int:
        return self.units

    @property
    def output(self) -> Units:
        return Units(n_i=self.units, bits=self.state.bits)

    @property
    def top(self) -> int:
        return self.state.top

    @property
    def signed(self) -> bool:
        return True

    def step(self, state: np.ndarray, x: np.ndarray, skip: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        d = x - state
        s = state + np.sign(d) * ((np.abs(d) + 2 ** (self.shift - 1)) >> self.shift)
        return s, s

    def check(self, source: Source) -> None:
        if source.n_i != self.units or not source.multiplied:
            raise ProgramError(f"a leak of {self.units} units reads as many numbers, got {source.n_i}")
        if (largest := int(_largest(source).max())) > self.top:
            raise ProgramError(f"a leak of {self.state.bits} bits reads up to {self.top}, got {largest}")

    def bounds(self, source: Source) -> tuple[np.ndarray, ...]:
        return (_largest(source) + self.top + 2 ** (self.shift - 1),)

    @property
    def weight_bits(self) -> int:
        return 0

    @property
    def stores_W(self) -> bool:
        return False

    @property
    def state_bits(self) -> int:
        return self.state.bits

    @property
    def parameters(self) -> int:
        return 0

    @property
    def stored_bytes(self) -> int:
        return 1  # the shift

    def fields(self, source: Source, layout: Layout) -> Fields:
        return {"n": self.units, "shift": self.shift}

    def room(self, source: Source, layout: Layout) -> int:
        return self.units

    def work(self, source: Source) -> dict[str, int]:
        return {"a step: leaks, additions alone": 2 * self.units}

    @property
    def facts(self) -> dict[str, str]:
        return {"leak_shift": str(self.shift), "state_bits": str(self.state.bits)}

    def describe(self) -> str:
        return f"leaky integrators with a shift of {self.shift}, states of {self.state.bits} bits"


def _largest(source: Source) -> np.ndarray:
    """The largest magnitude of each number that a layer reads."""
    return source.sum_bound(np.eye(source.n_i, dtype=np.int8))


LAYERS[Leak.kind] = Leak
FOLDERS.append(Path(__file__).parent)  # where qornn_leak.h lies; one of the package lies in runtime/
