"""The interface of every kind of W. Not every W is a stored matrix, so other code never asks which kind it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qornn.integer import check

if TYPE_CHECKING:
    from qornn.integer.layout import Fields, Layout
    from qornn.integer.requant import Requant

EXACT = 2**53  # float64 holds every integer below


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a step in C goes through a layer with this W."""

    function: str  # of the runtime
    header: str = "qornn_structured.h"  # that has it
    buffers: int = 1  # of states: two where a step must not write over what it still reads
    wide: bool = False  # whether states have 32 bits: sums are made in their place
    sums: int = 0  # of 32 bits, kept apart from the state


class RecurrentMatrix(check.Checked, ABC):
    """W of the recurrence: integers h -> Σ W_i h_i, how many bits it has and how many bytes it takes."""

    __slots__ = ()
    kind: ClassVar[str]
    stored: ClassVar[bool]  # whether its entries are
    scheme: ClassVar[str]  # of the requantization that suits it
    native: ClassVar[bool] = False  # whether the host's engine in C has it; numpy runs the others

    # For the type checker alone: a dataclass would take an inherited property for the default of its field.
    if TYPE_CHECKING:

        @property
        def bits(self) -> int:
            """Bits of an entry."""

        @property
        def alpha(self) -> np.ndarray:
            """() or (n_h,) float64: W_q = alpha·integers/2^(bits−1)."""

        @property
        def identity(self) -> bool:
            """Whether I is added to it (the identity offset)."""

    @property
    @abstractmethod
    def n_h(self) -> int:
        """Width of the state."""

    @property
    @abstractmethod
    def stored_bytes(self) -> int:
        """Bytes it takes on a device, packed."""

    @property
    @abstractmethod
    def form(self) -> Form:
        """How C computes a step."""

    @abstractmethod
    def product(self, h: np.ndarray) -> np.ndarray:
        """W_i h of every state, exactly.  # (B, n_h) int64 -> (B, n_h) int64"""

    @abstractmethod
    def row_sums(self) -> np.ndarray:
        """Σ_j |W_i[i, j]|: what bounds every partial sum of a row.  # (n_h,) int64"""

    @abstractmethod
    def written_out(self) -> np.ndarray:
        """W_i entry by entry.  # (n_h, n_h) int64"""

    def floats(self) -> np.ndarray:
        """W_q.  # (n_h, n_h) float64"""
        raise check.ProgramError(
            f"a training cannot begin with a program whose W is of kind {self.kind}; begin with its run folder"
        )

    @abstractmethod
    def fields(self, layout: Layout) -> Fields:
        """Its fields of qornn_recurrent."""

    @abstractmethod
    def work(self) -> dict[str, int]:
        """Operations of W_i h in a step, by what they are."""

    @abstractmethod
    def describe(self, U_bits: int) -> str:
        """The weights of a layer in a few words."""

    @abstractmethod
    def rounds(self, unit: np.ndarray, largest: float, bits: int) -> bool:
        """Whether states of this many bits lose something at every step; `unit` is the h of one unit of Σ U x."""

    @property
    def driven(self) -> np.ndarray | None:
        """The units that inputs reach, or None for all."""
        return None

    def keeps(self, requant: Requant, top: int) -> bool:
        """Whether the units that inputs do not reach only pass their values on."""
        return False


def exact_product(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x Aᵀ of integers; by way of float64 (and the machine's fast product) where it holds every partial sum."""
    largest = int(np.abs(x).max(initial=0)) * A.shape[1] * 128
    if largest < EXACT:
        return (x.astype(np.float64) @ A.T.astype(np.float64)).astype(np.int64)
    return x.astype(np.int64) @ A.T.astype(np.int64)


def packed_bytes(count: int, bits: int) -> int:
    """Bytes of `count` integers packed side by side, rounded up."""
    return -(-count * bits // 8)


def as_program_error(function: Any, *arguments: Any) -> Any:
    """The result of the function. If it refuses its settings, the program is invalid."""
    from qornn.errors import SettingsError

    try:
        return function(*arguments)
    except SettingsError as error:
        raise check.ProgramError(str(error)) from error
