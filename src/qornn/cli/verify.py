"""qornn verify OUT: exported C compiled and replayed, bit for bit or exit 1."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from qornn.cli.options import Json
from qornn.cli.output import print_json, print_table, print_targets


def run(
    out: Annotated[
        Path | None, typer.Argument(help="A folder written by `qornn export --to c`. Default: list the targets.")
    ] = None,
    target: Annotated[str, typer.Option(help="host, cortex-m0, cortex-m4, cortex-m55, rv32 or atmega328p.")] = "host",
    json: Json = False,
) -> None:
    """Check an exported folder, replay its test vectors, and exit with 1 at the first bit that differs.

    The C is generated again from NAME.qornn in the folder and compared with the C there. A source, header or vector
    file that differs is an error. What is compiled and run is the generated C and a test program of qornn itself,
    never the folder's own example or Makefile. On an emulated device nothing compiled runs on this machine; the
    output also lists instructions per step, flash, RAM and stack, and on the atmega328p cycles per step. Code and stack
    are also written into the folder's README.md.

    Without a folder: all targets, what is missing on this machine to run them, and the command that installs it.

    Example: qornn verify pm5_c --target cortex-m4
    """
    from qornn.verify import verify

    if out is None:
        _list_targets(json)
        return
    result = verify(out, target)
    figures = result.figures()
    if json:
        print_json(figures)
    else:
        shown = {key: value for key, value in figures.items() if value not in (None, [], "")}
        shown["difference"] = None if result.difference is None else str(result.difference)
        rows = ((key, "; ".join(value) if isinstance(value, list) else value) for key, value in shown.items())
        print_table(f"{out} on {target}", ["", ""], rows)
    if result.exact is False:
        typer.echo(f"error: {out} differs on {target}: {result.difference}", err=True)
        raise typer.Exit(1)


def _list_targets(json: bool) -> None:
    from qornn.verify import needs

    rows = [{**asdict(need), "ready": need.ready} for need in needs()]
    if json:
        print_json({"targets": rows})
        return
    print_targets(rows)
