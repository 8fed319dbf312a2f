"""The readout trained once more, on the states that the integers really have; the recurrence stays as it is.

States that grow over a thousand steps are small beside their own grid at first, and V never saw what that leaves in the
last of them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import torch

from qornn.errors import SettingsError
from qornn.integer.parts import FloatReadout
from qornn.integer.program import IntegerProgram
from qornn.progress import progress
from qornn.tasks import Task

BATCH, LR = 64, 3e-3


def refit(
    program: IntegerProgram, task: Task, steps: int, *, seed: int = 0, start: int = 0, quiet: bool = False
) -> IntegerProgram:
    """The program with V and b_o after `steps` batches of Adam, from training batch `start` on, the rate to zero."""
    if not isinstance(program.readout, FloatReadout):
        raise SettingsError("refit trains a readout of floats; these are integers, lower with readout='float'")
    eye, none = np.eye(program.n_h, dtype=np.float32), np.zeros(program.n_h, np.float32)
    seen = replace(program, readout=replace(program.readout, V=eye, b_o=none))  # its outputs are what V reads
    V, b_o = (torch.tensor(p, requires_grad=True) for p in (program.readout.V, program.readout.b_o))
    adam = torch.optim.Adam([V, b_o], lr=LR)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    parts = islice(task.batches("train", BATCH, seed=seed, start=start), steps)
    for part in progress(parts, total=steps, what="readout", quiet=quiet):
        lengths = None if part.lengths is None else part.lengths.numpy()
        states = torch.from_numpy(seen.run(seen.input.from_floats(part.x.numpy()), lengths))
        adam.zero_grad()
        task.loss(states @ V.T + b_o, part).backward()
        adam.step()
        rate.step()
    return replace(program, readout=replace(program.readout, V=V.detach().numpy(), b_o=b_o.detach().numpy()))
