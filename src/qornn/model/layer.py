"""What every layer of a network has: states and the last of them, batch first."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F


class SequenceLayer(nn.Module):
    """`states, last = layer(x, h0)`: x (B, T, n_i) to states (B, T, n_h), zero past a sequence's end, and (B, n_h).

    A kind of layer sets `n_i` and `n_h` and implements `forward`; what else a network asks has an answer here.
    """

    n_i: int
    n_h: int

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All states, and the state at each sequence's true end."""
        raise NotImplementedError

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

    @property
    def bits(self) -> int | None:
        """Weight bits; None is full precision, or no weights."""
        return None

    @property
    def quantizes_V(self) -> bool:
        """Whether V has this layer's bits unless others are asked for."""
        return False

    @property
    def readout_activation(self) -> str:
        """Of the states before they are read out, unless another is asked for."""
        return "identity"
