"""h⁰ = x, hⁱ = layerⁱ(hⁱ⁻¹), y = V hⁿ + b_o: several layers one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from qornn.errors import SettingsError
from qornn.model.entry import Entry
from qornn.model.inputs import checked_lengths, refuse_non_finite, refuse_transforms, without_padding
from qornn.model.keywords import check_widths
from qornn.model.layer import Grid, SequenceLayer
from qornn.model.mix import Mix
from qornn.model.readout import ReadsOut
from qornn.model.rotations import Rotations
from qornn.recurrence import exporting

Finals = tuple[Tensor, ...]
INPUT_BITS = 8
KINDS = "an OrthogonalRecurrence, Rotations, a Mix or another SequenceLayer"


class Stack(ReadsOut):
    """Layers, each reading the states of the one before it, and a readout of the last.

    >>> from qornn import OrthogonalRecurrence
    >>> model = Stack([OrthogonalRecurrence(1, 64, bits=4), OrthogonalRecurrence(64, 32, bits=4)], n_o=10)
    >>> y, h = model(torch.rand(2, 100, 1))
    >>> y.shape, [h_i.shape for h_i in h]
    (torch.Size([2, 10]), [torch.Size([2, 64]), torch.Size([2, 32])])

    - `layers`: in their order, each an `OrthogonalRecurrence`, `Rotations`, `Mix` or another `SequenceLayer`; it reads
      the outputs of the one before.
    - `n_o`: outputs.
    - `pool` ("last"): y of the last step, of "all", or of the "mean" over a sequence's steps.
    - `input_bits` (None): bits of the inputs, 2 to 16, rounded while training too. None means 8 where the first layer
      rounds, and float otherwise.
    - `readout_activation` (None): identity or relu on the states that V reads. None means identity; where W of the last
      layer is not stored, relu.
    - `mix` (False): a Walsh-Hadamard transform of the last state before it is read out.
    - `noise` (0.0): deviation of the noise added to the states that V reads while training, as a share of their size.
    - `bits_V` (None): bits of V, 2 to 8. None means float; where W of the last layer is not stored, its `bits`.
    - `init_V` ("xavier-normal"): V before training: xavier-normal or kaiming-normal.
    - `gain_V` (1.0): factor on V before training.
    - `generator` (None): draws V. None means torch's global generator.
    """

    def __init__(
        self,
        layers: Sequence[SequenceLayer],
        *,
        n_o: int,
        pool: Literal["last", "all", "mean"] = "last",
        input_bits: int | None = None,
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
        if input_bits is None and layers[0].rounds:
            input_bits = INPUT_BITS
        self.entry = None if input_bits is None else Entry(input_bits)
        bits_V = last.bits if bits_V is None and last.quantizes_V else bits_V
        self.set_readout(
            last.n_h,
            n_o,
            readout=pool,
            readout_activation=readout_activation or last.readout_activation,
            mix=mix,
            noise=noise,
            q_V=None if bits_V is None else last.quantizer_of_V(bits_V),
            init_V=init_V,
            gain_V=gain_V,
            generator=generator,
        )
        for layer in layers:
            layer.enter_stack()

    @classmethod
    def rotations(
        cls,
        n_i: int,
        n_o: int,
        *,
        width: int = 16,
        pairs: int | None = None,
        layers: int = 2,
        bits: int | None = 4,
        state_bits: int | None = 8,
        skip: bool = False,
        pool: Literal["last", "all", "mean"] = "mean",
        dropout: float = 0.0,
        lambda_bits: int | None = None,
        ring: tuple[float, float] = (0.6, 0.99),
        integrators: int = 0,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> Self:
        """A stem, then `layers` times rotations and a mix, then the readout.

        >>> model = Stack.rotations(4, 2, width=16, pairs=16, layers=2, bits=4, state_bits=8)
        >>> print(*(type(layer).__name__ for layer in model.layers))
        Mix Rotations Mix Rotations Mix

        - `n_i`: channels of the input, or number of codes.
        - `n_o`: outputs.
        - `width` (16): outputs of each mix.
        - `pairs` (None): pairs of units in each layer of rotations. None means as many as `width`.
        - `layers` (2): number of layers of rotations.
        - `bits` (4): bits of the weights, 2 to 8. None means full precision.
        - `state_bits` (8): bits of the states, 4 to 16, rounded while training too. None means float.
        - `skip` (False): each mix also reads the input of its rotations.
        - `pool` ("mean"): y of the mean over a sequence's steps, of the "last" step, or of "all".
        - `dropout` (0.0): share of the mixes' outputs set to zero while training.
        - `lambda_bits` (None): bits of λ, 8 to 12. None means 8; at full precision of the weights, float.
        - `ring` ((0.6, 0.99)): λ start with radii between these, uniform by area.
        - `integrators` (0): number of pairs of each layer that start with λ = 1.
        - `generator` (None): draws the weights. None means torch's global generator.
        - `options`: other keywords of `Stack`.
        """
        pairs = width if pairs is None else pairs
        check_widths(n_i=n_i, n_o=n_o, width=width, pairs=pairs, layers=layers)
        mixing: dict[str, Any] = {"bits": bits, "dropout": dropout, "generator": generator}
        turning: dict[str, Any] = {"bits": bits, "state_bits": state_bits, "lambda_bits": lambda_bits, "ring": ring}
        turning |= {"integrators": integrators, "generator": generator}
        made: list[SequenceLayer] = [Mix(n_i, width, **mixing)]
        for _ in range(layers):
            made += [Rotations(width, pairs, **turning), Mix(2 * pairs, width, skip=width if skip else 0, **mixing)]
        return cls(made, n_o=n_o, pool=pool, generator=generator, **options)

    def forward(
        self, x: Tensor, h0: Sequence[Tensor] | None = None, *, lengths: Tensor | None = None
    ) -> tuple[Tensor, Finals]:
        """y (B, n_o) of the last step or of the mean, or (B, T, n_o) of all; and each layer's state at each true end.

        `h0` are states to begin with, one (B, n_state) for each layer. A mean is of the steps of this call.
        """
        refuse_transforms()
        refuse_non_finite(x, self.V.dtype, lengths)
        lengths = checked_lengths(x, lengths)
        begin, (*before, last) = self._checked(h0), self.layers
        self._settle()
        signal, finals = self._enter(x, lengths), []
        for layer, h in zip(before, begin, strict=False):
            signal, final = signal.through(layer, h, lengths)
            finals.append(final)
        if last.n_state == last.n_h:
            y, final = self._of_states(last, signal.given(last), begin[-1], lengths)
        else:
            signal, final = signal.through(last, begin[-1], lengths)
            self._read_grid()
            y = self._of_outputs(signal.x, lengths)
        return y, (*finals, final)

    def outputs(self, x: Tensor, lengths: Tensor | None = None) -> list[Tensor]:
        """What every layer gives, from zero states on.  # (B, T, n_h) each"""
        signal, found = self._enter(x, checked_lengths(x, lengths)), []
        for layer in self.layers:
            signal, _ = signal.through(layer, None, lengths)
            found.append(signal.x)
        return found

    def _settle(self) -> None:
        """Move the steps. If the outputs of a layer change with them, the weights that read it are divided as much."""
        factors = None
        for layer in self.layers:
            if factors is not None:
                layer.absorb(factors)
            factors = layer.settle()
        if factors is not None:
            with torch.no_grad():
                self.V.div_(factors)

    def _enter(self, x: Tensor, lengths: Tensor | None) -> _Signal:
        x = without_padding(x, lengths)
        if not x.is_floating_point():
            return _Signal(x, Grid(self.b_o.new_ones(()), 1))  # codes: a column is read as it is
        if self.entry is None:
            return _Signal(x, None)
        return _Signal(self.entry(x), self.entry.grid)

    def _read_grid(self) -> None:
        """Learn what the numbers are that V reads."""
        if not exporting():  # which must not leave its tensors here
            self.grid = self.layers[-1].gives()

    def before_fixing(self) -> None:
        self._read_grid()

    def _of_states(
        self, last: SequenceLayer, given: dict[str, Tensor], h0: Tensor | None, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """For a last layer whose outputs are its states. It may have a shorter way than computing all of them."""
        self._read_grid()
        if self.readout == "all" and torch.is_grad_enabled() and not self.noisy:
            return last.read_out(*self.readout_weights(), h0=h0, lengths=lengths, relu=self.relu, **given)
        if self.readout == "last":
            h = last.last(h0=h0, lengths=lengths, **given)
            return self.read(h), h
        states, h = last(h0=h0, lengths=lengths, **given)
        return self.read(states) if self.readout == "all" else self.read_mean(states, lengths), h

    def _of_outputs(self, y: Tensor, lengths: Tensor | None) -> Tensor:
        """For a last layer that keeps no state."""
        if self.readout == "mean":
            return self.read_mean(y, lengths)
        if self.readout == "last":
            rows = torch.arange(y.shape[0], device=y.device)
            y = y[:, -1] if lengths is None else y[rows, lengths - 1]
        return self.read(y)

    def penalty(self) -> Tensor | None:
        """What the maps of the layers add to the loss, if anything."""
        terms = [term for layer in self.layers if (term := layer.penalty()) is not None]
        return sum(terms[1:], terms[0]) if terms else None

    def freeze(self, frozen: bool = True) -> None:
        """Freeze the steps of all layers, for the end of a training. False: they move again."""
        for layer in self.layers:
            layer.freeze(frozen)

    @contextmanager
    def on_bits(self, bits: int | None) -> Iterator[None]:
        with super().on_bits(bits), nullcontext() if self.entry is None else self.entry.on_bits(bits):
            yield

    def _checked(self, h0: Sequence[Tensor] | None) -> list[Tensor | None]:
        if h0 is None:
            return [None] * len(self.layers)
        if isinstance(h0, Tensor) or len(h0) != len(self.layers):
            got = "one tensor" if isinstance(h0, Tensor) else f"{len(h0)} states"
            raise SettingsError(f"h0 must be {len(self.layers)} states, one (B, n_h) for each layer; got {got}")
        return list(h0)


@dataclass(frozen=True, slots=True)
class _Signal:
    """What the next layer reads, what the layer before was given, and the grids of both."""

    x: Tensor
    grid: Grid | None
    skip: Tensor | None = None
    skipped: Grid | None = None

    def given(self, layer: SequenceLayer) -> dict[str, Tensor]:
        """The arguments of the layer, which is told what they are."""
        layer.reads(self.grid, self.skipped)
        return {"x": self.x, "skip": self.skip} if layer.skip and self.skip is not None else {"x": self.x}

    def through(self, layer: SequenceLayer, h0: Tensor | None, lengths: Tensor | None) -> tuple[_Signal, Tensor]:
        """What the layer gives, and its final state."""
        y, final = layer(h0=h0, lengths=lengths, **self.given(layer))
        return _Signal(y, layer.gives(), self.x, self.grid), final


def _check_layers(layers: Sequence[SequenceLayer]) -> None:
    if isinstance(layers, nn.Module) or not len(layers):
        raise SettingsError(f"a stack takes a list of at least one layer: {KINDS}")
    for i, layer in enumerate(layers):
        if not isinstance(layer, SequenceLayer):
            raise SettingsError(f"layer {i} of a stack must be {KINDS}, got {type(layer).__name__}")
        if i and layer.n_i != layers[i - 1].n_h:
            raise SettingsError(
                f"layer {i} reads {layer.n_i} numbers, but layer {i - 1} has {layers[i - 1].n_h} units; "
                f"make it with n_i={layers[i - 1].n_h}"
            )
        if i and layers[i - 1].rescales and not layer.follows:
            after, before = type(layer).__name__, type(layers[i - 1]).__name__
            raise SettingsError(
                f"layer {i} ({after}) cannot follow layer {i - 1} ({before}), whose outputs change their scale in "
                "training: put a Mix between them, or define absorb()"
            )
        if layer.skip and (not i or layer.skip != layers[i - 1].n_i):
            before = f"layer {i - 1} reads {layers[i - 1].n_i}" if i else "there is no layer before it"
            way = f"skip={layers[i - 1].n_i}, or without one" if i else "skip=0"
            raise SettingsError(f"layer {i} has a skip of {layer.skip} numbers, but {before}; make it with {way}")
