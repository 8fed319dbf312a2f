"""Where a training begins, if not at random weights: at those of a finished run, or of an integer program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from qornn._io.foreign import is_there
from qornn.errors import SettingsError, shown
from qornn.integer.storage import load as load_program
from qornn.train import checkpoint as checkpoints
from qornn.train.build import hold_inputs
from qornn.train.loop import Trainer

MODEL_FILE = "model.safetensors"  # of a run folder


def take_start_weights(trainer: Trainer) -> None:
    """Give the model the weights that `train.start` names; its bits, scales and map may be others."""
    if not trainer.settings.start:
        return
    path = Path(trainer.settings.start)
    weights, file = _of_program(path) if path.is_file() else _of_run(path)
    checkpoints.load_into(trainer.model, weights, file)
    hold_inputs(trainer.model, trainer.task)  # its inputs may have had other bits


def _of_run(folder: Path) -> tuple[dict[str, Tensor], Path]:
    file = folder / MODEL_FILE
    if not is_there(file):
        where = shown(str(file), length=500)[1:-1]
        raise SettingsError(
            f"train.start must be a finished run or a program file, but there is no {where}; leave it out, or finish it"
        )
    return checkpoints.load_tensors(file)[0], file


def _of_program(file: Path) -> tuple[dict[str, Tensor], Path]:
    """W_q, U_q and V: what is left of the weights once they are integers."""
    program = load_program(file)
    single = len(program.layers) == 1
    found: dict[str, np.ndarray] = {}
    for i, layer in enumerate(program.layers):
        found |= {f"{'recurrence' if single else f'layers.{i}'}.{name}": w for name, w in layer.floats().items()}
    found |= program.readout.floats()
    return {name: torch.tensor(w, dtype=torch.float32) for name, w in found.items()}, file
