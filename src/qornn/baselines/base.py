"""What a baseline is: states from its own recurrence, a readout like ours, weights through the same quantizer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qornn.errors import SettingsError
from qornn.quant import Quantizer, Uniform, having
from qornn.quant.base import round_half_away


class Baseline(nn.Module, ABC):
    """y = V h + b_o of the last state or of all; called like OrthogonalRNN."""

    def __init__(
        self,
        n_i: int,
        n_h: int,
        n_o: int,
        *,
        bits: int | None = None,
        scale: str = "tensor",
        activation_bits: int | None = None,
        readout: Literal["last", "all"] = "last",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_i, self.n_h, self.n_o, self.readout = n_i, n_h, n_o, readout
        self.activation_bits = activation_bits
        self.q_W: Quantizer | None = None if bits is None else Uniform(bits, scale=scale)  # recurrent weights
        self.q_U: Quantizer | None = None if bits is None else Uniform(bits, scale=scale)  # input weights
        self.V = nn.Parameter(nn.init.xavier_normal_(torch.empty(n_o, n_h), generator=generator))
        self.b_o = nn.Parameter(torch.zeros(n_o))

    @property
    def bits(self) -> int | None:
        """Weight bits; None means full precision."""
        return None if self.q_W is None else self.q_W.bits

    @abstractmethod
    def states(self, x: Tensor) -> Tensor:
        """h_1..h_T.  # (B, T, n_i) -> (B, T, n_h)"""

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """y (B, n_o) of the last state or (B, T, n_o) of all, and the state at each sequence's true end."""
        if h0 is not None:
            raise SettingsError("the baselines start from zero states; leave out h0")
        if x.ndim == 2 and not x.is_floating_point():
            x = F.one_hot(x, self.n_i)
        states = self.states(x.to(self.V.dtype))
        last = states[:, -1] if lengths is None else states[torch.arange(len(x)), lengths.to(x.device) - 1]
        return F.linear(last if self.readout == "last" else states, self.V, self.b_o), last

    def penalty(self) -> None:
        """Nothing is added to the loss."""

    @contextmanager
    def on_bits(self, bits: int | None) -> Iterator[None]:
        """Inside the context its weights have this many bits, whatever it was trained with. None: quantizers off."""
        q_W, q_U = (None if bits is None else (q or Uniform(bits)).with_bits(bits) for q in (self.q_W, self.q_U))
        with having(self, q_W=q_W, q_U=q_U):
            yield

    def quantized_state(self, h: Tensor) -> Tensor:
        """h on `activation_bits` bits with the gradient of the identity; h itself without them."""
        if self.activation_bits is None:
            return h
        step = h.detach().abs().max() / (2 ** (self.activation_bits - 1) - 1)
        rounded = torch.where(step > 0, round_half_away(h.detach() / step) * step, h.detach())
        return h + (rounded - h).detach()


def through(quantizer: Quantizer | None, weights: Tensor) -> Tensor:
    """The weights the network uses."""
    return weights if quantizer is None else quantizer(weights)
