"""Backward passes that have no backward pass of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from qornn.errors import SettingsError


def refuse_second_derivative() -> None:
    """Refuse create_graph=True: what follows would be left out of the second gradient without a word."""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        raise SettingsError(
            "this network has no second derivatives: leave create_graph=True out, or take differences of two gradients"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Like torch's decorator of that name, with an error that says what to do, as early as possible."""

    @wraps(backward)
    def refusing(ctx: Any, *grads: Any) -> Any:
        refuse_second_derivative()
        with torch.no_grad():
            return backward(ctx, *grads)

    return refusing
