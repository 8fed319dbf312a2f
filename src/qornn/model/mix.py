"""y_t = relu(C_q n_t + c [+ S_q x_t]): what stands between rotations, on outputs of 7 bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qornn import draws
from qornn.bits import parse_bits
from qornn.errors import SettingsError
from qornn.model.fixed import Weights
from qornn.model.inputs import checked_input, checked_lengths, refuse_transforms, without_autocast, without_padding
from qornn.model.keywords import check_widths
from qornn.model.layer import Grid, SequenceLayer
from qornn.model.steps import Steps, copy_step, demand_grid, exactly, refuse_other_inputs, trained, whole
from qornn.quant import PowerOfTwo, Quantizer, having, round_half_away, straight_through
from qornn.recurrence import check_codes, exporting, mix, native_layers, native_weights, rounded_relu

TOP = 127  # of an output: 7 bits, no sign
BELOW = 14  # bits that a sum may have below the step of the outputs: finer ones would hardly ever matter
APART = 7  # bits that the grids of C and S may lie apart
EXACT = 2**23  # float32 holds every whole number up to twice that
LARGEST_BIAS = 2**22
LARGEST_SUM = 2**30  # of C and S together, in 32 bits beside the bias and what rounding adds


class Mix(SequenceLayer):
    """A matrix, a bias and ReLU at every step; outputs are rounded to 0..127 while training too.

    >>> layer = Mix(32, 16, skip=8, bits=4)
    >>> y, _ = layer(torch.rand(2, 100, 32), skip=torch.rand(2, 100, 8))
    >>> y.shape
    torch.Size([2, 100, 16])

    - `n_i`: numbers that it reads, or number of codes.
    - `n_h`: outputs.
    - `skip` (0): numbers that it also reads from the input of the layer before it. 0 is no skip connection.
    - `bits` (None): bits of C and S, 2 to 8, with one power-of-two scale per row; outputs are then rounded. None is
      full precision.
    - `dropout` (0.0): share of the outputs set to zero while training.
    - `generator` (None): draws the weights. None means torch's global generator.
    """

    source_step: Tensor  # () the value of one unit of what it reads; 0 where that is float
    skip_step: Tensor

    def __init__(
        self,
        n_i: int,
        n_h: int,
        *,
        skip: int = 0,
        bits: int | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_widths(n_i=n_i, n_h=n_h)
        if isinstance(skip, bool) or not isinstance(skip, int) or skip < 0:
            raise SettingsError(f"skip must be the number of inputs of the layer before, or 0 for none, got {skip!r}")
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
            raise SettingsError(f"dropout must be a share in [0, 1), got {dropout!r}")
        bits = parse_bits(bits)
        self.n_i, self.n_h, self.skip, self.dropout = n_i, n_h, skip, float(dropout)
        self.q = None if bits is None else PowerOfTwo(bits)
        gain = (2 / (n_i + skip)) ** 0.5  # half of the sums are cut off
        self.C_raw = nn.Parameter(gain * torch.randn(n_h, n_i, generator=generator))
        self.S_raw = nn.Parameter(gain * torch.randn(n_h, skip, generator=generator)) if skip else None
        self.c = nn.Parameter(torch.zeros(n_h))
        self.steps = None if bits is None else Steps(TOP)
        self.register_buffer("source_step", torch.zeros(()))
        self.register_buffer("skip_step", torch.zeros(()))
        self.rounding, self.stacked = True, False
        self._tops = (0, 0)  # of what it reads, and of the skip

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self._tops)

    def set_extra_state(self, state: Tensor) -> None:
        self._tops = int(state[0]), int(state[1])

    @property
    def n_state(self) -> int:
        return 0

    @property
    def bits(self) -> int | None:
        return None if self.q is None else self.q.bits

    @property
    def quantizes_V(self) -> bool:
        return self.q is not None

    def quantizer_of_V(self, bits: int) -> Quantizer:
        return PowerOfTwo(bits, scale="tensor")

    # What a Stack asks.

    @property
    def rounds(self) -> bool:
        return self.steps is not None

    def enter_stack(self) -> None:
        self.stacked = True

    def settle(self) -> None:
        steps = self.steps
        if steps is not None and self.training:
            steps.move()  # of the grid alone: outputs keep their size

    def absorb(self, factors: Tensor) -> None:
        with torch.no_grad():
            self.C_raw.div_(factors)

    def reads(self, grid: Grid | None, skip: Grid | None) -> None:
        tops = 0 if grid is None else grid.top, 0 if skip is None else skip.top
        if exporting():
            refuse_other_inputs(tops, self._tops)
            return
        if tops != self._tops:  # they hardly ever are: a module takes long to set an attribute
            self._tops = tops
        copy_step(grid, self.source_step)
        copy_step(skip, self.skip_step)

    def gives(self) -> Grid | None:
        steps = self.steps
        return Grid(steps.step, TOP) if steps is not None and self.rounding else None

    def freeze(self, frozen: bool = True) -> None:
        if self.steps is not None:
            self.steps.freeze(frozen)

    @contextmanager
    def on_bits(self, bits: int | None) -> Iterator[None]:
        off: dict[str, Any] = {"q": None, "rounding": False}
        changed = off if bits is None else {"q": trained(self.q, "Mix").with_bits(bits)}
        steps = {"source_step": self.source_step.clone(), "skip_step": self.skip_step.clone()}
        with having(self, _tops=self._tops, **steps, **changed):
            yield

    def state_figures(self, states: Tensor, steps: int) -> dict[str, float]:
        return {}  # it keeps none

    @property
    def _on_grid(self) -> bool:
        """Whether sums lie on a grid, so that biases can."""
        return self.q is not None and self._tops[0] > 0 and (not self.skip or self._tops[1] > 0)

    def units(self) -> tuple[Tensor, Tensor | None]:
        """The power-of-two values of one unit of each row of C and of S.  # (n_h, 1) each"""
        assert self.q is not None
        units = [self.q.unit(W) for W in self._matrices()]
        if not self._on_grid:
            return units[0], units[1] if self.skip else None
        assert self.steps is not None
        steps = [self.source_step, self.skip_step][: len(units)]
        least = self.steps.step * 2.0**-BELOW if self.steps.started else torch.zeros_like(self.source_step)
        sums = torch.stack([unit * step for unit, step in zip(units, steps, strict=True)])
        least = torch.maximum(least, sums.amax(0) * 2.0**-self._apart)  # (n_h, 1)
        least = torch.where(least > 0, least, self.source_step)  # rows of zeros, and nothing to compare with
        found = [torch.maximum(unit, least / step) for unit, step in zip(units, steps, strict=True)]
        return found[0], found[1] if self.skip else None

    @property
    def _apart(self) -> int:
        """Bits that the grids of C and S may lie apart, so that 32 bits hold their sums."""
        return max(0, min(APART, (LARGEST_SUM // max(self._largest_sum, 1)).bit_length() - 1))

    @property
    def _largest_sum(self) -> int:
        assert self.q is not None
        return 2 ** (self.q.bits - 1) * (self.n_i * self._tops[0] + self.skip * self._tops[1])

    def _types(self, plain: torch.dtype) -> tuple[torch.dtype, torch.dtype]:
        """The types of both products and of their sum: float64 where float32 does not hold every value."""
        if not self._on_grid:
            return plain, plain
        apart = self._apart if self.skip else 0
        narrow, wide = (torch.float64 if self._largest_sum << n >= EXACT else plain for n in (0, apart))
        return narrow, wide

    def weights(self) -> tuple[Tensor, Tensor | None, Tensor]:
        """C, S and c as the network uses them: the bias lies on the grid of the sums."""
        if self.q is None:
            return self.C_raw, self.S_raw, self.c
        if (grids := self._grids()) is not None:
            return native_weights.mix_weights(self.C_raw, self.S_raw, self.c, grids)
        unit_C, unit_S = self.units()
        C = self.q.at(self.C_raw, unit_C)
        S = None if self.S_raw is None or unit_S is None else self.q.at(self.S_raw, unit_S)
        if not self._on_grid:
            return C, S, self.c
        grid = self._grid(unit_C, unit_S)
        return C, S, straight_through(self.c, self._bias(grid) * grid)

    def computed(self) -> Weights:
        return self.weights()

    def _grids(self) -> native_weights.MixGrids | None:
        """Arguments of the native call that does the same, or None if it cannot be used."""
        q, steps, read = self.q, self.steps, (self.source_step, self.skip_step)
        if q is None or steps is None or not self._on_grid:
            return None
        if not native_weights.usable(*self._matrices(), self.c, *read):
            return None
        step = steps.step if steps.started else None
        return native_weights.MixGrids(*read, step, q.bits, BELOW, self._apart, LARGEST_BIAS)

    def _grid(self, unit_C: Tensor, unit_S: Tensor | None) -> Tensor:
        """2^u: the finer of the two grids that are added.  # (n_h,)"""
        grid = unit_C[:, 0] * self.source_step
        return grid if unit_S is None else torch.minimum(grid, unit_S[:, 0] * self.skip_step)

    def _bias(self, grid: Tensor) -> Tensor:
        return round_half_away(self.c.detach() / grid).clamp(-LARGEST_BIAS, LARGEST_BIAS)

    def _matrices(self) -> list[Tensor]:
        return [self.C_raw] if self.S_raw is None else [self.C_raw, self.S_raw]

    def forward(
        self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None, skip: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs (B, T, n_h), zero past a sequence's end, and a state of no numbers (B, 0)."""
        refuse_transforms()
        lengths = checked_lengths(x, lengths)
        x = checked_input(x, lengths, self.n_i, self.C_raw.dtype)
        if (self.skip and skip is None) or (skip is not None and (not self.skip or skip.shape[-1] != self.skip)):
            got = "none" if skip is None else f"{skip.shape[-1]} numbers"
            raise SettingsError(f"this Mix reads a skip of {self.skip} numbers, got {got}")
        if not self.stacked:  # a stack has no padding but zeros
            x, skip = without_padding(x, lengths), None if skip is None else without_padding(skip, lengths)
        with without_autocast(x):
            y = self._run(x, skip)
        if lengths is not None:
            y = y * (torch.arange(y.shape[1], device=y.device) < lengths[:, None])[..., None]
        return self._dropped(y), y.new_zeros(y.shape[0], 0)

    def _run(self, x: Tensor, skip: Tensor | None) -> Tensor:
        steps, dtype = self.steps, self.C_raw.dtype
        rounded = steps is not None and steps.started and self.rounding
        step = steps.step if steps is not None and rounded else 0.0
        narrow, wide = self._types(dtype)
        grids = self._grids() if x.ndim == 3 and narrow == dtype else None
        if grids is not None and native_layers.usable(self.C_raw, x, skip):
            y, peak = native_layers.mix(x, skip, self.C_raw, self.S_raw, self.c, grids, step, TOP, wide=wide != dtype)
        else:
            y, peak = self._in_parts(x, skip, step, narrow, wide)
        if steps is not None and self.training:
            steps.see(peak.to(dtype))  # the first batch, which is not rounded, sets the step
        return y.to(dtype)

    def _in_parts(
        self, x: Tensor, skip: Tensor | None, step: Tensor | float, narrow: torch.dtype, wide: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """First the weights, then what they make of x: also of codes, and where float32 does not hold every value."""
        C, S, c = self.used()
        assert C is not None
        assert c is not None
        if x.ndim == 3 and wide == C.dtype:
            return mix(x, C, c, skip, S, step, TOP)
        if x.ndim == 2:
            check_codes(x, self.n_i)
            sums = F.embedding(x, C.T.to(narrow))
        else:
            sums = F.linear(x.to(narrow), C.to(narrow))
        sums = sums.to(wide) + c.to(wide)
        if S is not None and skip is not None:
            sums = sums + F.linear(skip.to(narrow), S.to(narrow)).to(wide)
        return rounded_relu(sums, step, TOP)

    def _dropped(self, y: Tensor) -> Tensor:
        if not (self.training and self.dropout):
            return y
        kept = torch.empty_like(y).bernoulli_(1 - self.dropout, generator=draws.generator(y.device))
        return y * kept / (1 - self.dropout)

    def made_of(self) -> tuple[str, dict[str, Any]]:
        if self.q is None or self.steps is None:
            raise SettingsError("Mix at full precision has no integer form; train it with bits=2..8")
        self.steps.demand()
        demand_grid("a Mix", self._on_grid)
        with torch.no_grad():
            unit_C, unit_S = self.units()
            bias = self._bias(self._grid(unit_C, unit_S))
            C = self.q.integers(self.C_raw, unit_C)
            S = None if self.S_raw is None or unit_S is None else self.q.integers(self.S_raw, unit_S)
        return "mix", {
            "C": whole(C),
            "bits": self.q.bits,
            "unit": exactly(unit_C[:, 0]),
            "source_step": float(self.source_step),
            "S": None if S is None else whole(S),
            "unit_S": None if unit_S is None else exactly(unit_S[:, 0]),
            "skip_step": float(self.skip_step),
            "bias": whole(bias),
            "step": float(self.steps.step),
        }

    def extra_repr(self) -> str:
        return f"n_i={self.n_i}, n_h={self.n_h}, skip={self.skip}, bits={self.bits}"
