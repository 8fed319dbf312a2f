"""h_t = σ(W_q h_{t−1} + U_q x_t)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from qornn.errors import SettingsError, unknown
from qornn.maps import OrthogonalMap, make_map
from qornn.model.figures import of_matrix, of_singular
from qornn.model.fixed import Weights
from qornn.model.inputs import checked_input, checked_lengths, checked_state, refuse_transforms, without_autocast
from qornn.model.keywords import check_widths, refuse_unknown, refuse_weight_bits
from qornn.model.layer import SequenceLayer
from qornn.model.modrelu import ModReLU
from qornn.model.weights import initial
from qornn.quant import Quantizer, Uniform, having, make_quantizer
from qornn.recurrence import ACTIVATIONS, check_codes, exporting, linear, recurrence, recurrence_with_readout

WIDE = 512  # units from which shifting numbers one step after another beats a product with a matrix of zeros


class OrthogonalRecurrence(SequenceLayer):
    """h_t = σ(W_q h_{t−1} + U_q x_t): the recurrent layer alone, called like torch.nn.RNN.

    `states, last = layer(x, h0)`, batch first; x is (B, T, n_i), or integer codes (B, T) in place of one-hot vectors.

    - `n_i`: channels of the input, or number of codes.
    - `n_h`: units.
    - `map` ("bjorck"): what keeps W orthogonal: bjorck, projunn, penalty, free; or a W that is not stored: hadamard,
      hadamard-block, cycle, delay. A name, or an `OrthogonalMap`.
    - `bits` (None): bits of W and U, 2 to 8. None means full precision. Where W is not stored, bits of U.
    - `quantizer` ("uniform"): of W: uniform or identity-offset, or a `Quantizer`.
    - `scale` ("tensor"): one scale per matrix, or "row" for one per row.
    - `bits_W` (None): bits of W if they differ. None means `bits`.
    - `bits_U` (None): bits of U if they differ. None means `bits`.
    - `activation` (None): relu, modrelu, identity or tanh. None means relu; where W is not stored, identity.
    - `init` ("haar"): W before training: haar, henaff, henaff-quarter or identity. A W that is not stored ignores it.
    - `init_U` ("xavier-normal"): U before training: xavier-normal or kaiming-normal.
    - `generator` (None): draws the weights. None means torch's global generator.
    - `map_options`: the map's own parameters, such as `rank=2` of projunn or `seed=3` of hadamard.
    """

    def __init__(
        self,
        n_i: int,
        n_h: int,
        *,
        map: str | OrthogonalMap = "bjorck",
        bits: int | None = None,
        quantizer: str | Quantizer = "uniform",
        scale: str = "tensor",
        bits_W: int | None = None,
        bits_U: int | None = None,
        activation: str | None = None,
        init: str = "haar",
        init_U: str = "xavier-normal",
        generator: torch.Generator | None = None,
        **map_options: Any,
    ) -> None:
        super().__init__()
        check_widths(n_i=n_i, n_h=n_h)
        refuse_unknown(map_options, map, OrthogonalRecurrence)
        self.map = make_map(map, **map_options)
        activation = activation or self.map.activation
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        self.n_i, self.n_h, self.activation = n_i, n_h, activation
        k_U = bits if bits_U is None else bits_U
        self.q_W: Quantizer | None = None
        if self.map.structured:
            refuse_weight_bits(self.map, bits_W, quantizer)
        else:
            self.q_W = make_quantizer(quantizer, bits if bits_W is None else bits_W, scale=scale)
            k_U = self.q_W.bits if k_U is None and self.q_W is not None else k_U
        self.q_U: Quantizer | None = None if k_U is None else Uniform(k_U, scale=getattr(self.q_W, "scale", scale))
        W_raw = self.map.initial(n_h, init=init, generator=generator)
        self.W_raw = nn.Parameter(W_raw, requires_grad=self.map.learned)
        self.driven = self.map.driven(n_h)
        heads = n_h if self.driven is None else len(self.driven)
        self.U_raw = nn.Parameter(initial(init_U, heads, n_i, generator=generator))
        self.modrelu = ModReLU(n_h, generator=generator) if activation == "modrelu" else None
        self.b = nn.Parameter(torch.zeros(n_h)) if self.map.biased and activation == "identity" else None
        self._powers: tuple[Any, linear.Powers] | None = None

    @property
    def bits(self) -> int | None:
        """Weight bits k, where W is not stored those of U; None means full precision."""
        quantizer = self.q_U if self.map.structured else self.q_W
        return None if quantizer is None else quantizer.bits

    @property
    def quantizes_V(self) -> bool:
        return self.map.structured

    @property
    def readout_activation(self) -> str:
        return self.map.readout_activation

    def W(self) -> Tensor:
        """The orthogonal matrix, before it is quantized."""
        return self.map(self.W_raw)

    def W_q(self) -> Tensor:
        """The recurrent matrix the network uses."""
        W = self.W()
        return W if self.q_W is None else self.q_W(W)

    def U_q(self) -> Tensor:
        """The input matrix the network uses."""
        U = self.U_raw if self.q_U is None else self.q_U(self.U_raw)
        if self.driven is None:
            return U
        return U.new_zeros(self.n_h, self.n_i).index_copy(0, self.driven.to(U.device), U)

    def absorb(self, factors: Tensor) -> None:
        with torch.no_grad():
            self.U_raw.div_(factors)

    def penalty(self) -> Tensor | None:
        """What this map adds to the loss, or None for the maps that add nothing."""
        return self.map.penalty(self.W_q()) if self.map.penalises else None

    @contextmanager
    def on_bits(self, bits: int | None) -> Iterator[None]:
        q_W, q_U = (None if bits is None else (q or Uniform(bits)).with_bits(bits) for q in (self.q_W, self.q_U))
        with having(self, q_W=None if self.map.structured else q_W, q_U=q_U):
            yield

    def figures(self) -> dict[str, float]:
        """‖W_q W_qᵀ − I‖_F, σ_min, σ_max, and the share of clipped weights."""
        if self.map.structured:  # its matrix is not stored, and may be too large to write out
            return of_singular(self.map.singular_values(self.W_raw))
        return of_matrix(self.W(), self.q_W)

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All states (B, T, n_h), zero past a sequence's end, and the state (B, n_h) at each true end."""
        if self.closed_form and isinstance(x, Tensor) and _steps_are_dear(x) and not exporting():
            return self._run(self._in_chunks, x, h0, lengths, written_out=False)
        if self._shifts_are_cheap():
            return self._run(self._by_shifts, x, h0, lengths, written_out=False)
        return self._run(recurrence, x, h0, lengths)

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
        """V h_t + b_o of all steps (B, T, n_o) instead of the states, whose gradient is then never built."""
        return self._run(partial(recurrence_with_readout, readout_relu=relu), x, h0, lengths, V, b_o)

    def last(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> Tensor:
        """The state (B, n_h) at each sequence's end; where W is fixed and nothing bends, without unrolling."""
        if h0 is not None or not self.closed_form or not isinstance(x, Tensor) or exporting():
            return self(x, h0, lengths=lengths)[1]
        refuse_transforms()
        lengths = checked_lengths(x, lengths)
        x = checked_input(x, lengths, self.n_i, self.W_raw.dtype)
        check_codes(x, self.n_i)
        with without_autocast(x):
            return linear.last_state(x, self._powers_of_W(), self.U_q(), self.b, lengths)

    @property
    def closed_form(self) -> bool:
        """Whether the recurrence is linear with a W that never changes, so that its powers say all."""
        return self.map.structured and not self.map.learned and self.activation == "identity"

    def _shifts_are_cheap(self) -> bool:
        """Whether n_h² products per step take longer than a few calls; gradients always take the kernel."""
        shifts = self.map.shifts and self.closed_form and self.n_h >= WIDE
        return shifts and not torch.is_grad_enabled() and not torch.compiler.is_compiling()

    def _by_shifts(
        self, x: Tensor, _W: None, U: Tensor, b: Tensor | None, h0: Tensor, lengths: Tensor | None, _: str
    ) -> tuple[Tensor, Tensor]:
        return linear.stepped(x, self.map.product(self.W_raw), U, b, h0, lengths)

    def _in_chunks(
        self, x: Tensor, _W: None, U: Tensor, b: Tensor | None, h0: Tensor, lengths: Tensor | None, _: str
    ) -> tuple[Tensor, Tensor]:
        return linear.all_states(x, self._powers_of_W(), U, b, h0, lengths)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_powers": None}  # made again where they are needed

    def _powers_of_W(self) -> linear.Powers:
        W = self.W_raw
        key = (W.dtype, W.device, W._version, W.data_ptr())
        if self._powers is None or self._powers[0] != key:
            with torch.inference_mode(False), torch.no_grad():  # what is kept may be trained through later
                operator = self.map.operator(W)
                fast = operator.ndim == 1  # signs, and W itself only if somebody asks
                self._powers = key, linear.Powers(self.W, operator) if fast else linear.Powers(operator)
        return self._powers[1]

    def _run(
        self,
        function: Callable[..., tuple[Tensor, Tensor]],
        x: Tensor,
        h0: Tensor | None,
        lengths: Tensor | None,
        *V: Tensor,
        written_out: bool = True,
    ) -> tuple[Tensor, Tensor]:
        if not isinstance(x, Tensor):
            raise SettingsError(f"x must be a torch tensor, got {type(x).__name__}; torch.as_tensor(x) makes one")
        refuse_transforms()
        lengths = checked_lengths(x, lengths)
        x = checked_input(x, lengths, self.n_i, self.W_raw.dtype)
        if not written_out:  # else the recurrence does
            check_codes(x, self.n_i)
        h0 = checked_state(x, h0, self.n_h, self.W_raw)
        with without_autocast(x):  # an orthogonal matrix in half precision is not one
            W, U, b = self.used() if written_out else (None, self.U_q(), self.b)
            return function(x, W, U, b, *V, h0, lengths, self.activation)

    def computed(self) -> Weights:
        W = self.map.operator(self.W_raw)
        b = self.b if self.modrelu is None else self.modrelu.b
        return W if self.q_W is None else self.q_W(W), self.U_q(), b

    def extra_repr(self) -> str:
        return f"n_i={self.n_i}, n_h={self.n_h}, bits={self.bits}, activation={self.activation!r}"


def _steps_are_dear(x: Tensor) -> bool:
    """Away from the CPU every step is a launch, which costs more than a few more products."""
    return x.device.type != "cpu"
