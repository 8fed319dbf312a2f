"""The exported C as WebAssembly, compiled by zig."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from qornn._io.zig import zig
from qornn.errors import QornnError
from qornn.export.c99 import folder
from qornn.export.c99.make import Made
from qornn.export.web_page.templates import fill
from qornn.integer.program import IntegerProgram

# Sums of floats keep their order and are never fused. Memory is copied by instructions, since there is no library.
OPTIONS: Final = ("-target", "wasm32-freestanding", "-mcpu=generic+bulk_memory", "-std=c99", "-O2", "-ffp-contract=off")
LINK: Final = ("-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all")
TIMEOUT: Final = 600  # seconds


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
        _run([*compiler(), *OPTIONS, *LINK, glue, *sources, "-o", "network.wasm"], root)
        return (root / "network.wasm").read_bytes()


def _run(command: list[str], root: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WebError(f"the compiler for the web page did not run: {error}") from error
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise WebError("the C does not compile to WebAssembly:\n" + "\n".join(words[:20]))
