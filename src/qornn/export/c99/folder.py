"""Writing the folder: whole, by one process at a time, and never over files that are not ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from qornn._io.files import reporting, write_together
from qornn._io.folders import alone, is_free, left_by
from qornn.errors import ProgramError, SettingsError
from qornn.integer.engine.structs import FOLDERS
from qornn.integer.storage import load

MARKER: Final = "made by qornn"
NEEDED: Final = ("qornn_input.h", "qornn_readout.h")  # by every NAME.c
HEAD: Final = 2**16  # characters
_COMMENT: Final = re.compile(rf"/\*(?:(?!\*/).)*{MARKER} \d", re.DOTALL)  # what a generated text begins with
_README: Final = re.compile(rf"^<!-- {MARKER} \d\S*: ", re.MULTILINE)


def check(out: Path, name: str) -> None:
    """Refuse a place that holds something else."""
    _check(out, name, left_by(out))


def write(out: Path, name: str, contents: Mapping[str, bytes]) -> None:
    """All files, or none where one cannot be written; whatever else is in the folder stays.

    A process killed in between leaves its lock, which says what it was doing: the same export may go on there.
    """
    with alone(out, _doing(name)) as left:
        _check(out, name, left)  # nobody else came first
        with reporting(out):
            for old in _runtime_of(out) - contents.keys():
                (out / old).unlink(missing_ok=True)
        write_together(out, contents)


def _doing(name: str) -> str:
    return f"export {name}"


def _check(out: Path, name: str, left: str | None) -> None:
    if is_free(out) or left == _doing(name):
        return
    held = sorted(path.name.removesuffix("_vectors.h") for path in out.glob("*_vectors.h"))
    if not any(_is_export(out, model) for model in held):
        raise SettingsError(f"{out} exists and is no C export of qornn; choose another folder, or empty it")
    if name not in held:
        raise SettingsError(
            f"{out} holds another model ({', '.join(held)}); give each its own folder, or delete this one"
        )


def _is_export(out: Path, name: str) -> bool:
    """Whether it was made by an export: its texts begin as ours do, and its program can be read."""
    try:
        readme = out / "README.md"
        if readme.exists() and not _README.search(_text(readme)):
            return False
        if not all(_COMMENT.match(_text(out / file)) for file in (f"{name}.h", f"{name}.c", f"{name}_vectors.h")):
            return False
        load(out / f"{name}.qornn")
    except (OSError, ProgramError):
        return False
    return True


def _runtime_of(out: Path) -> set[str]:
    """The runtime's files in an older export, as its Makefile lists them."""
    try:
        text = _text(out / "Makefile")
    except OSError:
        return set()
    listed = re.search(r"^RUNTIME := (.*)$", text, re.MULTILINE)
    return set(re.findall(r"(?<!\S)qornn\w*\.[ch](?!\S)", listed[1])) if listed else set()


def _text(path: Path) -> str:
    """How a file begins: what tells whose it is stands there, however large it is."""
    if not path.is_file():  # a pipe would never end
        raise FileNotFoundError(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(HEAD)


def runtime(headers: Iterable[str]) -> dict[str, bytes]:
    """The runtime's files for devices, unmodified: its .c files, and what they and a model of these headers include."""
    left = [item.name for item in FOLDERS[0].iterdir() if re.fullmatch(r"qornn\w*\.c", item.name)]
    left += [*NEEDED, *headers]
    found: dict[str, bytes] = {}
    while left:
        name = left.pop()
        if name not in found:
            found[name] = next(folder / name for folder in FOLDERS if (folder / name).is_file()).read_bytes()
            left += re.findall(r'^#include "(\w+\.h)"', found[name].decode(), re.MULTILINE)
    return dict(sorted(found.items()))


def fill(template: str, words: Mapping[str, object]) -> str:
    """A template with its @words@ put in."""
    text = (files("qornn.export.c99") / "templates" / template).read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda match: str(words[match[1]]), text)
