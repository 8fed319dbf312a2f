"""A program as a static page: draw or drop samples, and watch the integers that a device would calculate."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from typing import Final

from qornn import __version__
from qornn._io.files import write_together
from qornn._io.folders import alone, is_free, left_by
from qornn.errors import SettingsError
from qornn.export.c99 import names
from qornn.export.c99.make import make
from qornn.export.web_page.facts import facts
from qornn.export.web_page.templates import fill, text
from qornn.export.web_page.wasm import compiler, wasm
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import from_bytes, to_bytes

INDEX: Final = "index.html"
MODEL: Final = "model.js"
PARTS: Final = ("network.js", "samples.js", "drawing.js", "canvas.js", "picture.js", "strip.js", "page.js", "page.css")
DOING: Final = "export web"
_OURS: Final = re.compile(r"<!doctype html>\n<!-- made by qornn \d")


def web(
    program: IntegerProgram,
    out: str | Path,
    *,
    name: str,
    vector_steps: int = 64,
    command: str | None = None,
) -> Path:
    """Write a program as a folder with a page. Its index.html needs no server and loads nothing from elsewhere.

    - `program`: the network in integers, from `lower` or `load`.
    - `out`: the folder to write. It may hold such a page, which is replaced; other files in it stay.
    - `name`: title of the page and prefix of every C symbol.
    - `vector_steps` (64): steps of each sequence in the test vectors.
    - `command` (None): the command that the page names as its origin. None is this call.

    Returns the folder.
    """
    write(program, out, name=name, vector_steps=vector_steps, command=command)
    return Path(out)


def write(
    program: IntegerProgram,
    out: str | Path,
    *,
    name: str,
    vector_steps: int = 64,
    command: str | None = None,
) -> list[str]:
    """Write the folder as `web` does; the files that were written."""
    out = Path(out)
    names.check(name)
    compiler()
    _check(out, left_by(out))
    command = command or f"qornn.export.web(program, {out.absolute().name!r}, name={name!r})"
    program = from_bytes(to_bytes(program), out / f"{name}.qornn")  # as whoever has that file would export it again
    made = make(program, name=name, vector_steps=vector_steps, command=command)
    model = {"facts": facts(program, name), "wasm": base64.b64encode(wasm(program, made)).decode()}
    words = {"version": __version__, "command": _comment(command), "name": html.escape(name)}
    contents = {
        INDEX: fill(INDEX, words).encode(),
        MODEL: f"var QORNN_MODEL = {json.dumps(model)};\n".encode(),
        **{file: text(file).encode() for file in PARTS},
    }
    with alone(out, DOING) as left:
        _check(out, left)
        write_together(out, contents)
    return sorted(contents)


def _check(out: Path, left: str | None) -> None:
    """Refuse a folder that holds something else."""
    if is_free(out) or left == DOING:
        return
    try:
        with (out / INDEX).open(encoding="utf-8", errors="replace") as file:
            ours = _OURS.match(file.read(200)) is not None
    except OSError:
        ours = False
    if not ours:
        raise SettingsError(f"{out} exists and is no web export of qornn; choose another folder, or empty it")


def _comment(line: str) -> str:
    """One line that cannot end an HTML comment."""
    return re.sub(r"[^ -~]|--|[<>]", " ", line)[:300]
