"""qornn.load: a run folder gives a run; a file, a folder of `qornn fit` or a name of the zoo an IntegerProgram."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qornn import zoo
from qornn.errors import CheckpointError

if TYPE_CHECKING:
    from qornn.integer.program import IntegerProgram
    from qornn.train import Run

FITTED = "model.qornn"  # the program in a folder of `qornn fit`


def load(what: str | Path) -> Run | IntegerProgram:
    """Open a trained network: `qornn.load("runs/pm5")`, `qornn.load("pm5.qornn")` or `qornn.load("zoo:digits-k4")`."""
    path = locate(what)
    if path.is_dir():
        from qornn.train.run import load as load_run

        return load_run(path)
    if not path.exists():
        raise CheckpointError(f"there is no run folder and no program file at {path}")
    from qornn.integer.storage import load as load_program

    return load_program(path)


def locate(what: str | Path) -> Path:
    """The path of a file, a folder or a name of the zoo; of a folder of `qornn fit`, its program."""
    if str(what).startswith(zoo.PREFIX):
        return zoo.file(str(what).removeprefix(zoo.PREFIX))
    path = Path(what)
    return path / FITTED if (path / FITTED).is_file() and not (path / "recipe.toml").exists() else path


def load_program(what: str | Path) -> IntegerProgram:
    """The same, for callers that need a program."""
    from qornn.integer.program import IntegerProgram

    found = load(what)
    if not isinstance(found, IntegerProgram):
        raise CheckpointError(f"{what} is a run, not a program; `qornn lower {what} -o FILE.qornn` makes one")
    return found
