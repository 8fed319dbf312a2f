"""Writing the folder: whole, by one process at a time, and never over files that are not ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Final

from qornn._io.files import make_folders, remove_folders, reporting, write_together
from qornn._io.folders import alone, is_free, left_by
from qornn.errors import ProgramError, SettingsError
from qornn.integer.storage import load

MARKER: Final = "made by qornn"
MAIN: Final = "test/test_main.c"  # replays the vectors
FLAT_MAIN: Final = "example_main.c"  # the same of the former layout, with all files in one folder
VECTORS: Final = "_vectors.h"
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
    inner = sorted({str(parent) for file in contents for parent in PurePosixPath(file).parents} - {"."})
    within = [place for place in inner if not _leads_out(out, place)]
    with alone(out, _doing(name), within=within) as left:
        _check(out, name, left)  # nobody else came first
        made: list[Path] = []
        try:
            with reporting(out):
                for old in _flat_files(out, name) - contents.keys():
                    (out / old).unlink(missing_ok=True)
                for place in inner:  # a link there may lead out of a folder that somebody else packed
                    if (out / place).is_symlink():
                        (out / place).unlink()
                    made += make_folders(out / place)
            write_together(out, contents)
        finally:
            remove_folders(made[::-1])  # those that stayed empty


def _leads_out(out: Path, place: str) -> bool:
    return any((out / parent).is_symlink() for parent in (PurePosixPath(place), *PurePosixPath(place).parents))


def held(out: Path) -> tuple[list[str], bool]:
    """The names of the models in a folder, and whether it has the former layout: the one place that tells."""
    names = sorted(path.name.removesuffix(VECTORS) for path in (out / "test").glob(f"*{VECTORS}"))
    if names:
        return names, False
    return sorted(path.name.removesuffix(VECTORS) for path in out.glob(f"*{VECTORS}")), True


def sources(name: str, *, flat: bool) -> tuple[str, str, str]:
    """Header, network and vectors of a model in a folder."""
    if flat:
        return f"{name}.h", f"{name}.c", f"{name}{VECTORS}"
    return f"src/{name}.h", f"src/{name}/{name}.c", f"test/{name}{VECTORS}"


def _doing(name: str) -> str:
    return f"export {name}"


def _check(out: Path, name: str, left: str | None) -> None:
    if is_free(out) or left == _doing(name):
        return
    models, flat = held(out)
    if not any(_is_export(out, model, flat=flat) for model in models):
        raise SettingsError(f"{out} exists and is no C export of qornn; choose another folder, or empty it")
    if name not in models:
        raise SettingsError(
            f"{out} holds another model ({', '.join(models)}); give each its own folder, or delete this one"
        )


def _is_export(out: Path, name: str, *, flat: bool) -> bool:
    """Whether it was made by an export: its texts begin as ours do, and its program can be read."""
    try:
        readme = out / "README.md"
        if readme.exists() and not _README.search(_text(readme)):
            return False
        if not all(_COMMENT.match(_text(out / file)) for file in sources(name, flat=flat)):
            return False
        load(out / f"{name}.qornn")
    except (OSError, ProgramError):
        return False
    return True


def _flat_files(out: Path, name: str) -> set[str]:
    """What an export of the former layout left here: the runtime as its Makefile lists it, and the model."""
    try:
        text = _text(out / "Makefile")
    except OSError:
        return set()
    listed = re.search(r"^RUNTIME := (.*)$", text, re.MULTILINE)
    if listed is None:
        return set()
    return {*re.findall(r"(?<!\S)qornn\w*\.[ch](?!\S)", listed[1]), *sources(name, flat=True), FLAT_MAIN}


def _text(path: Path) -> str:
    """How a file begins: what tells whose it is stands there, however large it is."""
    if not path.is_file():  # a pipe would never end
        raise FileNotFoundError(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(HEAD)


def fill(template: str, words: Mapping[str, object]) -> str:
    """A template with its @words@ put in."""
    text = (files("qornn.export.c99") / "templates" / template).read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda match: str(words[match[1]]), text)
