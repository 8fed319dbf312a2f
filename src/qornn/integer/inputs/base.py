"""The interface of every kind of input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qornn._io.text import counted
from qornn.integer import check
from qornn.integer.check import INT16


class Input(check.Checked, ABC):
    """What the first layer reads, and what a device gives for it."""

    __slots__ = ()
    kind: ClassVar[str]
    noun: ClassVar[str]  # one of what there are n_i
    multiplied: ClassVar[bool]  # whether its numbers meet every weight of a row; a code only reads a column
    skip: ClassVar[None] = None  # no layer gives it
    top: ClassVar[int] = INT16[1]  # of a number that it keeps
    signed: ClassVar[bool] = True  # so are those

    if TYPE_CHECKING:

        @property
        def bits(self) -> int: ...

        @property
        def alpha(self) -> float: ...

    @property
    @abstractmethod
    def n_i(self) -> int:
        """Columns of U."""

    def describe(self) -> str:
        """What a step reads, in a few words."""
        return counted(self.n_i, self.noun)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the raw integers of one step."""

    @property
    def n_raw(self) -> int:
        """Raw integers of a step, or how many codes there are: what C calls NAME_N_I."""
        return self.n_i

    @property
    def channels(self) -> int:
        """Numbers of a sample."""
        return 1

    @property
    def window(self) -> int:
        """Samples that a step reads."""
        return 1

    @property
    def hold(self) -> bool:
        """Whether a sample may be missing."""
        return False

    @property
    def ranges(self) -> np.ndarray:
        """Between which samples the network sees differences: floats where it takes them, else raw.  # (channels, 2)"""
        return np.array([self.limits])

    @property
    def n_state(self) -> int:
        """Numbers it keeps from step to step, all 0 at the start."""
        return 0

    def kept(self, room: int) -> dict[int, int]:
        """What it has in RAM, with room for so many x_i: bytes of a number, and how many of these."""
        return {2: room + self.n_state} if room else {}

    @property
    @abstractmethod
    def limits(self) -> tuple[int, int]:
        """The least and the largest raw integer."""

    @property
    @abstractmethod
    def stored_bytes(self) -> int:
        """Bytes it takes on a device."""

    @property
    @abstractmethod
    def takes_floats(self) -> bool:
        """Whether `from_floats`, and NAME_quantize in C, exist."""

    @property
    @abstractmethod
    def in_double(self) -> bool:
        """Whether NAME_quantize calculates in double, which brings some kilobytes of library."""

    @abstractmethod
    def integers(self, raw: np.ndarray) -> np.ndarray:
        """x_i of raw samples, each by itself, or codes as they are."""

    def step(self, kept: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is kept after a step, and what the first layer reads.  # (B, n_state), (B, …) -> the same, (B, …)"""
        return kept, self.integers(raw)

    @abstractmethod
    def sum_bound(self, U: np.ndarray) -> np.ndarray:
        """max|Σ U_i x_i| of each row.  # (n_h,)"""

    @abstractmethod
    def accept(self, x: np.ndarray, *, saturate: bool = False) -> tuple[np.ndarray, int]:
        """Raw integers, checked against the declared range or clipped to it, and how many were clipped."""

    @abstractmethod
    def clip(self, raw: np.ndarray) -> np.ndarray:
        """Samples held to the declared range, as a device holds them."""

    @abstractmethod
    def from_floats(self, x: np.ndarray) -> np.ndarray:
        """Raw integers of floats in the units of the training data, not yet held to the declared range."""

    @abstractmethod
    def from_network(self, x: np.ndarray) -> np.ndarray:
        """Raw integers of the x that the network itself sees."""

    def read(self, x: np.ndarray) -> np.ndarray:
        """What the first layer reads of the x that the network itself sees.  # (B, T, …)"""
        return self.integers(self.accept(self.clip(self.from_network(x)), saturate=True)[0])

    @abstractmethod
    def draw(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        """Raw integers of any kind that a device may be given.  # (steps, …) int16"""

    @abstractmethod
    def draw_floats(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        """Floats that a device may be given; none where it takes none.  # (at most steps, n_i) float32"""

    @abstractmethod
    def fields(self, room: int) -> dict[str, Any]:
        """Its fields of qornn_input; there is room for so many x_i."""

    @abstractmethod
    def layer_fields(self) -> dict[str, Any]:
        """Fields that describe the input in the C struct of the first layer."""


def shape_of(x: np.ndarray) -> str:
    """Shape and type of the given array, for an error."""
    return f"shape {x.shape}, {x.dtype}"
