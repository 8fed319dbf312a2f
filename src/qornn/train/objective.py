"""Terms that a training adds to the task's loss, and texts about its result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from qornn.errors import DivergenceError
from qornn.model import SequenceLayer
from qornn.tasks.base import Task


def penalties(layers: Iterable[SequenceLayer], h: Any, state_penalty: float) -> Tensor | float:
    """The penalties of the layers' maps, plus a multiple of the mean square of the last state."""
    terms: list[Tensor] = [term for layer in layers if (term := layer.penalty()) is not None]
    if state_penalty:
        states = h if isinstance(h, tuple) else (h,)  # a stack gives the states of all its layers, some of no numbers
        last = next(state for state in reversed(states) if state.numel())
        terms.append(state_penalty * last.square().mean())
    return sum(terms, 0.0)


def freeze(layers: Iterable[SequenceLayer], frozen: bool) -> None:
    """Freeze the steps of rounded states, or let them move."""
    for layer in layers:
        layer.freeze(frozen)


def diverged(step: int, what: str, lr: float, saved: Path | None, *, recurrent: bool) -> DivergenceError:
    """The error of a training that went wrong, with the likely cause; `recurrent` where some W may stretch states."""
    growing = "states that grow at every step (σ_max of W_q above 1) or " if recurrent else ""
    rows = ", model.scale=row" if recurrent else ""
    return DivergenceError(
        f"diverged at step {step}: {what}. Likely cause: {growing}too large a learning rate (now {lr:g}). "
        f"Try a smaller train.lr, train.clip=1{rows} or more bits. Last good checkpoint: {saved or 'none yet'}"
    )


def verdict(task: Task, value: float) -> str:
    """The validation metric beside its naive baseline."""
    word = "NC" if math.isnan(value) or not task.converged(value) else "converged"
    score = "no validation set" if math.isnan(value) else f"validation {task.metric_name} {value:.5g}"
    return f"{score} (naive {task.naive_baseline:.4g}: {word})"


def named(figures: Mapping[str, float]) -> str:
    """Figures in a line."""
    return "  ".join(f"{name} {number:.4g}" for name, number in figures.items())
