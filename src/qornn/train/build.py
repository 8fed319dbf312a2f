"""From a recipe to the objects it names."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import nn

from qornn.baselines import BASELINES
from qornn.errors import SettingsError, unknown
from qornn.maps import check_options, is_structured
from qornn.model import OrthogonalRNN
from qornn.recipe import ModelSettings, Recipe
from qornn.tasks import make_task
from qornn.tasks.base import Task
from qornn.train.surroundings import float32, own_torch


def build_task(recipe: Recipe) -> Task:
    """The recipe's task."""
    settings = dict(recipe.task)
    return make_task(settings.pop("name"), **settings)


@own_torch()
@float32()
def build_model(recipe: Recipe, task: Task) -> nn.Module:
    """The recipe's network for the task, its weights drawn from the recipe's seed."""
    kind = recipe.model.kind
    if kind not in MODELS:
        raise unknown("model", kind, MODELS)
    _check_memory(recipe.model)
    generator = torch.Generator().manual_seed(recipe.train.seed)
    return MODELS[kind](recipe.model, task, generator)


def _check_memory(settings: ModelSettings) -> None:
    """Refuse a matrix that this machine cannot hold: some systems grant any memory, and end the process later."""
    stored = settings.kind != "qornn" or not is_structured(settings.map)
    size = 8 * settings.n_h ** (2 if stored else 1)  # in float64, as it is drawn
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return
    if size > there:
        raise SettingsError(
            f"model.n_h={settings.n_h} needs {size / 1e9:.4g} GB for its matrix alone, and this machine has "
            f"{there / 1e9:.4g} GB; use fewer units" + (", or a map that stores no matrix" if stored else "")
        )


def _qornn(settings: ModelSettings, task: Task, generator: torch.Generator) -> nn.Module:
    check_options(settings.map, settings.map_options)
    return OrthogonalRNN(
        task.n_i,
        settings.n_h,
        task.n_o,
        map=settings.map,
        bits=settings.bits,
        bits_W=settings.bits_W,
        bits_U=settings.bits_U,
        bits_V=settings.bits_V,
        quantizer=settings.quantizer,
        scale=settings.scale,
        activation=settings.activation,
        readout=task.readout,
        readout_activation=settings.readout_activation,
        mix=settings.mix,
        noise=settings.noise,
        init=settings.init,
        init_U=settings.init_U,
        init_V=settings.init_V,
        gain_V=settings.gain_V,
        generator=generator,
        **settings.map_options,
    )


def _baseline(settings: ModelSettings, task: Task, generator: torch.Generator) -> nn.Module:
    return BASELINES[settings.kind](
        task.n_i,
        settings.n_h,
        task.n_o,
        bits=settings.bits,
        scale=settings.scale,
        activation_bits=settings.activation_bits,
        readout=task.readout,
        generator=generator,
    )


MODELS: dict[str, Callable[[ModelSettings, Task, torch.Generator], nn.Module]] = {
    "qornn": _qornn,
    **dict.fromkeys(BASELINES, _baseline),
}
