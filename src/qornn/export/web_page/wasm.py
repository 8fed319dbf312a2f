"""The exported C as WebAssembly, compiled by zig."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from qornn._io.compiling import compile_there
from qornn._io.zig import zig
from qornn.errors import QornnError
from qornn.export.c99 import folder
from qornn.export.c99.make import Made
from qornn.export.web_page.templates import fill
from qornn.integer.program import IntegerProgram

# Sums of floats keep their order and are never fused. Memory is copied by instructions, since there is no library.
OPTIONS: Final = ("-target", "wasm32-freestanding", "-mcpu=generic+bulk_memory", "-std=c99", "-O2", "-ffp-contract=off")
LINK: Final = ("-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all")


class WebError(QornnError):
    """A page that could not be made."""


def compiler() -> list[str]:
    """zig as a C compiler; where it is missing the error says how to install it."""
    path = zig()
    if path is None:
        raise WebError("a web page needs the zig compiler; `pip install 'qornn[mcu]'` brings ziglang")
    return [path, "cc"]


def wasm(program: IntegerProgram, made: Made) -> bytes:
    """The module with the network, its test vectors and what templates/wasm.c exports."""
    words = dict(made.words)
    words["count"] = f"read_at({words['name']}_N_READ - 1u)" if program.readout.pooled else "1"
    words["floats"] = fill("floats.c", words) if program.input.takes_floats else ""
    with tempfile.TemporaryDirectory(prefix="qornn-web-") as scratch:
        root = Path(scratch)
        for file, data in made.files.items():
            if file.endswith((".c", ".h")):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_bytes(data)
        glue = Path(folder.MAIN).with_name("page_wasm.c").as_posix()
        (root / glue).write_text(fill("wasm.c", words), encoding="utf-8")
        sources = sorted(file for file in made.files if file.startswith("src/") and file.endswith(".c"))
        command = [*compiler(), *OPTIONS, *LINK, glue, *sources, "-o", "network.wasm"]
        compile_there(command, root, "the web page", WebError)
        return (root / "network.wasm").read_bytes()
