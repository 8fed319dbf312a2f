"""From an IntegerProgram to files that run elsewhere.

`export.c(program, "out/", name="pm5")` writes a folder, `export.onnx(program, "pm5.onnx")` a file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qornn.integer.program import IntegerProgram


def c(program: IntegerProgram, out: str | Path, *, name: str, **options: Any) -> Path:
    """A folder of C99: weights, runtime, example and test vectors (c99/make.py says which options there are)."""
    from qornn.export.c99.make import c

    return c(program, out, name=name, **options)


def onnx(program: IntegerProgram, out: str | Path, **options: Any) -> Any:
    """One ONNX file (onnx_scan/scan.py says which options there are)."""
    from qornn.export.onnx_scan.scan import onnx

    return onnx(program, out, **options)


TARGETS: dict[str, Callable[..., Any]] = {"c": c, "onnx": onnx}
