"""qornn resume DIR: go on with a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qornn.cli.options import Device, Json
from qornn.cli.train import finish


def run(
    folder: Annotated[Path, typer.Argument(help="A run folder.")], device: Device = "auto", json: Json = False
) -> None:
    """Go on with a run from its newest checkpoint; the final weights are those of a run never interrupted.

    Example: qornn resume runs/copy-bjorck-k6-s0
    """
    from qornn.train import resume

    finish(lambda: resume(folder, device=device), json)
