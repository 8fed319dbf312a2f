"""qornn export FILE --to c|onnx|web -o OUT: files that run elsewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from qornn.cli.options import Json, given_command
from qornn.cli.output import print_json, print_table
from qornn.errors import SettingsError, unknown


def run(
    file: Annotated[
        Path, typer.Argument(help="A program file, a folder of `qornn fit`, or a name like zoo:digits-k4.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="A folder for C and web, a file for ONNX.")],
    to: Annotated[str, typer.Option("--to", help="c, onnx or web.")] = "c",
    name: Annotated[
        str | None, typer.Option(help="C: prefix of every symbol and file. ONNX: name of the graph. Web: title.")
    ] = None,
    layout: Annotated[
        str, typer.Option(help="C: how weights are stored. packed: side by side, without unused bits.")
    ] = "packed",
    vector_steps: Annotated[
        int | None, typer.Option(help="C, web: steps of each sequence in the test vectors.", show_default="64")
    ] = None,
    single_step: Annotated[bool, typer.Option("--single-step", help="ONNX: a model of one step, for streams.")] = False,
    json: Json = False,
) -> None:
    """Write a program as C99 for microcontrollers, as an ONNX model, or as a page for browsers.

    The folder of C99 is a library of Arduino, PlatformIO, ESP-IDF, Zephyr and CMake at once, with test vectors.
    The page runs the same C as WebAssembly: open index.html in its folder.

    Example: qornn export pm5.qornn --to c -o pm5_c --name pm5
    """
    from qornn import export, zoo
    from qornn.zoo.opening import load_program

    if to not in export.TARGETS:
        raise unknown("export", to, export.TARGETS)
    if to == "c" and name is None:
        raise SettingsError("C needs a name for its symbols; add --name, such as --name pm5")
    if to != "onnx" and single_step:
        raise SettingsError("--single-step is for ONNX; exported C always goes one step at a time")
    if to == "onnx" and layout != "packed":
        raise SettingsError("--layout is for C; ONNX holds weights of up to 4 bits as INT4 and wider ones as INT8")
    if to == "onnx" and vector_steps is not None:
        raise SettingsError("--vector-steps is for C; an ONNX file holds no test vectors: leave it out")
    program = load_program(file)
    command = given_command()
    figures: dict[str, Any] = {"to": to, "file": str(file), "out": str(out)}
    if to == "onnx":
        export.onnx(program, out, name=name, single_step=single_step, command=command)
        figures["bytes"] = out.stat().st_size
    else:
        name = name or re.sub(r"\W+", "_", file.name.removeprefix(zoo.PREFIX).removesuffix(".qornn"))
        options: dict[str, Any] = {} if vector_steps is None else {"vector_steps": vector_steps}
        chosen = {"layout": layout} if to == "c" else {}
        files = _writer(to)(program, out, name=name, command=command, **options, **chosen)
        figures |= {"name": name, **chosen, "files": files}
    if json:
        print_json(figures)
        return
    print_table(str(out), ["", ""], ((k, ", ".join(v) if isinstance(v, list) else v) for k, v in figures.items()))
    if to == "c":
        print(f"\nNext: qornn verify {shlex.quote(str(out))} --target cortex-m4")
    if to == "web":
        print(f"\nNext: open {shlex.quote(str(out / 'index.html'))} in a browser")


def _writer(to: str) -> Callable[..., list[str]]:
    """What writes such a folder and says which files: others may lie there."""
    if to == "c":
        from qornn.export.c99.make import write

        return write
    from qornn.export.web_page.page import write as write_page

    return write_page
