"""The readout trained again on the states of the integer network. The recurrence does not change.

States that grow over a thousand steps are small compared with their grid at first. V was not trained on the rounding
errors that this leaves in the last states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qornn._io.progress import progress
from qornn.errors import SettingsError
from qornn.integer.engine.run import states
from qornn.integer.program import IntegerProgram
from qornn.lowering.inputs import lengths_of, raw_input
from qornn.tasks import Batch, Task
from qornn.tasks.base import check_count

BATCH, LR = 64, 3e-3


def refit(
    program: IntegerProgram, task: Task, steps: int, *, seed: int = 0, start: int = 0, quiet: bool = False
) -> IntegerProgram:
    """The program with V and b_o after `steps` batches of Adam, from training batch `start` on, the rate to zero."""
    check_count("steps", steps)
    if program.readout.exact:
        raise SettingsError("refit trains a float readout, and this one has integers; lower with readout='float'")
    readout: Any = program.readout
    seen = _reader(program, readout)
    with torch.inference_mode(False), torch.enable_grad():
        V, b_o = (torch.tensor(p, requires_grad=True) for p in (readout.V, readout.b_o))
        adam = torch.optim.Adam([V, b_o], lr=LR)
        rate = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
        parts = islice(task.batches("train", BATCH, seed=seed, start=start), steps)
        for part in progress(parts, total=steps, what="readout", quiet=quiet):
            adam.zero_grad()
            task.loss(seen(part) @ V.T + b_o, part).backward()
            adam.step()
            rate.step()
    trained = replace(readout, V=V.detach().numpy(), b_o=b_o.detach().numpy())
    facts = {key: fact for key, fact in program.provenance.items() if key != "metric"}  # that was the old readout's
    if "lowering" in facts:
        facts["lowering"] = {**facts["lowering"], "refit": int(steps)}
    return replace(program, readout=trained, provenance=facts)


def _reader(program: IntegerProgram, readout: Any) -> Callable[[Batch], Tensor]:
    """What V reads of a batch."""

    def given(part: Batch) -> tuple[np.ndarray, np.ndarray | None]:
        return raw_input(program, part), lengths_of(part)

    # The states as they are, where they are what V reads: the identity would take n_h² products per step.
    if readout.every and program.layers[-1].n_state:

        def read(part: Batch) -> Tensor:
            h = torch.from_numpy(states(program, *given(part))).float() * readout.scale
            return h.relu() if readout.relu else h

        return read
    eye, none = np.eye(readout.n_h, dtype=np.float32), np.zeros(readout.n_h, np.float32)
    through = replace(program, readout=replace(readout, V=eye, b_o=none))
    return lambda part: torch.from_numpy(through.run(*given(part)))
