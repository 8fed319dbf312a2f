"""What the networks learn: a task gives batches, a loss, a metric and the naive baseline."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from qornn.errors import unknown
from qornn.tasks.adding import Adding
from qornn.tasks.base import SPLITS, Batch, RawInput, Split, Task
from qornn.tasks.copy import Copy
from qornn.tasks.digits import Digits
from qornn.tasks.mnist import PMnist, SMnist
from qornn.tasks.ptb import PTB

TASKS: dict[str, type[Task]] = {
    "copy": Copy,
    "adding": Adding,
    "smnist": SMnist,
    "pmnist": PMnist,
    "ptb": PTB,
    "digits": Digits,
}

__all__ = ["SPLITS", "TASKS", "Batch", "RawInput", "Split", "Task", "make_task"]


def make_task(name: str, **settings: Any) -> Task:
    """The task of that name with its settings; unknown names and keys are refused.

    >>> make_task("copy", T0=100).naive_baseline
    0.17328679513998632
    """
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    known = [field.name for field in fields(TASKS[name])]
    for key in settings:
        if key not in known:
            raise unknown(f"{name} setting", key, known)
    return TASKS[name](**settings)
