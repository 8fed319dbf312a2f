"""y = V h + b_o of the states of the last layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qornn import draws
from qornn.errors import SettingsError, unknown
from qornn.model.fixed import FixesWeights, Weights
from qornn.model.keywords import check_mix, check_widths
from qornn.model.layer import Grid, SequenceLayer
from qornn.model.weights import initial
from qornn.quant import PowerOfTwo, Quantizer, having, round_half_away, straight_through
from qornn.recurrence import exporting, native_layers, native_weights
from qornn.recurrence.reference import transform

READOUTS = ("last", "all", "mean")
READOUT_ACTIVATIONS = ("identity", "relu")


class ReadsOut(FixesWeights):
    """A network that ends in V and b_o: which steps are read out, and what is done to their states before."""

    layers: Sequence[SequenceLayer]
    n_o: int
    readout: str
    readout_activation: str
    mix: bool
    noise: float
    q_V: Quantizer | None
    grid: Grid | None  # of what V reads, where that is rounded while training
    V: nn.Parameter
    b_o: nn.Parameter

    def set_readout(
        self,
        n_h: int,
        n_o: int,
        *,
        readout: str,
        readout_activation: str,
        mix: bool,
        noise: float,
        q_V: Quantizer | None,
        init_V: str,
        gain_V: float,
        generator: torch.Generator | None,
    ) -> None:
        """Set up V and b_o. Call it after the layers are made, because their weights are drawn first."""
        check_widths(n_o=n_o)
        if readout not in READOUTS:
            raise unknown("readout", readout, READOUTS)
        if readout_activation not in READOUT_ACTIVATIONS:
            raise unknown("readout_activation", readout_activation, READOUT_ACTIVATIONS)
        if mix:
            check_mix(n_h, readout)
        if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise < math.inf:
            raise SettingsError(f"noise must be 0 or more, as a share of the size of the states, got {noise!r}")
        self.n_o, self.readout, self.mix, self.noise = n_o, readout, mix, noise
        self.readout_activation = readout_activation
        self.q_V, self.grid = q_V, None
        self.V = nn.Parameter(gain_V * initial(init_V, n_o, n_h, generator=generator))
        self.b_o = nn.Parameter(torch.zeros(n_o))

    def V_q(self) -> Tensor:
        """The output matrix the network uses; the paper's is float."""
        return self.V if self.q_V is None else self.q_V(self.V)

    def b_q(self) -> Tensor:
        """The output bias the network uses: on the grid of V's sums, where there is one."""
        if self.grid is None or self.q_V is None:
            return self.b_o
        _, alpha = self.q_V.to_int(self.V)
        unit = self.grid.step * alpha / 2 ** (self.q_V.bits - 1)
        units = torch.where(unit > 0, self.b_o.detach() / unit, 0.0)
        return straight_through(self.b_o, round_half_away(units) * unit)

    def readout_weights(self) -> tuple[Tensor, Tensor]:
        """Both of them."""
        V, b_o = self.used()
        assert V is not None
        assert b_o is not None
        return V, b_o

    def computed(self) -> Weights:
        native = self._native()
        return (self.V_q(), self.b_q()) if native is None else native_weights.readout_weights(**native)

    def _native(self) -> dict[str, Any] | None:
        """Arguments of the native call that does the same, or None if it cannot be used."""
        q, grid, V, b_o = self.q_V, self.grid, self.V, self.b_o
        if q is None or grid is None or not isinstance(q, PowerOfTwo) or q.scale != "tensor":
            return None
        known = native_weights.usable(V, b_o, grid.step)
        return {"V_raw": V, "b_raw": b_o, "step": grid.step, "bits": q.bits} if known else None

    @contextmanager
    def on_bits(self, bits: int | None) -> Iterator[None]:
        """Inside the context a quantized V has this many bits; None: float. Layers have their own `on_bits`."""
        last = self.layers[-1]
        q_V = None if bits is None else last.quantizer_of_V(bits)
        with having(self, grid=self.grid, q_V=q_V if self.q_V or last.quantizes_V else self.q_V):
            yield

    @property
    def relu(self) -> bool:
        """Whether V sees no negative states."""
        return self.readout_activation == "relu"

    @property
    def noisy(self) -> bool:
        """Whether states are read out with noise."""
        return self.training and self.noise > 0

    def read(self, h: Tensor) -> Tensor:
        """y of states.  # (..., n_h) -> (..., n_o)"""
        if self.mix:
            h = transform(h) / math.sqrt(h.shape[-1])
        if self.noisy:  # as large as the rounding errors of the state: the network learns to tolerate them
            drawn = torch.randn(h.shape, generator=draws.generator(h.device), dtype=h.dtype, device=h.device)
            h = h + self.noise * h.detach().square().mean().sqrt() * drawn
        h, (V, b_o) = h.relu() if self.relu else h, self.readout_weights()
        if self.grid is not None and (exporting() or not torch.is_grad_enabled()):  # exact, as integers are
            return F.linear(h.double(), V.double(), b_o.double()).to(h.dtype)
        return F.linear(h, V, b_o)

    def read_mean(self, y: Tensor, lengths: Tensor | None) -> Tensor:
        """Of the mean over each sequence's own steps: (V Σ y_t + T b_o)/T.  # (B, T, n_h) -> (B, n_o)"""
        y, native = y.relu() if self.relu else y, None if self.noisy else self._native()
        # Exact, as integers are: on a grid float32 holds sums of up to 2^24 units, in a quarter of float64's time.
        # torch.export takes float64: a program is for sequences of any length.
        fits = self.grid is not None and not exporting() and self.grid.top * y.shape[1] < 2**24
        if fits and native is not None and y.dtype == torch.float32:
            return native_layers.mean_readout(y, **native, lengths=lengths)
        total = y.sum(1, dtype=None if fits else torch.float64).double()
        T = y.shape[1] if lengths is None else lengths[:, None].to(total)
        if self.noisy:
            return self.read((total / T).to(y.dtype))
        V, b_o = (weight.double() for weight in self.readout_weights())
        return ((F.linear(total, V) + T * b_o) / T).to(y.dtype)

    def extra_repr(self) -> str:
        return f"n_o={self.n_o}, readout={self.readout!r}, readout_activation={self.readout_activation!r}"
