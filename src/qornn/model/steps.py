"""The power-of-two steps of a grid that follows what is rounded to it, while training."""

from __future__ import annotations

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from qornn.errors import SettingsError

DECAY = 0.98  # of the running maximum, per training step: half of it is forgotten in 34
LOW = 0.4  # of the range: below it the step is halved, and the maximum is then at 0.8 of the range
SMALLEST, LARGEST = 2.0**-60, 2.0**60


class Steps(nn.Module):
    """Steps 2^σ of whole numbers up to `top`: set by the first batch, then moved by one power of two at a time.

    The step is doubled when the running maximum of what was to be rounded passes the range, and halved when it stays
    below 0.4 of it. All is in buffers, so that a resumed run goes on with the same bits.
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
        return torch.tensor([self.started, self.frozen])

    def set_extra_state(self, state: Tensor) -> None:
        self.started, self.frozen = (bool(flag) for flag in state)

    def demand(self) -> None:
        """Refuse steps that no batch has set."""
        if not self.started:
            raise SettingsError("this network has seen no training batch, which sets the steps of its states; train it")

    @torch.no_grad()
    def see(self, peak: Tensor) -> None:
        """The largest values of a batch, in every process; the first sets the steps."""
        if self.frozen:
            return
        peak = peak.to(self.peak.dtype)
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            dist.all_reduce(peak, dist.ReduceOp.MAX)
        if self.started:
            self.peak.copy_(torch.maximum(peak, DECAY * self.peak))
            return
        self.peak.copy_(peak)
        self.step.copy_(smallest_step(peak, self.top))
        self.started = True

    @torch.no_grad()
    def move(self) -> Tensor | None:
        """Old steps over new ones, where some moved."""
        if not self.started or self.frozen:
            return None
        reach = self.top * self.step
        up = (self.peak > reach) & (self.step < LARGEST)
        down = (self.peak < LOW * reach) & (self.step > SMALLEST)
        if not bool((up | down).any()):
            return None
        factors = torch.where(up, 0.5, torch.where(down, 2.0, 1.0)).to(self.step.dtype)
        self.step.div_(factors)
        return factors

    def freeze(self) -> None:
        """From now on they stay; not before there are any."""
        if self.started:
            self.frozen = True


def smallest_step(peak: Tensor, top: int) -> Tensor:
    """The smallest power of two with peak ≤ top·step."""
    ratio = (peak / top).clamp(SMALLEST, LARGEST)
    mantissa, _ = torch.frexp(ratio)
    power = ratio / mantissa  # exact: a number by its own mantissa in [½, 1)
    return torch.where(mantissa > 0.5, power, power / 2)


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
