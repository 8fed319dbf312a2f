"""y = V h + b_o."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qornn import draws
from qornn.errors import SettingsError, unknown
from qornn.model.inputs import refuse_non_finite
from qornn.model.keywords import check_mix, check_widths, refuse_unknown
from qornn.model.recurrence import OrthogonalRecurrence
from qornn.model.weights import initial
from qornn.quant import Quantizer, Uniform
from qornn.recurrence.reference import transform

READOUTS = ("last", "all")
READOUT_ACTIVATIONS = ("identity", "relu")


class OrthogonalRNN(nn.Module):
    """y = V h + b_o on an orthogonal recurrence (paper, Vanilla RNNs); softmax belongs to the loss.

    >>> model = OrthogonalRNN(1, 170, 10, map="bjorck", bits=5)
    >>> y, h = model(torch.rand(2, 784, 1))
    >>> y.shape, h.shape
    (torch.Size([2, 10]), torch.Size([2, 170]))

    - `n_i`, `n_h`, `n_o`: channels of the input, units, and outputs.
    - `readout` ("last"): y of the last state, or of "all".
    - `readout_activation` (None): identity or relu on the states that V reads. None is identity; where W is not
      stored, relu.
    - `mix` (False): a Walsh-Hadamard transform of the last state before it is read out. n_h is then a power of two.
    - `noise` (0.0): deviation of the noise added to the states that V reads while training, as a share of their size.
    - `bits_V` (None): bits of V, 2 to 8. None is float; where W is not stored, `bits`.
    - `init_V` ("xavier-normal"): V before training: xavier-normal or kaiming-normal.
    - `gain_V` (1.0): factor on V before training.
    - `generator` (None): draws the weights. None is torch's global generator.
    - `recurrence_options`: every keyword of `OrthogonalRecurrence`:
        - `map` ("bjorck"): what keeps W orthogonal, with the map's own parameters beside it, such as `rank=2`.
        - `bits` (None), `bits_W` (None), `bits_U` (None): bits of the weights, 2 to 8. None is full precision.
        - `quantizer` ("uniform"), `scale` ("tensor"): how weights are rounded, and one scale per tensor or per row.
        - `activation` (None): relu, modrelu, identity or tanh. None is relu; where W is not stored, identity.
        - `init` ("haar"), `init_U` ("xavier-normal"): W and U before training.
    """

    def __init__(
        self,
        n_i: int,
        n_h: int,
        n_o: int,
        *,
        readout: Literal["last", "all"] = "last",
        readout_activation: str | None = None,
        mix: bool = False,
        noise: float = 0.0,
        bits_V: int | None = None,
        init_V: str = "xavier-normal",
        gain_V: float = 1.0,
        generator: torch.Generator | None = None,
        **recurrence_options: Any,
    ) -> None:
        super().__init__()
        check_widths(n_o=n_o)
        refuse_unknown(recurrence_options, recurrence_options.get("map", "bjorck"), OrthogonalRNN, OrthogonalRecurrence)
        if readout not in READOUTS:
            raise unknown("readout", readout, READOUTS)
        self.n_o, self.readout, self.mix, self.noise = n_o, readout, mix, noise
        self.recurrence = layer = OrthogonalRecurrence(n_i, n_h, generator=generator, **recurrence_options)
        self.readout_activation = readout_activation or layer.map.readout_activation
        if self.readout_activation not in READOUT_ACTIVATIONS:
            raise unknown("readout_activation", readout_activation, READOUT_ACTIVATIONS)
        if mix:
            check_mix(n_h, readout)
        if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise < math.inf:
            raise SettingsError(f"noise is a share of the state's own size, 0 or more, got {noise!r}")
        k_V = recurrence_options.get("bits") if bits_V is None and layer.map.structured else bits_V
        self.q_V: Quantizer | None = None if k_V is None else Uniform(k_V)
        self.V = nn.Parameter(gain_V * initial(init_V, n_o, n_h, generator=generator))
        self.b_o = nn.Parameter(torch.zeros(n_o))

    def V_q(self) -> Tensor:
        """The output matrix the network uses; the paper's is float."""
        return self.V if self.q_V is None else self.q_V(self.V)

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """y (B, n_o) of the last state or (B, T, n_o) of all, and h (B, n_h) at each sequence's true end."""
        refuse_non_finite(x, self.V.dtype, lengths)
        relu, noisy = self.readout_activation == "relu", self.training and self.noise > 0
        if self.readout == "all" and torch.is_grad_enabled() and not noisy:
            return self.recurrence.read_out(self.V_q(), self.b_o, x, h0, lengths=lengths, relu=relu)
        if self.readout == "last":
            h = last = self.recurrence.last(x, h0, lengths=lengths)
        else:
            h, last = self.recurrence(x, h0, lengths=lengths)
        if self.mix:
            h = transform(h) / math.sqrt(h.shape[-1])
        if noisy:  # of the size that rounding the state would have: the network learns to live with it
            drawn = torch.randn(h.shape, generator=draws.generator(h.device), dtype=h.dtype, device=h.device)
            h = h + self.noise * h.detach().square().mean().sqrt() * drawn
        return F.linear(h.relu() if relu else h, self.V_q(), self.b_o), last

    def penalty(self) -> Tensor | None:
        """What the recurrence's map adds to the loss, if anything."""
        return self.recurrence.penalty()

    def extra_repr(self) -> str:
        return f"n_o={self.n_o}, readout={self.readout!r}, readout_activation={self.readout_activation!r}"
