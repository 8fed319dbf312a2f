"""What `verify` measures of a compiled model, written into the README of its folder: one row per target."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qornn._io.files import write_atomically
from qornn.errors import WriteError
from qornn.verify.folder import MEASURED, MEASURED_LIMIT, Export
from qornn.verify.targets import TARGETS

if TYPE_CHECKING:
    from qornn.verify.replay import Result

HEAD: Final = ("target", "compiler", "code", "constants", "RAM", "stack", "instructions per step", "cycles per step")


def keep(out: Path, export: Export, result: Result) -> None:
    """The row of this target beside those that are there; a README without the place for it, or closed, stays."""
    path = out / "README.md"
    if result.flash_bytes is None or result.exact is not True:
        return
    with suppress(OSError, WriteError, UnicodeDecodeError):
        if not path.is_file() or path.is_symlink() or path.stat().st_size > 2 * MEASURED_LIMIT:
            return
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
        if not (found := MEASURED.search(text)):
            return
        rows = _rows(found[0]) | {result.target: _row(export, result)}
        ordered = [rows[target] for target in TARGETS if target in rows]
        table = ["Bytes, measured on the compiled C:", "", _line(HEAD), _line(["---"] * len(HEAD)), *ordered]
        new = MEASURED.sub(lambda part: part[1] + "\n".join(table) + "\n" + part[2], text, count=1)
        if new != text:
            write_atomically(path, new, own=True)


def _rows(section: str) -> dict[str, str]:
    cells = rf" [\w .+-]{{1,80}} \|(?: [\d,]* \|){{{len(HEAD) - 2}}}"
    return {row[1]: row[0] for row in re.finditer(rf"^\| ([\w-]{{1,40}}) \|{cells}$", section, re.MULTILINE)}


def _row(export: Export, result: Result) -> str:
    assert result.flash_bytes is not None
    figures = [
        result.flash_bytes - export.data_bytes,
        export.data_bytes,
        result.ram_bytes,
        result.stack_bytes,
        result.instructions_per_step,
        result.cycles_per_step,
    ]
    return _line([result.target, result.compiler, *("" if figure is None else f"{figure:,}" for figure in figures)])


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
