"""The activations: from what a row sums to, by way of a rounded magnitude, to its next state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from qornn.integer import check

Magnitude = Callable[[np.ndarray], np.ndarray]  # of what is not negative: rounded and saturated


class Activation(check.Checked, ABC):
    """σ of a recurrence."""

    __slots__ = ()
    kind: ClassVar[str]
    constant: ClassVar[str]  # its name in C
    signed: ClassVar[bool]  # whether states can be negative

    if TYPE_CHECKING:

        @property
        def bias(self) -> np.ndarray | None:
            """(n_h,) int64, in the units of what is requantized."""

    @abstractmethod
    def next(self, z: np.ndarray, magnitude: Magnitude, bias: np.ndarray | None) -> np.ndarray:
        """The next states of the sums z, with this bias in their units.  # -> int64"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReLU(Activation):
    """max(z, 0)"""

    kind = "relu"
    constant = "QORNN_RELU"
    signed = False

    @property
    def bias(self) -> None:
        return None

    def next(self, z: np.ndarray, magnitude: Magnitude, bias: np.ndarray | None) -> np.ndarray:
        return magnitude(np.maximum(z, 0))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModReLU(Activation):
    """sign(z)·max(|z| + bias, 0), the bias in the units of what is requantized (int64: with per-row multipliers
    it is scaled by 2^shift)."""

    kind = "modrelu"
    constant = "QORNN_MODRELU"
    signed = True
    arrays: ClassVar = {"bias": np.int64}

    bias: np.ndarray  # (n_h,) int64

    def __post_init__(self) -> None:
        object.__setattr__(self, "bias", _checked_bias(self.bias))

    def next(self, z: np.ndarray, magnitude: Magnitude, bias: np.ndarray | None) -> np.ndarray:
        return _sign(z) * magnitude(np.maximum(np.abs(z) + bias, 0))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Identity(Activation):
    """z + bias itself: the linear recurrence, its bias in the units of modReLU's but added before the sign is taken."""

    kind = "identity"
    constant = "QORNN_IDENTITY"
    signed = True
    arrays: ClassVar = {"bias": np.int64}

    bias: np.ndarray | None = None  # (n_h,) int64

    def __post_init__(self) -> None:
        if self.bias is not None:
            object.__setattr__(self, "bias", _checked_bias(self.bias))

    def next(self, z: np.ndarray, magnitude: Magnitude, bias: np.ndarray | None) -> np.ndarray:
        z = z if bias is None else z + bias
        return _sign(z) * magnitude(np.abs(z))


ACTIVATIONS: dict[str, type[Activation]] = {kind.kind: kind for kind in (ReLU, ModReLU, Identity)}


def _sign(z: np.ndarray) -> np.ndarray:
    return np.sign(z).astype(np.int64)


def _checked_bias(bias: np.ndarray) -> np.ndarray:
    return check.integers("bias", bias, np.int64, (None,), -(2**62), 2**62)
