"""h⁰ = x, hⁱ = layerⁱ(hⁱ⁻¹), y = V hⁿ + b_o: several layers one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from qornn.errors import SettingsError
from qornn.model.inputs import refuse_non_finite
from qornn.model.layer import SequenceLayer
from qornn.model.readout import ReadsOut

Finals = tuple[Tensor, ...]


class Stack(ReadsOut):
    """Layers, each reading the states of the one before it, and a readout of the last.

    >>> from qornn import OrthogonalRecurrence
    >>> model = Stack([OrthogonalRecurrence(1, 64, bits=4), OrthogonalRecurrence(64, 32, bits=4)], n_o=10)
    >>> y, h = model(torch.rand(2, 100, 1))
    >>> y.shape, [h_i.shape for h_i in h]
    (torch.Size([2, 10]), [torch.Size([2, 64]), torch.Size([2, 32])])

    - `layers`: in their order, each an `OrthogonalRecurrence` or another `SequenceLayer`; it reads the units of the one
      before.
    - `n_o`: outputs.
    - `pool` ("last"): y of the last state, or of "all".
    - `readout_activation` (None): identity or relu on the states that V reads. None is identity; where W of the last
      layer is not stored, relu.
    - `mix` (False): a Walsh-Hadamard transform of the last state before it is read out.
    - `noise` (0.0): deviation of the noise added to the states that V reads while training, as a share of their size.
    - `bits_V` (None): bits of V, 2 to 8. None is float; where W of the last layer is not stored, its `bits`.
    - `init_V` ("xavier-normal"): V before training: xavier-normal or kaiming-normal.
    - `gain_V` (1.0): factor on V before training.
    - `generator` (None): draws V. None is torch's global generator.
    """

    def __init__(
        self,
        layers: Sequence[SequenceLayer],
        *,
        n_o: int,
        pool: Literal["last", "all"] = "last",
        readout_activation: str | None = None,
        mix: bool = False,
        noise: float = 0.0,
        bits_V: int | None = None,
        init_V: str = "xavier-normal",
        gain_V: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        _check_layers(layers)
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]
        last = layers[-1]
        self.set_readout(
            last.n_h,
            n_o,
            readout=pool,
            readout_activation=readout_activation or last.readout_activation,
            mix=mix,
            noise=noise,
            bits_V=last.bits if bits_V is None and last.quantizes_V else bits_V,
            init_V=init_V,
            gain_V=gain_V,
            generator=generator,
        )

    def forward(
        self, x: Tensor, h0: Sequence[Tensor] | None = None, *, lengths: Tensor | None = None
    ) -> tuple[Tensor, Finals]:
        """y (B, n_o) of the last state or (B, T, n_o) of all, and each layer's state at each sequence's true end.

        `h0` are states to begin with, one (B, n_h) for each layer.
        """
        refuse_non_finite(x, self.V.dtype, lengths)
        begin = self._checked(h0)
        *before, last = self.layers
        finals = []
        for layer, h in zip(before, begin, strict=False):
            x, final = layer(x, h, lengths=lengths)
            finals.append(final)
        if self.readout == "all" and torch.is_grad_enabled() and not self.noisy:
            y, final = last.read_out(self.V_q(), self.b_o, x, begin[-1], lengths=lengths, relu=self.relu)
            return y, (*finals, final)
        if self.readout == "last":
            h = final = last.last(x, begin[-1], lengths=lengths)
        else:
            h, final = last(x, begin[-1], lengths=lengths)
        return self.read(h), (*finals, final)

    def penalty(self) -> Tensor | None:
        """What the maps of the layers add to the loss, if anything."""
        terms = [term for layer in self.layers if (term := layer.penalty()) is not None]
        return sum(terms[1:], terms[0]) if terms else None

    def _checked(self, h0: Sequence[Tensor] | None) -> list[Tensor | None]:
        if h0 is None:
            return [None] * len(self.layers)
        if isinstance(h0, Tensor) or len(h0) != len(self.layers):
            got = "one tensor" if isinstance(h0, Tensor) else f"{len(h0)} states"
            raise SettingsError(f"h0 must be {len(self.layers)} states, one (B, n_h) for each layer; got {got}")
        return list(h0)


def _check_layers(layers: Sequence[SequenceLayer]) -> None:
    if isinstance(layers, nn.Module) or not len(layers):
        raise SettingsError("a stack takes a list of at least one OrthogonalRecurrence")
    for i, layer in enumerate(layers):
        if not isinstance(layer, SequenceLayer):
            raise SettingsError(f"layer {i} of a stack must be an OrthogonalRecurrence, got {type(layer).__name__}")
        if i and layer.n_i != layers[i - 1].n_h:
            raise SettingsError(
                f"layer {i} reads {layer.n_i} numbers, but layer {i - 1} has {layers[i - 1].n_h} units; "
                f"make it with n_i={layers[i - 1].n_h}"
            )
