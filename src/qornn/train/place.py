"""The folder of a run: new or empty at the start, and written by one process at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from qornn._io.folders import alone, held_in, is_free
from qornn.errors import QornnError, SettingsError
from qornn.recipe import read_run
from qornn.train import checkpoint as checkpoints

CHECKPOINTS = "checkpoint"


def check_new(folder: Path) -> None:
    """Refuse a folder that holds a run, or something else."""
    if is_free(folder):
        return
    if _is_run(folder):
        raise SettingsError(
            f"{folder} already holds a run; continue it with `qornn resume {folder}`, or choose another --out"
        )
    first = min(held_in(folder))
    raise SettingsError(f"{folder} exists and does not hold a run ({first}); choose another --out, or empty it")


def keep(folder: Path | None, *, first: bool = True) -> AbstractContextManager[Any]:
    """Keep other processes out of the run's folder, for those processes of a run that write."""
    if folder is None or not first:
        return nullcontext()
    return alone(folder, "train", within=(CHECKPOINTS,))


def _is_run(folder: Path) -> bool:
    """A recipe that can be read, or a checkpoint: a trainer without a recipe writes no more than that."""
    try:
        read_run(folder)
    except QornnError:
        return bool(checkpoints.files(folder / CHECKPOINTS))
    return True
