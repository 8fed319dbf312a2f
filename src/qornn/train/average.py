"""The mean of the weights over the last part of a training, in place of the last weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from qornn.errors import CheckpointError


class Average:
    """A running mean of every parameter as the optimizer holds it: of W_raw, before the map.

    - `share`: of the training, at its end. 0 averages nothing.
    - `total`: steps of the training.
    """

    def __init__(self, share: float, total: int) -> None:
        self.first = total - round(share * total)  # the weights after this step are the first that count
        self.mean: dict[str, Tensor] = {}

    @torch.no_grad()
    def add_(self, model: nn.Module, step: int) -> None:
        """Count the weights after this step."""
        if step <= self.first:
            return
        count = step - self.first
        for name, parameter in model.named_parameters():
            if count == 1:
                self.mean[name] = parameter.detach().clone()
            else:
                self.mean[name].lerp_(parameter.detach(), 1 / count)

    @torch.no_grad()
    def apply_(self, model: nn.Module) -> None:
        """Give the model the mean, if there is one; once more changes nothing."""
        for name, parameter in model.named_parameters():
            if name in self.mean:
                parameter.copy_(self.mean[name])

    def restore(self, mean: dict[str, Tensor], model: nn.Module, step: int, path: object) -> None:
        """Go on from the mean in a checkpoint."""
        shapes = {name: p.shape for name, p in model.named_parameters()} if step > self.first else {}
        if {name: m.shape for name, m in mean.items()} != shapes:
            raise CheckpointError(f"{path} does not hold the mean of this model's weights; delete it")
        own = dict(model.named_parameters())
        self.mean = {name: m.to(own[name]) for name, m in mean.items()}
