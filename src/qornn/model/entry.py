"""Inputs of a network that rounds while training: whole numbers, as a device reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from qornn.bits import INPUT_BITS
from qornn.errors import SettingsError
from qornn.model.layer import Grid
from qornn.model.steps import over_processes, smallest_step
from qornn.quant import having, round_half_away
from qornn.recurrence import native_weights

TRIED = 5  # powers of two below the step that clips nothing


class Entry(nn.Module):
    """x_i = clamp(⌊round(x·gain)/2^drop + ½⌋) and x = step·x_i, the step a power of two.

    The first training batch that is not all zeros sets gain and step, unless `hold` did: the step with the smallest
    mean error, which may clip rare large samples. Where low bits are dropped ties go up, as they do on a device
    (integer/inputs/samples.py).
    """

    gain: Tensor  # () units of the raw sample per unit of x
    step: Tensor  # () a power of two
    drop: Tensor  # () low bits of a raw sample that the network does not see

    def __init__(self, bits: int) -> None:
        super().__init__()
        if type(bits) is not int or bits not in INPUT_BITS:
            raise SettingsError(f"input_bits must be in {INPUT_BITS[0]}..{INPUT_BITS[-1]}, got {bits!r}")
        self.bits = bits
        self.started = False
        self.rounding = True
        self.register_buffer("gain", torch.ones((), dtype=torch.float64))
        self.register_buffer("step", torch.ones(()))
        self.register_buffer("drop", torch.zeros((), dtype=torch.int64))

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self.started])

    def set_extra_state(self, state: Tensor) -> None:
        self.started = bool(state[0])

    def hold(self, gain: float, step: float, drop: int = 0) -> None:
        """Decide what one unit is: 2^drop/gain of what comes in, `step` of what the network sees."""
        self.gain.fill_(gain)
        self.step.fill_(step)
        self.drop.fill_(drop)
        self.started = True

    def demand(self) -> None:
        """Refuse a step that nothing has set."""
        if not self.started:
            raise SettingsError(
                "this network has not seen a training batch, which sets the step of its inputs; train it"
            )

    @contextmanager
    def on_bits(self, bits: int | None) -> Iterator[None]:
        """Inside the context inputs are not rounded if `bits` is None. Other values do not change the input bits."""
        with having(self, rounding=bits is not None and self.rounding):
            yield

    @property
    def grid(self) -> Grid | None:
        """The inputs that the network sees; None where they are floats."""
        return Grid(self.step, 2 ** (self.bits - 1)) if self.started and self.rounding else None

    def forward(self, x: Tensor) -> Tensor:
        """The inputs that the network sees; unrounded as long as nothing has set the step."""
        if not self.started:
            if not self.training:
                return x
            if not over_processes(x.detach().abs().max(), "MAX"):
                return x  # only zeros say nothing of what is to come
            step = best_step(x.detach(), self.bits)
            self.hold(1 / step, step)
        top, whole = 2 ** (self.bits - 1), self.rounding and not torch.compiler.is_compiling() and not int(self.drop)
        if whole and not x.requires_grad and native_weights.usable(x):
            return native_weights.round_inputs(x, float(self.gain), float(self.step), top)
        raw = x.double() * self.gain
        if whole:  # the same in half the passes
            return (round_half_away(raw).clamp(-top, top - 1) * self.step).to(x.dtype)
        unit = torch.exp2(self.drop.double())
        if not self.rounding:
            return (raw / unit * self.step).to(x.dtype)
        # In two steps, as on a device: where low bits are dropped ties are common, and x·gain may lie just beside one.
        units = torch.floor(round_half_away(raw) / unit + 0.5).clamp(-top, top - 1)
        return (units * self.step).to(x.dtype)


def best_step(x: Tensor, bits: int) -> float:
    """The power of two whose grid of so many bits is nearest to x in the mean: squares would heed outliers alone.

    Over the batches of all processes.
    """
    top = 2 ** (bits - 1) - 1
    x = x.double()
    whole = smallest_step(over_processes(x.abs().max(), "MAX"), top)
    steps = [whole / 2**i for i in range(TRIED)]
    errors = [(round_half_away(x / step).clamp(-top - 1, top) * step - x).abs().sum() for step in steps]
    return float(steps[int(over_processes(torch.stack(errors), "SUM").argmin())])
