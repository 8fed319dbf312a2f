"""qornn report: every record beside the paper, as a page to read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from qornn.cli.options import Json
from qornn.cli.output import print_json


def run(
    results: Annotated[Path, typer.Option("--results", help="Folder of the records.")] = Path("results"),
    out: Annotated[Path, typer.Option("-o", "--out", help="The HTML file; Markdown and pictures go beside it.")] = Path(
        "report.html"
    ),
    json: Json = False,
) -> None:
    """Write a report that compares measured with published figures: tables, learning curves, score against bytes.

    Damaged records are named and left out; cells without a record are shown as not run.

    Example: qornn report --results results -o report.html
    """
    from qornn.reproduce.report import report

    figures = report(results, out)
    for warning in figures["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    if json:
        print_json(figures)
        return
    print(figures["summary"])
    for file in figures["files"]:
        print(file)
