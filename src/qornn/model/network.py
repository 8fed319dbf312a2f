"""The network of the paper, in its symbols: the file to read first.

    W = map(W_raw)            orthogonal                      (maps/)
    W_q, U_q = q_k(W), q_k(U) on k bits                       (quant/)
    h_t = σ(W_q h_{t−1} + U_q x_t),  h_0 = 0                  (recurrence/)
    y = V h + b_o             of the last state, or of all

The map and the quantizer run once per forward pass, never once per time step.

A structured map (Hadamard and its kin) makes a linear recurrence of a W that is orthogonal as it stands:

    h_t = W h_{t−1} + U_q x_t + b,  y = V_q relu(h) + b_o     without unrolling where W is fixed (recurrence/linear)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qornn import draws
from qornn.errors import SettingsError, unknown
from qornn.maps import OrthogonalMap, Structured, make_map, start
from qornn.quant import Quantizer, Uniform, make_quantizer
from qornn.recurrence import ACTIVATIONS, linear, recurrence, recurrence_with_readout
from qornn.recurrence.reference import transform
from qornn.structure import check_power

WIDE = 512  # units from which shifting numbers one step after another beats a product with a matrix of zeros
READOUTS = ("last", "all")
READOUT_ACTIVATIONS = ("identity", "relu")
INITS = {"xavier-normal": nn.init.xavier_normal_, "kaiming-normal": nn.init.kaiming_normal_}


class ModReLU(nn.Module):
    """σ(z) = sign(z)·max(|z| + b, 0), b learned per unit (Helfrich et al. 2018)."""

    def __init__(self, n_h: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.empty(n_h).uniform_(-0.01, 0.01, generator=generator))

    def forward(self, z: Tensor) -> Tensor:
        return z.sign() * torch.relu(z.abs() + self.b)


class OrthogonalRecurrence(nn.Module):
    """h_t = σ(W_q h_{t−1} + U_q x_t): the recurrent layer alone, called like torch.nn.RNN.

    `states, last = layer(x, h0)`, batch first; x is (B, T, n_i), or integer codes (B, T) in place of one-hot vectors.
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
        _check_width(n_i=n_i, n_h=n_h)
        self.map = make_map(map, **map_options)
        activation = activation or ("identity" if self.map.structured else "relu")
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        self.n_i, self.n_h, self.activation = n_i, n_h, activation
        k_U = bits if bits_U is None else bits_U
        if isinstance(self.map, Structured):
            _refuse_weight_bits(self.map, bits_W, quantizer)
            self.q_W: Quantizer | None = None
            W_raw = self.map.raw(n_h)
        else:
            self.q_W = make_quantizer(quantizer, bits if bits_W is None else bits_W, scale=scale)
            k_U = self.q_W.bits if k_U is None and self.q_W is not None else k_U
            W_raw = start(init, n_h, generator=generator)
        self.q_U: Quantizer | None = None if k_U is None else Uniform(k_U, scale=getattr(self.q_W, "scale", scale))
        self.W_raw = nn.Parameter(W_raw, requires_grad=self.map.learned)
        self.driven = self.map.driven(n_h)
        heads = n_h if self.driven is None else len(self.driven)
        self.U_raw = nn.Parameter(_initial(init_U, heads, n_i, generator=generator))
        self.modrelu = ModReLU(n_h, generator=generator) if activation == "modrelu" else None
        self.b = nn.Parameter(torch.zeros(n_h)) if self.map.biased and activation == "identity" else None
        self._powers: tuple[Any, linear.Powers] | None = None

    @property
    def bits(self) -> int | None:
        """Weight bits k, where W is not stored those of U; None is full precision."""
        quantizer = self.q_U if self.map.structured else self.q_W
        return None if quantizer is None else quantizer.bits

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

    def penalty(self) -> Tensor | None:
        """What this map adds to the loss, or None for the maps that add nothing."""
        return self.map.penalty(self.W_q()) if self.map.penalises else None

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All states (B, T, n_h), zero past a sequence's end, and the state (B, n_h) at each true end."""
        if self.closed_form and isinstance(x, Tensor) and _steps_are_dear(x):
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
        if h0 is not None or not self.closed_form or not isinstance(x, Tensor):
            return self(x, h0, lengths=lengths)[1]
        lengths = _checked_lengths(x, lengths)
        x = self._checked_input(x, lengths)
        with torch.autocast(x.device.type, enabled=False):
            return linear.last_state(x, self._powers_of_W(), self.U_q(), self.b, lengths)

    @property
    def closed_form(self) -> bool:
        """Whether the recurrence is linear with a W that never changes, so that its powers say all."""
        return self.map.structured and not self.map.learned and self.activation == "identity"

    def _shifts_are_cheap(self) -> bool:
        """Whether n_h² products a step take longer than a few calls; where there is a gradient the kernel makes it."""
        shifts = isinstance(self.map, Structured) and self.map.shifts and self.closed_form and self.n_h >= WIDE
        return shifts and not torch.is_grad_enabled() and not torch.compiler.is_compiling()

    def _by_shifts(
        self, x: Tensor, _W: None, U: Tensor, b: Tensor | None, h0: Tensor, lengths: Tensor | None, _: str
    ) -> tuple[Tensor, Tensor]:
        assert isinstance(self.map, Structured)
        return linear.stepped(x, self.map.product(self.W_raw), U, b, h0, lengths)

    def _in_chunks(
        self, x: Tensor, _W: None, U: Tensor, b: Tensor | None, h0: Tensor, lengths: Tensor | None, _: str
    ) -> tuple[Tensor, Tensor]:
        return linear.all_states(x, self._powers_of_W(), U, b, h0, lengths)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_powers": None}  # made again where they are needed

    def _powers_of_W(self) -> linear.Powers:
        W = self.W_raw
        key = (W.dtype, W.device, W._version, W.data_ptr())
        if self._powers is None or self._powers[0] != key:
            assert isinstance(self.map, Structured)
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
        lengths = _checked_lengths(x, lengths)
        x = self._checked_input(x, lengths)
        h0 = self._checked_state(x, h0)
        b = self.b if self.modrelu is None else self.modrelu.b
        with torch.autocast(x.device.type, enabled=False):  # an orthogonal matrix in half precision is not one
            W = self._operator() if written_out else None
            return function(x, W, self.U_q(), b, *V, h0, lengths, self.activation)

    def _operator(self) -> Tensor:
        return self.map.operator(self.W_raw) if isinstance(self.map, Structured) else self.W_q()

    def _checked_input(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        if x.ndim == 2 and not x.is_floating_point():
            return self._checked_codes(x, lengths)
        if x.ndim != 3 or x.shape[2] != self.n_i:
            raise SettingsError(
                f"x must be (B, T, {self.n_i}), or integer codes (B, T) below {self.n_i}; "
                f"got shape {tuple(x.shape)}, {x.dtype}"
            )
        _refuse_empty(x)
        if not x.is_floating_point():
            raise SettingsError(f"x of shape (B, T, n_i) must be floating point, got {x.dtype}; call x.float() first")
        return x.to(self.W_raw.dtype)

    def _checked_codes(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        _refuse_empty(x)
        if lengths is not None:
            x = x.masked_fill(_padding(x, lengths), 0)
        if torch.compiler.is_compiling():
            return x.long()
        low, high = (int(v) for v in torch.aminmax(x))
        if low < 0 or high >= self.n_i:
            raise SettingsError(f"codes must lie in 0..{self.n_i - 1}, got {low}..{high}")
        return x.long()

    def _checked_state(self, x: Tensor, h0: Tensor | None) -> Tensor:
        if h0 is None:
            return self.W_raw.new_zeros(len(x), self.n_h)
        if h0.shape != (len(x), self.n_h):
            raise SettingsError(f"h0 must be (B, n_h) = ({len(x)}, {self.n_h}), got shape {tuple(h0.shape)}")
        return h0.to(self.W_raw.dtype)

    def extra_repr(self) -> str:
        return f"n_i={self.n_i}, n_h={self.n_h}, bits={self.bits}, activation={self.activation!r}"


class OrthogonalRNN(nn.Module):
    """y = V h + b_o on an orthogonal recurrence (paper, Vanilla RNNs); softmax belongs to the loss.

    >>> model = OrthogonalRNN(1, 170, 10, map="bjorck", bits=5)
    >>> y, h = model(torch.rand(2, 784, 1))
    >>> y.shape, h.shape
    (torch.Size([2, 10]), torch.Size([2, 170]))
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
        _check_width(n_o=n_o)
        if readout not in READOUTS:
            raise unknown("readout", readout, READOUTS)
        self.n_o, self.readout, self.mix, self.noise = n_o, readout, mix, noise
        self.recurrence = layer = OrthogonalRecurrence(n_i, n_h, generator=generator, **recurrence_options)
        self.readout_activation = readout_activation or ("relu" if layer.map.structured else "identity")
        if self.readout_activation not in READOUT_ACTIVATIONS:
            raise unknown("readout_activation", readout_activation, READOUT_ACTIVATIONS)
        if mix:
            _check_mix(n_h, readout)
        if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise < math.inf:
            raise SettingsError(f"noise is a share of the state's own size, 0 or more, got {noise!r}")
        k_V = recurrence_options.get("bits") if bits_V is None and layer.map.structured else bits_V
        self.q_V: Quantizer | None = None if k_V is None else Uniform(k_V)
        self.V = nn.Parameter(gain_V * _initial(init_V, n_o, n_h, generator=generator))
        self.b_o = nn.Parameter(torch.zeros(n_o))

    def V_q(self) -> Tensor:
        """The output matrix the network uses; the paper's is float."""
        return self.V if self.q_V is None else self.q_V(self.V)

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """y (B, n_o) of the last state or (B, T, n_o) of all, and h (B, n_h) at each sequence's true end."""
        _refuse_non_finite(x, self.V.dtype, lengths)
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


def _initial(name: str, rows: int, columns: int, *, generator: torch.Generator | None) -> Tensor:
    if name not in INITS:
        raise unknown("initialisation", name, INITS)
    return INITS[name](torch.empty(rows, columns), generator=generator)  # type: ignore[operator]


def _steps_are_dear(x: Tensor) -> bool:
    """Away from the CPU every step is a launch, which costs more than a few more products."""
    return x.device.type != "cpu"


def _refuse_weight_bits(map_: OrthogonalMap, bits_W: int | None, quantizer: str | Quantizer) -> None:
    if bits_W is not None or quantizer != "uniform":
        got = f"bits_W={bits_W}" if bits_W is not None else f"quantizer={quantizer!r}"
        raise SettingsError(
            f"{type(map_).__name__} has no weights of W to quantize, got {got}: its entries are fixed already; "
            "bits=2..8 is for U and V"
        )


def _check_mix(n_h: int, readout: str) -> None:
    check_power(n_h, 2, "n_h with mix=True")
    if readout != "last":
        raise SettingsError("mix=True transforms the last state; this task reads out every step, leave it out")


def _refuse_empty(x: Tensor) -> None:
    if not (x.shape[0] and x.shape[1]):
        raise SettingsError(f"x must hold at least one sequence of at least one step, got shape {tuple(x.shape)}")


def _refuse_non_finite(x: Tensor, dtype: torch.dtype, lengths: Tensor | None) -> None:
    """A NaN or an infinity in one sample would silently poison every weight at the next step."""
    if torch.compiler.is_compiling() or not isinstance(x, Tensor) or not x.is_floating_point() or x.ndim != 3:
        return
    bad = ~(x.abs() <= torch.finfo(dtype).max)  # what is too large for the network's numbers is infinite in them
    if not bool(bad.any()):
        return
    if lengths is not None:
        bad &= ~_padding(x, lengths)[..., None]
    if bool(bad.any()):
        place = tuple(bad.nonzero()[0].tolist())
        value = "NaN" if bool(x[place].isnan()) else f"{float(x[place]):g}"
        raise SettingsError(
            f"x holds {value}, first at (sequence, step, channel) = {place}; fill or drop missing values first, and "
            f"keep the others finite in {dtype}"
        )


def _padding(x: Tensor, lengths: Tensor) -> Tensor:
    """True past each sequence's end.  # (B, T)"""
    return torch.arange(x.shape[1], device=x.device) >= torch.as_tensor(lengths, device=x.device)[:, None]


def _check_width(**widths: object) -> None:
    for name, value in widths.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise SettingsError(f"{name} must be a whole number, got {value!r}")
        if value < 1:
            raise SettingsError(f"{name} must be at least 1, got {value}")


def _checked_lengths(x: Tensor, lengths: Tensor | None) -> Tensor | None:
    """True lengths as (B,) int64, each in 1..T."""
    if lengths is None:
        return None
    lengths = torch.as_tensor(lengths, device=x.device)
    if lengths.shape != (len(x),) or lengths.is_floating_point():
        raise SettingsError(
            f"lengths must be {len(x)} integers, one a sequence; got shape {tuple(lengths.shape)}, {lengths.dtype}"
        )
    if not torch.compiler.is_compiling() and not bool(((lengths >= 1) & (lengths <= x.shape[1])).all()):
        raise SettingsError(
            f"lengths must lie in 1..{x.shape[1]} (the padded length), got {int(lengths.min())}..{int(lengths.max())}"
        )
    return lengths.long()
