"""qornn verify OUT: exported C compiled and replayed, bit for bit or exit 1."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qornn.cli.options import Json
from qornn.cli.output import print_json, print_table


def run(
    out: Annotated[Path, typer.Argument(help="A folder written by `qornn export --to c`.")],
    target: Annotated[str, typer.Option(help="host, cortex-m0, cortex-m4, cortex-m55, rv32 or atmega328p.")] = "host",
    json: Json = False,
) -> None:
    """Check an exported folder, replay its test vectors, and exit with 1 at the first bit that differs.

    The C is generated again from NAME.qornn in the folder and compared with the C there. A source, header or vector
    file that differs is an error. What is compiled and run is the generated C and a test program of qornn itself,
    never the folder's own example or Makefile. On an emulated device nothing compiled runs on this machine; the
    output also lists instructions per step, flash, RAM and stack, and on the atmega328p cycles per step.

    Example: qornn verify pm5_c --target cortex-m4
    """
    from qornn.verify import verify

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
