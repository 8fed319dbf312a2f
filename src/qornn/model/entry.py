"""Inputs of a network that rounds while training: whole numbers, as a device reads them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from qornn.bits import INPUT_BITS
from qornn.errors import SettingsError
from qornn.model.layer import Grid
from qornn.model.steps import smallest_step
from qornn.quant import round_half_away

TRIED = 5  # powers of two below the step that clips nothing


class Entry(nn.Module):
    """x_i = clamp(round(x·gain)) and x = step·x_i, the step a power of two.

    The first training batch sets both, unless `hold` did: the step with the smallest mean error, which may clip rare
    large samples.
    """

    gain: Tensor  # () units per unit of x
    step: Tensor  # () a power of two

    def __init__(self, bits: int) -> None:
        super().__init__()
        if isinstance(bits, bool) or bits not in INPUT_BITS:
            raise SettingsError(f"input_bits must be in {INPUT_BITS[0]}..{INPUT_BITS[-1]}, got {bits!r}")
        self.bits = bits
        self.started = False
        self.register_buffer("gain", torch.ones((), dtype=torch.float64))
        self.register_buffer("step", torch.ones(()))

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self.started])

    def set_extra_state(self, state: Tensor) -> None:
        self.started = bool(state[0])

    def hold(self, gain: float, step: float) -> None:
        """Decide what one unit is: 1/gain of what comes in, `step` of what the network sees."""
        self.gain.fill_(gain)
        self.step.fill_(step)
        self.started = True

    def demand(self) -> None:
        """Refuse a step that nothing has set."""
        if not self.started:
            raise SettingsError("this network has seen no training batch, which sets the step of its inputs; train it")

    @property
    def grid(self) -> Grid:
        return Grid(self.step, 2 ** (self.bits - 1))

    def forward(self, x: Tensor) -> Tensor:
        """The inputs that the network sees; unrounded as long as nothing has set the step."""
        if not self.started:
            if not self.training:
                return x
            step = best_step(x.detach(), self.bits)
            self.hold(1 / step, step)
        top = 2 ** (self.bits - 1)
        units = round_half_away(x.double() * self.gain).clamp(-top, top - 1)
        return (units * self.step).to(x.dtype)


def best_step(x: Tensor, bits: int) -> float:
    """The power of two whose grid of so many bits is nearest to x in the mean: squares would heed outliers alone."""
    top = 2 ** (bits - 1) - 1
    x = x.double()
    whole = smallest_step(x.abs().max(), top)
    steps = [whole / 2**i for i in range(TRIED)]
    errors = [float((round_half_away(x / step).clamp(-top - 1, top) * step - x).abs().mean()) for step in steps]
    return float(steps[min(range(TRIED), key=errors.__getitem__)])
