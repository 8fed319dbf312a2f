"""From a recipe to the objects it names."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from qornn.baselines import BASELINES
from qornn.bits import lossless
from qornn.errors import SettingsError, unknown
from qornn.maps import check_options, is_structured
from qornn.model import OrthogonalRNN, Stack
from qornn.recipe import STACK, ModelSettings, Recipe
from qornn.tasks import make_task
from qornn.tasks.base import RawInput, Task
from qornn.train.surroundings import float32, own_torch

MOST_INPUT_BITS = 12  # where raw samples have more, unless more are asked for


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
    if settings.kind == STACK:
        named = f"model.width={settings.width} and model.pairs={settings.n_pairs}"
        size = 32 * settings.layers * settings.width * settings.n_pairs  # U and C of each layer, float64 as drawn
    else:
        named = f"model.n_h={settings.n_h}"
        size = 8 * settings.n_h ** (2 if stored else 1)  # in float64, as it is drawn
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return
    if size > there:
        raise SettingsError(
            f"{named} needs {size / 1e9:.4g} GB for its matrix alone, and this machine has "
            f"{there / 1e9:.4g} GB; use fewer units" + (", or a map that stores no matrix" if stored else "")
        )


def _qornn(settings: ModelSettings, task: Task, generator: torch.Generator) -> nn.Module:
    check_options(settings.map, settings.map_options)
    own: dict[str, Any] = {
        "map": settings.map,
        "bits": settings.bits,
        "bits_W": settings.bits_W,
        "bits_U": settings.bits_U,
        "bits_V": settings.bits_V,
        "quantizer": settings.quantizer,
        "scale": settings.scale,
        "activation": settings.activation,
        "readout": task.readout,
        "readout_activation": settings.readout_activation,
        "mix": settings.mix,
        "noise": settings.noise,
        "init": settings.init,
        "init_U": settings.init_U,
        "init_V": settings.init_V,
        "gain_V": settings.gain_V,
        "generator": generator,
    }
    if taken := sorted(own.keys() & settings.map_options.keys()):
        raise SettingsError(
            f"the option {taken[0]} of the map {settings.map!r} has the name of a parameter of OrthogonalRNN; "
            "give it another name in the map"
        )
    return OrthogonalRNN(task.n_i, settings.n_h, task.n_o, **own, **settings.map_options)


def _stack(settings: ModelSettings, task: Task, generator: torch.Generator) -> nn.Module:
    raw = task.raw_input
    bits = settings.input_bits if raw is None else _input_bits(settings, raw)
    model = Stack.rotations(
        task.n_i,
        task.n_o,
        width=settings.width,
        pairs=settings.pairs,
        layers=settings.layers,
        bits=settings.bits,
        state_bits=settings.activation_bits,
        skip=settings.skip,
        pool=_pool(settings, task),
        dropout=settings.dropout,
        lambda_bits=settings.lambda_bits,
        ring=(settings.r_min, settings.r_max),
        integrators=settings.integrators,
        noise=settings.noise,
        bits_V=settings.bits_V,
        input_bits=None if task.one_hot or settings.bits is None else bits,
        generator=generator,
    )
    hold_inputs(model, task)
    return model


def _pool(settings: ModelSettings, task: Task) -> Any:
    """Which steps are read out. The task decides whether it is all of them."""
    if settings.pool is None:
        return "all" if task.readout == "all" else "mean"
    if (settings.pool == "all") != (task.readout == "all"):
        ways = "all" if task.readout == "all" else "mean or last"
        raise SettingsError(f"model.pool={settings.pool} is not for the task {task.name}; set {ways}, or leave it out")
    return settings.pool


def _input_bits(settings: ModelSettings, raw: RawInput) -> int:
    """Bits of raw samples that the network sees: those the task leaves, those asked for, or all up to 12."""
    if raw.bits is not None and settings.input_bits not in (None, raw.bits):
        raise SettingsError(
            f"the task leaves {raw.bits} bits of an input; model.input_bits={settings.input_bits} is more"
        )
    return raw.bits or settings.input_bits or min(lossless(raw.low, raw.high, raw.offset), MOST_INPUT_BITS)


def hold_inputs(model: nn.Module, task: Task) -> None:
    """Inputs that are whole numbers already stay what they are, where the network rounds inputs while training.

    x_i is the raw sample without its offset, or its upper bits; the network sees x_i/2^(bits−1), within ±1.
    """
    raw = task.raw_input
    if raw is None or not isinstance(model, Stack) or model.entry is None:
        return
    drop = max(lossless(raw.low, raw.high, raw.offset) - model.entry.bits, 0)
    model.entry.hold(gain=1 / raw.scale, step=2.0 ** (1 - model.entry.bits), drop=drop)


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
    STACK: _stack,
    **dict.fromkeys(BASELINES, _baseline),
}
