"""How well a program does on a task."""

from __future__ import annotations

from typing import Literal

import torch

from qornn._io.progress import progress
from qornn.integer.program import IntegerProgram
from qornn.lowering.inputs import lengths_of, raw_input
from qornn.tasks import Task


def score(
    program: IntegerProgram,
    task: Task,
    split: Literal["train", "validation", "test"] = "test",
    *,
    batch: int = 512,
    quiet: bool = False,
) -> float:
    """The task's metric of the program over one pass of the split, by the native engine."""
    weighted = weight = 0.0
    parts = -(-task.size(split) // batch)
    for part in progress(task.batches(split, batch), total=parts, what="integers", quiet=quiet):
        raw, lengths = raw_input(program, part), lengths_of(part)
        steps = raw.shape[1] if lengths is None else lengths
        y = program.readout.values(program.run(raw, lengths), program.readout.counts(steps))
        weighted += task.metric(torch.from_numpy(y), part) * part.weight
        weight += part.weight
    return weighted / weight
