"""From an IntegerProgram to files that run elsewhere.

`export.c(program, "out/", name="pm5")` writes a folder, `export.onnx(program, "pm5.onnx")` a file, and
`export.web(program, "page/", name="pm5")` a folder with a page for browsers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qornn.integer.program import IntegerProgram


def c(program: IntegerProgram, out: str | Path, *, name: str, **options: Any) -> Path:
    """Write a program as a folder of C99: weights, runtime, example, test vectors, README and Makefile.

    - `program`: the network in integers, from `lower` or `load`.
    - `out`: the folder to write.
    - `name`: prefix of every C symbol and file name.
    - `options`: these keywords:
        - `layout` ("packed"): how weights are stored. "packed", side by side without unused bits, is the only choice.
        - `vector_steps` (64): steps of each sequence in the test vectors.
        - `command` (None): the command that the files name as their origin. None means this call.

    Returns the folder. `qornn.verify.verify(folder)` compiles it and replays the test vectors.
    """
    from qornn.export.c99.make import c

    return c(program, out, name=name, **options)


def onnx(program: IntegerProgram, out: str | Path, **options: Any) -> Any:
    """Write a program as one ONNX file, for onnxruntime. `onnx_scan/scan.py` describes inputs and outputs of the graph.

    - `program`: the network in integers, from `lower` or `load`.
    - `out`: the file to write.
    - `options`: these keywords:
        - `name` (None): name of the graph. None means "qornn", or "qornn_step" for a single step.
        - `single_step` (False): a graph of one step, for streams, in place of one for whole sequences.
        - `command` (None): the command that the file names as its origin. None means this call.
    """
    from qornn.export.onnx_scan.scan import onnx

    return onnx(program, out, **options)


def web(program: IntegerProgram, out: str | Path, *, name: str, **options: Any) -> Path:
    """Write a program as a folder with a page, index.html, that runs the exported C in a browser as WebAssembly.

    The page needs no server and loads nothing from elsewhere. It replays the test vectors when it opens.

    - `program`: the network in integers, from `lower` or `load`.
    - `out`: the folder to write.
    - `name`: title of the page and prefix of every C symbol.
    - `options`: these keywords:
        - `vector_steps` (64): steps of each sequence in the test vectors.
        - `command` (None): the command that the page names as its origin. None means this call.

    Returns the folder. Compiling takes zig, which `pip install 'qornn[mcu]'` brings.
    """
    from qornn.export.web_page.page import web

    return web(program, out, name=name, **options)


TARGETS: dict[str, Callable[..., Any]] = {"c": c, "onnx": onnx, "web": web}
