"""y = V h + b_o."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from qornn.errors import unknown
from qornn.model.inputs import refuse_non_finite, refuse_transforms
from qornn.model.keywords import check_widths, refuse_unknown
from qornn.model.readout import ReadsOut
from qornn.model.recurrence import OrthogonalRecurrence


class OrthogonalRNN(ReadsOut):
    """y = V h + b_o on an orthogonal recurrence (paper, Vanilla RNNs); softmax belongs to the loss.

    >>> model = OrthogonalRNN(1, 170, 10, map="bjorck", bits=5)
    >>> y, h = model(torch.rand(2, 784, 1))
    >>> y.shape, h.shape
    (torch.Size([2, 10]), torch.Size([2, 170]))

    - `n_i`: channels of the input, or number of codes.
    - `n_h`: units.
    - `n_o`: outputs.
    - `readout` ("last"): y of the last state, or of "all".
    - `readout_activation` (None): identity or relu on the states that V reads. None means identity; where W is not
      stored, relu.
    - `mix` (False): a Walsh-Hadamard transform of the last state before it is read out. n_h is then a power of two.
    - `noise` (0.0): deviation of the noise added to the states that V reads while training, as a share of their size.
    - `bits_V` (None): bits of V, 2 to 8. None means float; where W is not stored, `bits`.
    - `init_V` ("xavier-normal"): V before training: xavier-normal or kaiming-normal.
    - `gain_V` (1.0): factor on V before training.
    - `generator` (None): draws the weights. None means torch's global generator.
    - `recurrence_options`: every keyword of `OrthogonalRecurrence`:
        - `map` ("bjorck"): what keeps W orthogonal, with the map's own parameters beside it, such as `rank=2`.
        - `bits` (None): bits of W and U, 2 to 8. None means full precision.
        - `bits_W` (None): bits of W if they differ. None means `bits`.
        - `bits_U` (None): bits of U if they differ. None means `bits`.
        - `quantizer` ("uniform"): of W: uniform or identity-offset, or a `Quantizer`.
        - `scale` ("tensor"): one scale per matrix, or "row" for one per row.
        - `activation` (None): relu, modrelu, identity or tanh. None means relu; where W is not stored, identity.
        - `init` ("haar"): W before training: haar, henaff, henaff-quarter or identity.
        - `init_U` ("xavier-normal"): U before training: xavier-normal or kaiming-normal.
    """

    entry = None  # inputs are not rounded while training

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
        if readout not in ("last", "all"):
            raise unknown("readout", readout, ("last", "all"))
        self.recurrence = layer = OrthogonalRecurrence(n_i, n_h, generator=generator, **recurrence_options)
        bits_V = recurrence_options.get("bits") if bits_V is None and layer.map.structured else bits_V
        self.set_readout(
            n_h,
            n_o,
            readout=readout,
            readout_activation=readout_activation or layer.map.readout_activation,
            mix=mix,
            noise=noise,
            q_V=None if bits_V is None else layer.quantizer_of_V(bits_V),
            init_V=init_V,
            gain_V=gain_V,
            generator=generator,
        )

    @property
    def layers(self) -> tuple[OrthogonalRecurrence, ...]:  # type: ignore[override]  # nobody sets them
        """The one recurrent layer, as of a stack."""
        return (self.recurrence,)

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """y (B, n_o) of the last state or (B, T, n_o) of all, and h (B, n_h) at each sequence's true end."""
        refuse_transforms()
        refuse_non_finite(x, self.V.dtype, lengths)
        if self.readout == "all" and torch.is_grad_enabled() and not self.noisy:
            return self.recurrence.read_out(*self.readout_weights(), x, h0, lengths=lengths, relu=self.relu)
        if self.readout == "last":
            h = last = self.recurrence.last(x, h0, lengths=lengths)
        else:
            h, last = self.recurrence(x, h0, lengths=lengths)
        return self.read(h), last

    def outputs(self, x: Tensor, lengths: Tensor | None = None) -> list[Tensor]:
        """The states, as of a stack of one layer.  # (B, T, n_h)"""
        return [self.recurrence(x, lengths=lengths)[0]]

    def penalty(self) -> Tensor | None:
        """What the recurrence's map adds to the loss, if anything."""
        return self.recurrence.penalty()
