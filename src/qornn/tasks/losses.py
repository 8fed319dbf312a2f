"""The losses and metrics that tasks share; the only file of this room that needs torch on import."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from qornn.tasks.base import Batch


def cross_entropy(y: Tensor, batch: Batch) -> Tensor:
    """Mean over targets of −ln p(target); padded steps do not count."""
    if y.ndim == 2:  # (B, n_o): one answer per sequence
        return F.cross_entropy(y, batch.target)
    losses = F.cross_entropy(y.flatten(0, 1), batch.target.flatten(), reduction="none").view_as(batch.target)  # (B, T)
    if batch.lengths is None:
        return losses.mean()
    counts = torch.arange(losses.shape[1], device=y.device) < batch.lengths[:, None]
    return losses.masked_fill(~counts, 0).sum() / batch.lengths.sum()


def bits_per_character(y: Tensor, batch: Batch) -> float:
    """−mean log2 p(target)."""
    return cross_entropy(y, batch).item() / math.log(2)


def accuracy(y: Tensor, batch: Batch) -> float:
    """Percent of sequences whose largest output is the target."""
    return 100.0 * (y.argmax(-1) == batch.target).cpu().double().mean().item()


def squared_error(y: Tensor, batch: Batch) -> Tensor:
    """Mean squared error of one value per sequence; y is (B, 1)."""
    return F.mse_loss(y.squeeze(-1), batch.target)
