"""Optimizers from torch, a learning rate that is a function of the step, and the retraction after the step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from qornn.errors import unknown
from qornn.model import OrthogonalRecurrence, SequenceLayer
from qornn.recipe import TrainSettings

SLOW = 4.0  # divider of what `layer.slow()` names
RISE = 0.1  # of a one-cycle training
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": lambda groups: torch.optim.AdamW(groups, fused=_fusible(groups)),
    "rmsprop": lambda groups: torch.optim.RMSprop(groups, alpha=0.99, eps=1e-8),
}


def recurrences(model: nn.Module) -> list[OrthogonalRecurrence]:
    """Every orthogonal layer of the model."""
    return [module for module in model.modules() if isinstance(module, OrthogonalRecurrence)]


def sequence_layers(model: nn.Module) -> list[SequenceLayer]:
    """Every layer of the model."""
    return [module for module in model.modules() if isinstance(module, SequenceLayer)]


def make_optimizer(model: nn.Module, settings: TrainSettings) -> torch.optim.Optimizer:
    """The optimizer of that name; groups carry the dividers of their learning rates, and matrices may decay."""
    if settings.optimizer not in OPTIMIZERS:
        raise unknown("optimizer", settings.optimizer, OPTIMIZERS)
    W = [layer.W_raw for layer in recurrences(model) if layer.map.learned]
    U = [layer.U_raw for layer in recurrences(model)] if settings.divider_U != 1 else []
    slow = [parameter for layer in sequence_layers(model) for parameter in layer.slow()]
    taken = {id(p) for p in (*W, *U, *slow)}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in taken]
    divided = ((W, settings.divider), (U, settings.divider_U), (slow, SLOW), (rest, 1.0))
    groups = [
        {"params": chosen, "divider": divider, **_decay(settings, matrices)}
        for parameters, divider in divided
        for matrices in (False, True)
        if (chosen := [p for p in parameters if (p.ndim >= 2) == matrices])
    ]
    return OPTIMIZERS[settings.optimizer](groups)


def _fusible(groups: list[dict[str, Any]]) -> bool:
    """On the CPU one call for all parameters, which in a small stack takes a fifth of the time. GPUs do as they did."""
    return all(p.device.type == "cpu" for group in groups for p in group["params"])


def _decay(settings: TrainSettings, matrices: bool) -> dict[str, float]:
    """Weight decay of matrices only: a bias or a λ has no reason to be small."""
    return {"weight_decay": settings.decay if matrices else 0.0} if settings.optimizer == "adamw" else {}


def total_steps(steps_per_epoch: int, settings: TrainSettings) -> int:
    """Steps of the whole schedule, or of the fraction of it that is asked for."""
    return max(1, round(settings.fraction * settings.epochs * steps_per_epoch))


def learning_rate(step: int, steps_per_epoch: int, settings: TrainSettings) -> float:
    """lr · lr_factor^⌊epoch/lr_every⌋, or half a cosine, after a linear rise over the first `warmup` steps.

    One cycle is a linear rise over the first tenth, then half a cosine. A fraction of the training goes through the
    same epochs, each shortened by it.
    """
    if settings.schedule != "steps":
        end = settings.steps or total_steps(steps_per_epoch, settings)
        rise = math.ceil(RISE * end) if settings.schedule == "one-cycle" else 0
        if step < rise:
            lr = settings.lr * (step + 1) / rise
        else:
            lr = settings.lr * (1 + math.cos(math.pi * min(1.0, (step - rise) / max(end - rise, 1)))) / 2
    else:
        epoch = int(step / settings.fraction) // steps_per_epoch
        lr = settings.lr * settings.lr_factor ** (epoch // settings.lr_every)
    return lr * min(1.0, (step + 1) / settings.warmup) if settings.warmup else lr


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Δ/d for the recurrent weights is a learning rate of lr/d."""
    for group in optimizer.param_groups:
        group["lr"] = lr / group["divider"]


@torch.no_grad()
def step_and_retract(
    optimizer: torch.optim.Optimizer, layers: Iterable[OrthogonalRecurrence], generator: torch.Generator
) -> None:
    """optimizer.step(), then the map of every layer brings its W back to the manifold."""
    before: list[tuple[OrthogonalRecurrence, Tensor]] = [
        (layer, layer.W_raw.detach().clone()) for layer in layers if layer.map.retracts
    ]
    optimizer.step()
    for layer, W_before in before:
        layer.map.retract_(layer.W_raw, W_before, generator=generator)
