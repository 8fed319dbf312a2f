"""The interface of every layer of a network: all states and the last state, batch first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from qornn.model.fixed import FixesWeights
from qornn.quant import Quantizer, Uniform


@dataclass(frozen=True, slots=True)
class Grid:
    """The whole numbers that a layer gives: x = step·x_i, |x_i| ≤ top."""

    step: Tensor  # (), a power of two
    top: int


class SequenceLayer(FixesWeights):
    """`states, last = layer(x, h0)`: x (B, T, n_i) to states (B, T, n_h), zero past a sequence's end, and (B, n_state).

    A kind of layer sets `n_i` and `n_h` and implements `forward`. All other methods have defaults here.
    """

    n_i: int
    n_h: int
    state_bits: int | None = None  # of states that are rounded while training; else lowering decides
    skip: int = 0  # numbers it reads of what the layer before was given; `forward` then takes skip=

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All states, and the state at each sequence's true end."""
        raise NotImplementedError

    @property
    def n_state(self) -> int:
        """Numbers kept from step to step."""
        return self.n_h

    def last(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> Tensor:
        """The state (B, n_h) at each sequence's true end."""
        return self(x, h0, lengths=lengths)[1]

    def read_out(
        self,
        V: Tensor,
        b_o: Tensor,
        x: Tensor,
        h0: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        relu: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """V h_t + b_o of all steps (B, T, n_o) instead of the states."""
        states, last = self(x, h0, lengths=lengths)
        return F.linear(states.relu() if relu else states, V, b_o), last

    def penalty(self) -> Tensor | None:
        """What the layer adds to the loss, if anything."""
        return None

    def made_of(self) -> tuple[str, dict[str, Any]] | None:
        """The kind of the layer in an IntegerProgram, and the numbers of that kind; None where weights make it."""
        return None

    # For layers that round while training. A Stack calls these on all of its layers, in order, at every forward pass.

    @property
    def rounds(self) -> bool:
        """Whether what it gives is rounded while training, so that what it reads should be too."""
        return False

    def enter_stack(self) -> None:
        """Called once by the stack that the layer is added to."""

    def settle(self) -> Tensor | None:
        """Move the steps of its grid if needed. Returns the factors (n_h,) by which its outputs change, if they do."""
        return None

    @property
    def rescales(self) -> bool:
        """Whether `settle` may ever return factors."""
        return False

    def absorb(self, factors: Tensor) -> None:
        """Its inputs were multiplied by these factors (n_i,): divide its weights by them, so that its sums stay."""
        raise NotImplementedError

    @property
    def follows(self) -> bool:
        """Whether it can read a layer that rescales its outputs."""
        return type(self).absorb is not SequenceLayer.absorb

    def reads(self, grid: Grid | None, skip: Grid | None) -> None:
        """What the numbers are that it is about to read."""

    def gives(self) -> Grid | None:
        """What its outputs are; None where they are floats."""
        return None

    def freeze(self, frozen: bool = True) -> None:
        """Freeze its steps from now on. False: they move again."""

    def slow(self) -> list[nn.Parameter]:
        """Parameters that learn at a quarter of the learning rate."""
        return []

    # For diagnostics.

    @contextmanager
    def on_bits(self, bits: int | None) -> Iterator[None]:
        """Inside the context its weights have this many bits, whatever it was trained with. None: no rounding."""
        yield

    def figures(self) -> dict[str, float]:
        """Diagnostics that are logged with every loss, such as how orthogonal W is."""
        return {}

    def state_figures(self, states: Tensor, steps: int) -> dict[str, float]:
        """The same of its outputs on data, zeros past the sequences' ends; they have so many steps in all."""
        return {"max_h": float(states.abs().max())}

    @property
    def bits(self) -> int | None:
        """Weight bits; None means full precision, or no weights."""
        return None

    @property
    def quantizes_V(self) -> bool:
        """Whether V has this layer's bits unless others are asked for."""
        return False

    def quantizer_of_V(self, bits: int) -> Quantizer:
        """What rounds the V that reads this layer."""
        return Uniform(bits)

    @property
    def readout_activation(self) -> str:
        """Default activation of the states before they are read out."""
        return "identity"
