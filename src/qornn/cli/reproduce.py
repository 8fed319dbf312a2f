"""qornn reproduce NAME: a figure of the paper, drawn from numbers measured here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qornn.cli.options import Json
from qornn.cli.output import print_json
from qornn.errors import unknown

FIGURES = ("instability",)


def run(
    name: Annotated[str, typer.Argument(help="instability: why quantizing an orthogonal recurrence is hard.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the pictures and their numbers.")] = Path("results"),
    seed: Annotated[int, typer.Option(help="Of the random matrices.")] = 0,
    json: Json = False,
) -> None:
    """Draw a figure of the paper and write its numbers as JSON.

    Example: qornn reproduce instability --out results
    """
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    from qornn.reproduce.instability import instability

    figures = instability(out, seed=seed)
    if json:
        print_json(figures)
    else:
        for path in [*sorted(out.glob("*.png")), out / "instability.json"]:
            print(path)
