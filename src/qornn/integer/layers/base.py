"""The interface of every kind of layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from qornn.integer import check
from qornn.integer.layout import Fields, Layout
from qornn.integer.state import Source, Units


class Layer(check.Checked, ABC):
    """One layer of a program: states and inputs in, states and outputs out, all integers."""

    __slots__ = ()
    kind: ClassVar[str]
    constant: ClassVar[str]  # its name in C; of a native layer
    struct: ClassVar[str]  # of a device
    host_struct: ClassVar[str]  # around it, with what wide registers want; of a native layer
    parts: ClassVar[Mapping[str, Mapping[str, type]]]  # its fields that are parts, and the kinds each may have

    @property
    @abstractmethod
    def n_in(self) -> int:
        """Numbers it reads in a step."""

    @property
    @abstractmethod
    def n_state(self) -> int:
        """Numbers it keeps from step to step; none of a layer that only reads."""

    @property
    @abstractmethod
    def output(self) -> Units:
        """What the next layer, or the readout, sees of it."""

    @property
    @abstractmethod
    def top(self) -> int:
        """The largest magnitude of a state."""

    @property
    @abstractmethod
    def signed(self) -> bool:
        """Whether states can be negative."""

    @property
    def numpy_only(self) -> str:
        """The part that neither C nor ONNX supports, and what to do instead. Empty if they support all."""
        return ""

    @property
    def native(self) -> bool:
        """Whether the host's C engine supports it. Otherwise numpy runs the program."""
        return False

    @classmethod
    def made(cls, source: Source, **numbers: Any) -> tuple[Layer, float]:
        """The layer of what a trained one says of itself (`made_of`), and the value of one unit of its output."""
        raise NotImplementedError(f"{cls.__name__} is made of weights")

    def floats(self) -> dict[str, np.ndarray]:
        """Its weights as real numbers, by the names they have in training."""
        raise check.ProgramError(
            f"a training cannot begin with a program that has a layer of {self.kind}; begin with its run folder"
        )

    @abstractmethod
    def step(self, state: np.ndarray, x: np.ndarray, skip: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The next state and the output, of numbers (B, n_in) or codes (B,); `skip` is what the layer before read."""

    @abstractmethod
    def check(self, source: Source) -> None:
        """Refuse a source that does not fit, and prove that no sum overflows, whatever it gives."""

    @abstractmethod
    def bounds(self, source: Source) -> tuple[np.ndarray, ...]:
        """The largest magnitudes that the 32-bit sums of a step can reach, from the actual integers."""

    @property
    @abstractmethod
    def weight_bits(self) -> int:
        """Bits of the widest stored matrix."""

    @property
    @abstractmethod
    def stores_W(self) -> bool:
        """Whether its recurrent matrix is stored."""

    @property
    @abstractmethod
    def state_bits(self) -> int:
        """Bits of a state; 0 of a layer that keeps none."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Weights that were learned."""

    @property
    @abstractmethod
    def stored_bytes(self) -> int:
        """Everything of it that a device must store."""

    @abstractmethod
    def fields(self, source: Source, layout: Layout) -> Fields:
        """The fields of its struct."""

    @abstractmethod
    def room(self, source: Source, layout: Layout) -> int:
        """Length of its input buffer: what its kernels read."""

    def skip_room(self, source: Source, layout: Layout) -> int:
        """The same of what the layer before was given, where it reads that."""
        return 0

    @property
    def wide_state(self) -> bool:
        """Whether its states have 32 bits on a device."""
        return False

    def kept(self, room: int) -> dict[int, int]:
        """What it has in RAM, where the next layer reads `room` numbers: bytes of a number, and how many of these."""
        return {2: max(self.output.n_i, room)}

    @abstractmethod
    def work(self, source: Source) -> dict[str, int]:
        """Operations of a step, by what they are."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, str]:
        """The kinds of its parts and their bits."""

    @abstractmethod
    def describe(self) -> str:
        """Its weights and states in a few words."""


def sources(input: Source, layers: tuple[Layer, ...]) -> Iterator[Source]:
    """What each layer reads, with what the layer before it was given: a skip reads that."""
    source = input
    for layer in layers:
        yield source
        source = replace(layer.output, skip=source)
