"""z_t = λ ⊙ z_{t−1} + U_q x_t: plane rotations with decay, on states that are rounded while training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qornn.bits import parse_bits
from qornn.errors import SettingsError
from qornn.maps import rotation
from qornn.model.fixed import Weights
from qornn.model.inputs import checked_input, checked_lengths, checked_state, refuse_transforms, without_autocast
from qornn.model.keywords import check_ring, check_state_bits, check_widths, checked_lambda
from qornn.model.layer import Grid, SequenceLayer
from qornn.model.steps import Steps, copy_step, demand_grid, exactly, refuse_other_inputs, trained, whole
from qornn.quant import PowerOfTwo, Quantizer, having, on_disc, round_half_away, straight_through
from qornn.recurrence import check_codes, driven_scan, exporting, native_layers, native_weights, scan

EXACT = 23  # bits of a sum that float32 holds, sign aside
WIDE = 20  # bits of λ and a state from which 32 bits of a sum may be too few
LARGEST_SUM = 2**30  # half of what they hold: weights go on after steps are frozen
NORMAL = 3  # normalised states are ẑ·2^(3 − k_a): in ±4


class Rotations(SequenceLayer):
    """p pairs of units, each turned and shrunk by its own λ = a + ib at every step (a diagonal linear recurrence).

    >>> layer = Rotations(3, 16, bits=4, state_bits=8)
    >>> states, last = layer(torch.rand(2, 100, 3))
    >>> states.shape, last.shape  # p real parts, then p imaginary
    (torch.Size([2, 100, 32]), torch.Size([2, 32]))

    Alone it gives z in its own units. In a `Stack` it gives normalised states z·2^(3−k_a)/step, which a `Mix` reads
    without a scale for each column.

    - `n_i`: channels of the input, or number of codes.
    - `pairs`: p. The layer has 2p units.
    - `bits` (None): bits of U, 2 to 8, with one power-of-two scale per row. None means full precision.
    - `state_bits` (None): bits of the states, 4 to 16, rounded at every step while training too. None means float.
    - `lambda_bits` (None): bits of a and b, 8 to 12. None means 8; at full precision of U, float.
    - `ring` ((0.6, 0.99)): λ start with radii between these, uniform by area.
    - `integrators` (0): number of pairs that start with λ = 1.
    - `generator` (None): draws the weights. None means torch's global generator.
    """

    source_step: Tensor  # () the value of one unit of what it reads; 0 where that is float
    normal_step: Tensor  # () the value of one unit of what it gives in a stack

    def __init__(
        self,
        n_i: int,
        pairs: int,
        *,
        bits: int | None = None,
        state_bits: int | None = None,
        lambda_bits: int | None = None,
        ring: tuple[float, float] = (0.6, 0.99),
        integrators: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_widths(n_i=n_i, pairs=pairs)
        bits, lambda_bits = parse_bits(bits), checked_lambda(lambda_bits, parse_bits(bits))
        check_state_bits(state_bits)
        check_ring(ring)
        if isinstance(integrators, bool) or not isinstance(integrators, int) or not 0 <= integrators <= pairs:
            raise SettingsError(f"integrators must be a number of pairs in 0..{pairs}, got {integrators!r}")
        self.n_i, self.n_h, self.pairs = n_i, 2 * pairs, pairs
        self.state_bits, self.lambda_bits = state_bits, lambda_bits
        self.q_U = None if bits is None else PowerOfTwo(bits)
        nu, phi = rotation.initial(pairs, ring, integrators, generator)
        self.nu, self.phi = nn.Parameter(nu), nn.Parameter(phi)
        U = torch.randn(self.n_h, n_i, generator=generator) / n_i**0.5
        shrink = (1 - torch.exp(-2 * torch.exp(nu))).sqrt()  # √(1 − r²): states of unit size, whatever r
        self.U_raw = nn.Parameter(U * shrink.repeat(2)[:, None])
        self.steps = None if state_bits is None else Steps(2 ** (state_bits - 1) - 1, pairs)
        self.normalised, self.rounding = False, True
        self.register_buffer("source_step", torch.zeros(()))
        self.register_buffer("normal_step", torch.tensor(1.0 if state_bits is None else self._normal), persistent=False)
        self._source_top = 0

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self._source_top])

    def set_extra_state(self, state: Tensor) -> None:
        self._source_top = int(state[0])

    @property
    def bits(self) -> int | None:
        return None if self.q_U is None else self.q_U.bits

    @property
    def quantizes_V(self) -> bool:
        return self.q_U is not None

    def quantizer_of_V(self, bits: int) -> Quantizer:
        return PowerOfTwo(bits, scale="tensor")

    def slow(self) -> list[nn.Parameter]:
        return [self.nu, self.phi]

    def eigenvalues(self) -> tuple[Tensor, Tensor]:
        """a and b of every λ as the network uses them.  # two (p,)"""
        a, b = rotation.eigenvalues(self.nu, self.phi)
        if self.lambda_bits is None:
            return a, b
        top = 2 ** (self.lambda_bits - 1)
        rounded = on_disc(a, b, self.lambda_bits)
        return straight_through(a, rounded[0] / top), straight_through(b, rounded[1] / top)

    def unit_U(self) -> Tensor:
        """The power-of-two value of one unit of each row of U.  # (2p, 1)"""
        assert self.q_U is not None
        unit = self.q_U.unit(self.U_raw)
        return torch.where(unit > 0, unit, 1.0).maximum(self._least_unit()[:, None])

    def U_q(self) -> Tensor:
        """The input matrix the network uses."""
        return self.U_raw if self.q_U is None else self.q_U.at(self.U_raw, self.unit_U())

    @property
    def _finest(self) -> int | None:
        """A unit of U is at least step/(source_step·2^this), or sums would pass float32; None: there is no bound.

        It lies so many bits below the product with λ.
        """
        steps = self.steps
        if steps is None or not steps.started or not self._source_top:
            return None
        assert self.state_bits is not None
        assert self.lambda_bits is not None
        return self.lambda_bits - 1 + max(0, min(16, EXACT + 1 - self.lambda_bits) - self.state_bits)

    def _least_unit(self) -> Tensor:
        """The smallest allowed unit of each row.  # (2p,)"""
        if self.steps is None or self._finest is None:
            return torch.zeros_like(self.U_raw[:, 0])
        return (self.steps.step / (self.source_step * 2**self._finest)).repeat(2)

    def weights(self, step: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """U in units of a state's step (None: 1), a and b, as the network uses them.  # (2p, n_i), two (p,)"""
        raw, grids = (self.U_raw, self.nu, self.phi), self._grids(step)
        if grids is not None:
            return native_weights.turn_weights(*raw, grids)
        U = self.U_q()
        return U if step is None else U / step.repeat(2)[:, None], *self.eigenvalues()

    def computed(self) -> Weights:
        return self.weights(self._step)

    @property
    def _step(self) -> Tensor | None:
        """The steps of the states; None where they are not rounded.  # (p,)"""
        steps = self.steps
        return steps.step if steps is not None and steps.started and self.rounding else None

    def _grids(self, step: Tensor | None) -> native_weights.TurnGrids | None:
        """Arguments of the native call that does the same, or None if it cannot be used."""
        q = self.q_U
        if q is None or self.lambda_bits is None:
            return None
        finest = self._finest
        if step is None and finest is not None:
            return None
        if not native_weights.usable(self.U_raw, self.nu, self.phi):
            return None
        source = None if finest is None else self.source_step
        return native_weights.TurnGrids(source, step, q.bits, self.lambda_bits, finest or 0)

    @property
    def _exact(self) -> torch.dtype | None:
        """float64 where float32 does not hold every sum."""
        if self.state_bits is None or self.q_U is None or self.lambda_bits is None:
            return None
        sums = self.n_i * 2 ** (self.q_U.bits - 1) * self._source_top
        return torch.float64 if sums >= 2**EXACT or self.lambda_bits + self.state_bits > EXACT + 1 else None

    # What a Stack asks.

    @property
    def rounds(self) -> bool:
        return self.steps is not None

    @property
    def rescales(self) -> bool:
        return self.rounds

    def enter_stack(self) -> None:
        self.normalised = True

    def settle(self) -> Tensor | None:
        steps = self.steps
        factors = steps.move(self._least_step()) if steps is not None and self.training else None
        return None if factors is None else factors.repeat(2)

    def _least_step(self) -> Tensor | None:
        """Finer ones, and 32 bits of a device would not hold the sums of all inputs at their largest.  # (p,)"""
        if self.q_U is None or self.lambda_bits is None or self.state_bits is None or not self._source_top:
            return None
        if self.lambda_bits + self.state_bits < WIDE:
            return None
        one, top = 2 ** (self.lambda_bits - 1), 2 ** (self.state_bits - 1)
        with torch.no_grad():
            largest = self.U_q().abs().sum(1).reshape(2, -1).amax(0) * self.source_step * self._source_top
        return largest * one / (LARGEST_SUM - 2 * one * top)

    def absorb(self, factors: Tensor) -> None:
        with torch.no_grad():
            self.U_raw.div_(factors)

    def reads(self, grid: Grid | None, skip: Grid | None) -> None:
        top = 0 if grid is None else grid.top
        if exporting():
            refuse_other_inputs(top, self._source_top)
            return
        copy_step(grid, self.source_step)
        if top != self._source_top:  # it hardly ever is: a module takes long to set an attribute
            self._source_top = top

    def gives(self) -> Grid | None:
        steps = self.steps
        if steps is None or not self.normalised or not self.rounding:
            return None
        return Grid(self.normal_step, steps.top)

    def freeze(self, frozen: bool = True) -> None:
        if self.steps is not None:
            self.steps.freeze(frozen)

    @contextmanager
    def on_bits(self, bits: int | None) -> Iterator[None]:
        off: dict[str, Any] = {"q_U": None, "lambda_bits": None, "rounding": False}
        changed = off if bits is None else {"q_U": trained(self.q_U, "Rotations").with_bits(bits)}
        with having(self, source_step=self.source_step.clone(), _source_top=self._source_top, **changed):
            yield

    def figures(self) -> dict[str, float]:
        with torch.no_grad():
            a, b = self.eigenvalues()
            return {"lambda_max": float(torch.hypot(a.double(), b.double()).max())}

    def state_figures(self, states: Tensor, steps: int) -> dict[str, float]:
        """The share of states at the ends of their range."""
        if self.steps is None or not self.steps.started or not self.rounding:
            return {"saturated_states": 0.0}
        reach = self.steps.top * self.steps.step.repeat(2) * self._gain()
        return {"saturated_states": float((states.abs() >= reach).sum()) / (steps * self.n_h)}

    def forward(self, x: Tensor, h0: Tensor | None = None, *, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All states (B, T, 2p), zero past a sequence's end, and the state (B, 2p) at each true end."""
        if not isinstance(x, Tensor):
            raise SettingsError(f"x must be a torch tensor, got {type(x).__name__}; torch.as_tensor(x) makes one")
        refuse_transforms()
        lengths = checked_lengths(x, lengths)
        x = checked_input(x, lengths, self.n_i, self.U_raw.dtype)
        if not self.normalised:
            self.settle()  # in a stack, that does
        with without_autocast(x):
            return self._run(x, h0, lengths)

    def _run(self, x: Tensor, h0: Tensor | None, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        steps, dtype = self.steps, self.U_raw.dtype
        step = self._step
        rounded = step is not None
        top = steps.top if steps is not None and rounded else 0
        z0 = checked_state(x, h0, self.n_h, self.U_raw)
        if h0 is not None:  # zeros are what they are
            z0 = z0 / self._unit(step)  # in units of a step, as the scan's states are
            z0 = straight_through(z0, round_half_away(z0.detach()).clamp(-top, top)) if rounded else z0
        # Normalised states are whole numbers times one power of two: the scan itself multiplies, on its way.
        alike = rounded and self.normalised
        states, last, peak = self._scan(x, step, z0, lengths, top, self._normal if alike else 1.0)
        if steps is not None and self.training:
            steps.see(peak, in_steps=rounded)  # the first batch, which is not rounded, sets the steps
        unit = self._unit(step)  # of the steps as they are now
        states, last = states.to(dtype), last.to(dtype)
        return states if alike else states * unit, last * unit

    def _scan(
        self, x: Tensor, step: Tensor | None, z0: Tensor, lengths: Tensor | None, top: int, scale: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        raw, grids, exact = (self.U_raw, self.nu, self.phi), self._grids(step), self._exact
        if x.ndim == 3 and grids is not None and exact is None and native_layers.usable(self.U_raw, x, z0):
            return native_layers.driven_scan(x, *raw, z0, lengths, grids, top, scale)
        dtype = exact or self.U_raw.dtype
        U, a, b = (weight.to(dtype) for weight in self.used() if weight is not None)
        how = (a, b, z0.to(dtype), lengths, top, scale)
        return scan(_read(x, U), *how) if x.ndim == 2 else driven_scan(x.to(dtype), U, *how)

    @property
    def _normal(self) -> float:
        """What a state of one step is normalised to."""
        assert self.state_bits is not None
        return 2.0 ** (NORMAL - self.state_bits)

    def _unit(self, step: Tensor | None) -> Tensor | float:
        """Outputs per unit of the scan's states: of one `step` where there is one, else of z.  # (2p,), or of all"""
        if step is None:
            return self._gain()
        return self._normal if self.normalised else step.repeat(2)

    def _gain(self) -> Tensor:
        """Outputs per unit of z: 1, or what normalises states.  # (2p,)"""
        if self.steps is None or not self.normalised:
            return torch.ones_like(self.U_raw[:, 0])
        return self._normal / self.steps.step.repeat(2)

    def made_of(self) -> tuple[str, dict[str, Any]]:
        if self.q_U is None or self.steps is None or self.lambda_bits is None:
            raise SettingsError(
                "Rotations at full precision have no integer form; train them with bits=2..8 and state_bits=4..16"
            )
        self.steps.demand()
        demand_grid("a layer of Rotations", self._source_top > 0)
        with torch.no_grad():
            turns = torch.stack(on_disc(*rotation.eigenvalues(self.nu, self.phi), self.lambda_bits))
            unit = self.unit_U()
            U = self.q_U.integers(self.U_raw, unit)
        return "rotations", {
            "turns": whole(turns),
            "U": whole(U),
            "bits": self.q_U.bits,
            "unit": exactly(unit[:, 0]),
            "step": exactly(self.steps.step),
            "source_step": float(self.source_step),
            "state_bits": self.state_bits,
            "lambda_bits": self.lambda_bits,
        }

    def extra_repr(self) -> str:
        return f"n_i={self.n_i}, pairs={self.pairs}, bits={self.bits}, state_bits={self.state_bits}"


def _read(codes: Tensor, U: Tensor) -> Tensor:
    """The columns of U that the codes (B, T) name.  # (B, T, 2p)"""
    check_codes(codes, U.shape[1])
    return F.embedding(codes, U.T)
