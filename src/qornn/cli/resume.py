"""qornn resume DIR: continue a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qornn.cli.options import DataDir, Json, data_settings
from qornn.cli.train import finish


def run(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda or mps. Default: the device it was trained on.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Continue a run from its newest checkpoint. The final weights equal those of an uninterrupted run.

    Example: qornn resume runs/copy-bjorck-k6-s0
    """
    from qornn.recipe import read_run
    from qornn.train import resume

    settings = data_settings(data_dir, read_run(folder).task["name"])
    finish(lambda: resume(folder, device=device, settings=settings), json)
