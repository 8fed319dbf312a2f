"""The interface of a quantizer: weights become integers once, and the float weights are computed from them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn

from qornn.bits import check_bits


class Quantizer(nn.Module, ABC):
    """W -> (integers, alpha) -> W_q, with the straight-through estimator behind it."""

    bits: int

    @abstractmethod
    def to_int(self, W: Tensor) -> tuple[Tensor, Tensor]:
        """Integers (in W's own float type, exact) and scale alpha; the only place weights are rounded."""

    @abstractmethod
    def dequantize(self, integers: Tensor, alpha: Tensor) -> Tensor:
        """W_q from its integers."""

    def with_bits(self, bits: int) -> Self:
        """The same quantizer on another number of bits."""
        other = copy.deepcopy(self)
        other.bits = check_bits(bits)
        return other

    def forward(self, W: Tensor) -> Tensor:
        """W_q = dequantize(to_int(W)); the gradient passes unchanged, also where the value was clipped."""
        return _StraightThrough.apply(W, self)


class _StraightThrough(torch.autograd.Function):
    """The value of W_q, bit for bit, with the gradient of the identity (paper, the straight-through estimator).

    Writing W + (W_q − W).detach() instead would round twice and leave W_q off its own grid.
    """

    @staticmethod
    def forward(ctx: Any, W: Tensor, quantizer: Quantizer) -> Tensor:
        return quantizer.dequantize(*quantizer.to_int(W))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0], None


class _ValueOf(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, value: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0], None


@contextmanager
def having(part: nn.Module, **changed: Any) -> Iterator[None]:
    """Inside the context the part has these attributes, such as another quantizer."""
    before = {name: getattr(part, name) for name in changed}
    try:
        for name, value in changed.items():
            setattr(part, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(part, name, value)


def straight_through(x: Tensor, value: Tensor) -> Tensor:
    """`value`, bit for bit, with the gradient of x."""
    return _ValueOf.apply(x, value)


def round_half_away(x: Tensor) -> Tensor:
    """Nearest integer, ties away from zero: the one rounding rule of the package.

    floor(|x| + 0.5) would be wrong at 0.49999997, where the addition itself rounds up to 1.
    """
    whole = x.trunc()
    return whole + x.sign() * ((x - whole).abs() >= 0.5)
