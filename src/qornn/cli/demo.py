"""qornn demo: the whole way from data to a device, on data that comes along."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qornn.cli.options import Json, Set
from qornn.cli.output import print_files, print_json

if TYPE_CHECKING:
    from qornn.demo.run import Demo


def run(
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write.")] = Path("demo"),
    set: Set = None,
    json: Json = False,
) -> None:
    """Train on digits, convert to integers, export and verify C, and write a picture and a web page.

    The data comes with scikit-learn, so nothing is downloaded. Three networks are trained, which takes about a minute.
    The C is also replayed on an emulated Cortex-M4, and the web page is written, if `pip install 'qornn[mcu]'` was run.

    OUT holds demo.png, web/, c/, the networks as digits.qornn and digits-layer.qornn, and one folder per training.

    Example: qornn demo --out demo
    """
    from qornn.demo.run import demo
    from qornn.train import Interrupted

    try:
        found = demo(out, settings=set or (), say=lambda text: print(text, file=sys.stderr, flush=True))
    except (KeyboardInterrupt, Interrupted):
        typer.echo(f"stopped; finished parts are in {out}, and the same command starts again", err=True)
        raise typer.Exit(130) from None
    if json:
        print_json(found.figures())
    else:
        _show(found)


def _show(found: Demo) -> None:
    from qornn.demo.run import table, verdict

    print(f"\n{table(found.rows)}\n")
    if told := verdict(found.devices):
        print(f"{told}\n")
    for note in found.notes:
        print(f"note: {note}")
    print_files(found.files)
    print(f"\nNext: open {found.files.get('web page', found.files['picture'])}")
    print("Your own recordings: qornn fit --help")
