"""What is lowered: a run, or a network alone."""

from __future__ import annotations

from typing import Any

from qornn import __version__
from qornn.errors import SettingsError
from qornn.model import OrthogonalRNN, Stack
from qornn.tasks import Task

TRAINED = ("metric", "value", "steps", "sigma_min", "sigma_max", "max_h")  # what a program says of its training


Network = OrthogonalRNN | Stack  # has layers, V and b_o


def open_source(source: Any) -> tuple[Network, Task | None]:
    """The network of a run or a module, and the task it was trained on, if any."""
    model = getattr(source, "model", source)
    if not isinstance(model, Network):
        raise SettingsError(f"lowering takes a run, an OrthogonalRNN or a Stack, got {type(model).__name__}")
    return model, source.task() if hasattr(source, "task") else None


def provenance_of(source: Any, task: Task | None) -> dict[str, Any]:
    """Where a program comes from."""
    facts: dict[str, Any] = {"version": __version__}
    if task is not None:
        trained = {key: source.result[key] for key in TRAINED if key in source.result}
        facts |= {
            "recipe": source.recipe.portable_tables(),
            "seed": source.recipe.train.seed,
            "task": task.name,
            "trained": trained,
        }
    return facts
