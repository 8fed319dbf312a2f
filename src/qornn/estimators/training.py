"""Training in memory."""

from __future__ import annotations

import math
import warnings

import numpy as np
import torch
from torch import nn

from qornn.estimators.early_stopping import EarlyStopping, WholeCycle
from qornn.estimators.groups import hold_out_groups
from qornn.recipe import TrainSettings
from qornn.tasks.arrays import Arrays

FEWEST_HELD_OUT = 20  # a held-out loss of fewer sequences is noise; then the training loss is watched
WARMUP = 100  # steps, or a tenth of the training where that is shorter
CLIP = 1.0  # of the gradient's norm: 4-bit matrices stretch states, and long sequences make that a cliff
LAST_LR = 0.1  # of lr, reached at max_epochs
DECAY = 0.01  # of the matrices of a stack
WIDE = 64  # units; in narrower networks fewer weights add up, so each needs larger steps of Adam


def train(
    model: nn.Module,
    task: Arrays,
    *,
    lr: float,
    max_epochs: int,
    batch_size: int,
    patience: int,
    seed: int,
    device: str,
    verbose: bool,
) -> list[dict[str, float]]:
    """The model trained in place, on the CPU again at the end; one record per epoch."""
    steps = max_epochs * task.steps_per_epoch(batch_size)
    settings = TrainSettings(
        lr=lr,
        lr_factor=LAST_LR ** (1 / max_epochs),
        warmup=min(WARMUP, max(steps // 10, 1)),
        clip=CLIP,
        epochs=max_epochs,
        batch=batch_size,
        seed=seed,
    )
    history = EarlyStopping(model, task, settings, device=device, quiet=not verbose).fit(patience)
    return _trained(model, history)


def train_one_cycle(
    model: nn.Module,
    task: Arrays,
    *,
    lr: float,
    epochs: int,
    batch_size: int,
    seed: int,
    device: str,
    verbose: bool,
) -> list[dict[str, float]]:
    """The same by AdamW in one cycle, to its end: lr rises over the first tenth of the steps, then falls to nothing."""
    settings = TrainSettings(
        optimizer="adamw",
        lr=lr,
        decay=DECAY,
        schedule="one-cycle",
        clip=CLIP,
        epochs=epochs,
        batch=batch_size,
        seed=seed,
    )
    history = WholeCycle(model, task, settings, device=device, quiet=not verbose).fit()
    return _trained(model, history)


def _trained(model: nn.Module, history: list[dict[str, float]]) -> list[dict[str, float]]:
    model.to(torch.device("cpu"))
    model.eval()
    model.requires_grad_(False)
    return history


def rate_of(lr: float, n_hidden: int) -> float:
    """The learning rate of a network of that many units, where `lr` is that of a wide one."""
    return lr * math.sqrt(max(WIDE / n_hidden, 1.0))


def held_out(
    y: np.ndarray, fraction: float, seed: int, *, stratify: bool, groups: np.ndarray | None = None
) -> np.ndarray:
    """Which sequences to hold out: that share of every class, at random; none where that would be too few.  # (N,)

    With groups (N,) they are whole groups.
    """
    random, none = np.random.default_rng([seed, 7]), np.zeros(len(y), bool)
    if groups is not None:
        if int(fraction * len(y)) < FEWEST_HELD_OUT:
            return none
        held = hold_out_groups(groups, y if stratify else none, fraction, random)
        if not held.any():
            one = "all sequences are of one group" if (groups == groups[0]).all() else "each group has a class alone"
            warnings.warn(f"{one}: nothing is held out to choose the best weights by", stacklevel=5)
        return held if held.sum() >= FEWEST_HELD_OUT else none
    held = none.copy()
    parts = [np.flatnonzero(y == value) for value in np.unique(y)] if stratify else [np.arange(len(y))]
    for rows in parts:
        held[random.permutation(rows)[: int(fraction * len(rows))]] = True
    return held if held.sum() >= FEWEST_HELD_OUT else none
