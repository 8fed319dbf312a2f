"""The power-of-two steps of a grid that follows what is rounded to it, while training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from qornn.errors import SettingsError
from qornn.model.layer import Grid
from qornn.quant import Quantizer
from qornn.recurrence import native_weights

DECAY = 0.98  # of the running maximum, per training step: half of it is forgotten in 34
LOW = 0.4  # of the range: below it the step is halved, and the maximum is then at 0.8 of the range
SMALLEST, LARGEST = 2.0**-60, 2.0**60
_alone: ContextVar[bool] = ContextVar("alone", default=False)


class Steps(nn.Module):
    """Steps 2^σ of whole numbers up to `top`: set by the first batch, then moved by one power of two at a time.

    The step is doubled when the running maximum of what was to be rounded passes the range, and halved when it stays
    below 0.4 of it. If everything was zero so far, the first batch with other values sets it. All values are buffers,
    so that a resumed run continues with the same bits.
    """

    step: Tensor  # (n,) or (), powers of two
    peak: Tensor  # the same shape: running maximum

    def __init__(self, top: int, *shape: int) -> None:
        super().__init__()
        self.top = top
        self.register_buffer("step", torch.ones(shape))
        self.register_buffer("peak", torch.zeros(shape))
        self.started = self.frozen = False  # whether a batch has set the steps, and whether they stay

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self.started, self.frozen, self.top])

    def set_extra_state(self, state: Tensor) -> None:
        """Steps loaded from a run with another number of bits are rescaled to the same range."""
        started, frozen, top = state.tolist()
        if top < 1 or top & (top + 1):
            raise SettingsError(f"the largest whole number of a grid must be 2^n − 1, got {top}")
        self.started, self.frozen = bool(started), bool(frozen)
        if top != self.top:
            self.step.mul_((top + 1) / (self.top + 1))

    def demand(self) -> None:
        """Refuse steps that no batch has set."""
        if not self.started:
            raise SettingsError(
                "this network has not seen a training batch, which sets the steps of its states; train it"
            )

    def see(self, peak: Tensor, *, in_steps: bool = False) -> None:
        """The largest values of a batch, or of them over the steps, in every process; the first sets the steps."""
        if self.frozen:
            return
        mine, step = self.peak, self.step
        peak = over_processes(peak.to(mine.dtype), "MAX")
        if native_weights.usable(mine, step, peak):
            native_weights.see_peak_(mine, step, peak, self.top, DECAY, (SMALLEST, LARGEST), in_steps=in_steps)
        else:
            self._see(peak * step if in_steps else peak)
        if not self.started:
            self.started = True

    @torch.no_grad()
    def _see(self, peak: Tensor) -> None:
        silent = self.peak == 0  # so far: no factor, however large, is of use to who reads zeros
        self.step.copy_(torch.where(silent & (peak > 0), smallest_step(peak, self.top), self.step))
        self.peak.copy_(torch.where(silent, peak, torch.maximum(peak, DECAY * self.peak).clamp(min=SMALLEST)))

    def move(self, least: Tensor | None = None) -> Tensor | None:
        """Old steps over new ones, where some moved; not below `least` (n,)."""
        if not self.started or self.frozen:
            return None
        peak, step = self.peak, self.step
        if least is None and native_weights.usable(peak, step):
            return native_weights.move_steps(peak, step, self.top, LOW, (SMALLEST, LARGEST))
        return self._move(torch.zeros_like(step) if least is None else least)

    @torch.no_grad()
    def _move(self, least: Tensor) -> Tensor | None:
        reach = self.top * self.step
        up = ((self.peak > reach) | (self.step < least)) & (self.step < LARGEST)
        down = (self.peak < LOW * reach) & (self.step > SMALLEST) & (self.peak > 0) & (self.step >= 2 * least)
        if not bool((up | down).any()):
            return None
        factors = torch.where(up, 0.5, torch.where(down, 2.0, 1.0)).to(self.step.dtype)
        self.step.div_(factors)
        return factors

    def freeze(self, frozen: bool = True) -> None:
        """Freeze the steps, once they are set. False: they move again."""
        self.frozen = frozen and self.started


def trained(quantizer: Quantizer | None, layer: str) -> Quantizer:
    """The quantizer that rounded the weights while training. Without one there are no steps, and this is refused."""
    if quantizer is None:
        raise SettingsError(f"{layer} at full precision cannot be quantized afterwards; train with bits=2..8 (--bits)")
    return quantizer


@contextmanager
def alone(yes: bool = True) -> Iterator[None]:
    """Inside the context this process sets steps from its own batches, even in a group of processes."""
    token = _alone.set(yes)
    try:
        yield
    finally:
        _alone.reset(token)


def over_processes(values: Tensor, kind: str) -> Tensor:
    """The largest values (MAX) or the sums (SUM) over all processes of a training."""
    if not _alone.get() and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        values = values.clone()  # in place, and the caller's own may be an output of something
        dist.all_reduce(values, getattr(dist.ReduceOp, kind))
    return values


def smallest_step(peak: Tensor, top: int) -> Tensor:
    """The smallest power of two with peak ≤ top·step."""
    ratio = (peak / top).clamp(SMALLEST, LARGEST)
    mantissa, _ = torch.frexp(ratio)
    power = ratio / mantissa  # exact: a number by its own mantissa in [½, 1)
    return torch.where(mantissa > 0.5, power, power / 2)


def copy_step(grid: Grid | None, step: Tensor) -> None:
    """Remember the step of what is read; 0 where that is float."""
    if grid is None:
        step.zero_()
    else:
        step.copy_(grid.step)


def refuse_other_inputs(read: object, known: object) -> None:
    """While torch.export traces: refuse inputs on a grid that the weights were not fixed for."""
    if read != known:
        raise SettingsError(
            "the network has not run on such inputs yet; call it once on them, then model.eval(), then torch.export"
        )


def demand_grid(layer: str, read: bool) -> None:
    """Refuse a layer that was trained on floats: its integers would be those of another network."""
    if not read:
        raise SettingsError(
            f"{layer} reads numbers that were not rounded in training, so that it has no integer form; put it after "
            "the input, Rotations or Mix"
        )


def whole(integers: Tensor) -> np.ndarray:
    """Whole numbers that torch holds as floats."""
    return integers.detach().cpu().double().numpy().astype(np.int64)


def exactly(values: Tensor) -> np.ndarray:
    """The same numbers in float64."""
    return values.detach().cpu().double().numpy()
