"""The activation of a trained layer in its integer form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qornn.errors import SettingsError
from qornn.integer.activations import Activation, Identity, ModReLU, ReLU
from qornn.model import OrthogonalRecurrence

ACTIVATIONS: dict[str, Callable[[OrthogonalRecurrence, np.ndarray], Activation]] = {
    "relu": lambda layer, bias: ReLU(),
    "modrelu": lambda layer, bias: ModReLU(bias=bias),
    "identity": lambda layer, bias: Identity(bias=None if layer.b is None else bias),
}


def check_activation(layer: OrthogonalRecurrence) -> None:
    """Refuse what has no integer form."""
    if layer.activation not in ACTIVATIONS:
        raise SettingsError(f"{layer.activation} has no integer form; train with relu, modrelu or identity")


def activation_of(layer: OrthogonalRecurrence, bias: np.ndarray) -> Activation:
    """The layer's activation, with its bias in accumulator units."""
    return ACTIVATIONS[layer.activation](layer, bias)


def bias_of(layer: OrthogonalRecurrence) -> np.ndarray:
    """The bias of the recurrence, or of its modReLU; zeros where there is none.  # (n_h,) float64"""
    b = layer.b if layer.modrelu is None else layer.modrelu.b
    return np.zeros(layer.n_h) if b is None else b.detach().cpu().double().numpy()
