"""The state's grid, and what a layer reads: the states of the layer before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol, final

import numpy as np

from qornn.errors import SettingsError
from qornn.integer import check

ACTIVATION_BITS: Final = range(4, 17)


class Source(Protocol):
    """What a layer reads: the program's input, or the layer before."""

    @property
    def n_i(self) -> int: ...

    @property
    def bits(self) -> int: ...

    @property
    def alpha(self) -> float:
        """x = alpha·x_i/2^(bits−1)"""

    @property
    def multiplied(self) -> bool:
        """Whether its numbers meet every weight of a row; a code only reads a column."""

    @property
    def skip(self) -> Source | None:
        """The source of the layer that gives it, for skips. None for the program's input."""

    def sum_bound(self, U: np.ndarray) -> np.ndarray:
        """max|Σ U_i x_i| of each row.  # (n_h,) int64"""

    def layer_fields(self) -> dict[str, Any]:
        """Fields that describe this source in the C struct of the layer that reads it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class State(check.Checked):
    """h = alpha·h_i/2^(bits−1); the magnitude of h_i is at most 2^(bits−1) − 1."""

    kind = "uniform"

    bits: int
    alpha: float

    def __post_init__(self) -> None:
        bits = check.number("activation_bits", self.bits, ACTIVATION_BITS[0], ACTIVATION_BITS[-1])
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "alpha", check.positive("alpha_h", self.alpha))

    @property
    def top(self) -> int:
        """The largest state, 2^(bits−1) − 1."""
        return 2 ** (self.bits - 1) - 1

    @property
    def step(self) -> float:
        """h of one unit of h_i."""
        return self.alpha / 2 ** (self.bits - 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The outputs of a layer, as the next one reads them: x = alpha·x_i/2^(bits−1), as of samples."""

    n_i: int
    bits: int
    alpha: float = 1.0  # needed to make a program, not to run it
    skip: Source | None = None  # what the layer itself was given
    multiplied = True

    @property
    def top(self) -> int:
        return 2 ** (self.bits - 1) - 1

    @property
    def step(self) -> float:
        """x of one unit of x_i."""
        return self.alpha / 2 ** (self.bits - 1)

    def sum_bound(self, U: np.ndarray) -> np.ndarray:
        """Σ|U_i|·top of each row.  # (n_h,)"""
        return np.abs(U.astype(np.int64)).sum(1) * self.top

    def layer_fields(self) -> dict[str, Any]:
        return {"input": "QORNN_SAMPLES"}


def check_activation_bits(bits: object) -> None:
    """Refuse bits that no state can have. Call it before training."""
    whole = isinstance(bits, int | np.integer) and not isinstance(bits, bool)
    if not whole or bits not in ACTIVATION_BITS:
        low, high = ACTIVATION_BITS[0], ACTIVATION_BITS[-1]
        raise SettingsError(f"activation_bits must be in {low}..{high}, got {bits!r}; 12 is the paper's")
