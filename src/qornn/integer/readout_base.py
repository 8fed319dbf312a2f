"""The interface of every kind of readout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np

from qornn.integer import check, mean
from qornn.integer.layout import Fields, Layout
from qornn.structure import transform

Steps = Literal["last", "all", "mean"]
Held = tuple[np.ndarray, np.ndarray]  # Σh (B, n_h) and T (B,), int64; where no mean is read out, the last h and 1
WHEN: Final[dict[Steps, str]] = {
    "last": "at the end of a sequence",
    "all": "at every step",
    "mean": "as the mean of all steps",
}


class Readout(check.Checked, ABC):
    """y of the states. With `mix`, of S h_i in place of h_i, S Sylvester's matrix."""

    __slots__ = ()
    kind: ClassVar[str]
    dtype: ClassVar[Any]  # of y
    exact: ClassVar[bool]  # whether every runtime gives the same y: sums of floats depend on their order

    if TYPE_CHECKING:

        @property
        def V(self) -> np.ndarray: ...

        @property
        def b_o(self) -> np.ndarray: ...

        @property
        def relu(self) -> bool: ...

        @property
        def mix(self) -> bool: ...

        @property
        def scale(self) -> float: ...

        @property
        def offset(self) -> float:
            """What is added to the values of integer outputs; 0 where outputs are values."""

        @property
        def steps(self) -> Steps: ...

        @property
        def steps_max(self) -> int | None:
            """Steps after which Σh and T of a mean are halved."""

    @property
    def n_o(self) -> int:
        return len(self.V)

    @property
    def n_h(self) -> int:
        return self.V.shape[1]

    @property
    def every(self) -> bool:
        """Whether every state is read out, not the last alone."""
        return self.steps == "all"

    @property
    def pooled(self) -> bool:
        """Whether the mean of all steps is read out."""
        return self.steps == "mean"

    def floats(self) -> dict[str, np.ndarray]:
        """V and b_o as real numbers, by the names they have in training."""
        raise check.ProgramError(
            "a training cannot begin with a program that has its readout in integers; begin with its run folder, or "
            'lower it with readout="float"'
        )

    def way_out(self, top: int) -> str:
        """What to change if the sums of outputs up to `top` do not fit."""
        return "use fewer activation bits or bits of V"

    @property
    def when(self) -> str:
        """What is read out, in words."""
        return WHEN[self.steps]

    def start(self, B: int) -> Held:
        """The accumulated state of B sequences before their first step."""
        return np.zeros((B, self.n_h), np.int64), np.full(B, int(not self.pooled))

    def take(self, held: Held, h: np.ndarray) -> Held:
        """The accumulated state after one more step with the last layer's output h.  # (B, n_h)"""
        if self.steps_max is None:
            return h, held[1]
        return mean.add(*held, self.shown(h), self.steps_max)

    def counts(self, steps: Any) -> np.ndarray:
        """The divisor of the outputs after `steps` steps: T of a mean, else 1.  # int64, of the shape of `steps`"""
        steps = np.asarray(steps)
        return np.ones(steps.shape, np.int64) if self.steps_max is None else mean.count(steps, self.steps_max)

    @property
    @abstractmethod
    def bits_V(self) -> int | None:
        """Bits of V, or None for floats."""

    @property
    @abstractmethod
    def stored_bytes(self) -> int:
        """Bytes it takes on a device."""

    @abstractmethod
    def outputs(self, h: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """y of integer states; of a mean h is the Σh that is held, and `counts` its T.  # (..., n_h) -> (..., n_o)"""

    @abstractmethod
    def values(self, y: np.ndarray, counts: Any = None) -> np.ndarray:
        """Outputs in the network's own units, as float32; of a mean, `counts(steps)` says T of each sequence."""

    @abstractmethod
    def in_units(self, scale: float, offset: float) -> Readout:
        """The same readout with scale·value + offset in place of each value."""

    @abstractmethod
    def sums_bounds(self, top: int) -> tuple[np.ndarray, ...]:
        """Bounds of its 32-bit sums of states up to `top`."""

    @abstractmethod
    def largest(self, top: int) -> float:
        """The largest float that states up to `top` can lead to."""

    @abstractmethod
    def fields(self, layout: Layout, *, wide: bool) -> Fields:
        """Its fields of qornn_readout; `wide` where states have 32 bits."""

    def bounds(self, top: int) -> tuple[np.ndarray, ...]:
        """Bounds of the 32-bit sums. |(S h)_j| ≤ n·top."""
        mixed = (np.array([self.n_h * top], object),) if self.mix else ()
        return (*mixed, *self.sums_bounds(top))

    def seen(self, h: np.ndarray) -> np.ndarray:
        """What V multiplies."""
        if self.mix:
            h = transform(h.astype(np.int64))  # int64: states come in 16 bits
        return self.shown(h)

    def shown(self, h: np.ndarray) -> np.ndarray:
        """A step's states after the readout's own activation."""
        return np.maximum(h, 0) if self.relu else h

    def common_fields(self) -> Fields:
        """The fields that every kind fills."""
        return {
            "n_o": self.n_o,
            "n_h": self.n_h,
            "relu": int(self.relu),
            "mix": int(self.mix),
            "steps": f"QORNN_{self.steps.upper()}",
            "steps_max": self.steps_max or 0,
        }

    def laid_out_V(self) -> np.ndarray:
        """V as it is read: with `mix` column by column."""
        return np.ascontiguousarray(self.V.T) if self.mix else self.V
