"""An exported folder, compared with what the program in it exports: nothing else of it is compiled."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qornn import __version__
from qornn.errors import SettingsError
from qornn.export.c99 import names as c_names
from qornn.export.c99.make import FORMAT, STEPS_LIMIT, make
from qornn.export.c99.vectors import Vectors
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import load

FILE_LIMIT: Final = 2**28  # no compiler takes a larger source
FREE: Final = ("README.md", "Makefile", "example_main.c")  # to be edited: they change neither the model nor its test


@dataclass(frozen=True, kw_only=True)
class Export:
    """One model: the files that its program exports, and how those in the folder differ from them."""

    name: str
    program: IntegerProgram
    files: dict[str, bytes]
    differing: list[str]  # sources, headers and vectors
    notes: list[str]
    data_bytes: int
    vectors_bytes: int
    ram_bytes: int
    vectors: Vectors
    words: dict[str, object]  # that the templates were filled with

    def put(self, folder: Path) -> list[Path]:
        """Write the sources into a folder of their own in there; what to compile: model, replay and runtime."""
        place = folder / "sources"
        place.mkdir()
        sources = {name: data for name, data in self.files.items() if name.endswith((".c", ".h"))}
        for name, data in sources.items():
            (place / name).write_bytes(data)
        return [place / name for name in sources if name.endswith(".c")]

    @property
    def in_double(self) -> bool:
        """Whether NAME_quantize calculates in double, which brings some kilobytes of library."""
        return self.program.input.in_double


def find(folder: str | Path) -> Export:
    """The export in a folder: its program, exported once more with the options that its files state."""
    folder = Path(folder)
    if not folder.is_dir():
        raise SettingsError(f"no folder at {folder}; `qornn export FILE --to c -o {folder} --name NAME` writes one")
    name = _name(folder)
    path = folder / f"{name}.qornn"
    if not path.is_file():
        raise SettingsError(
            f"{folder} has no {name}.qornn, the program that its C is compared with; "
            f"export again: `qornn export FILE --to c -o {folder} --name {name}`"
        )
    header, vectors = (_text(folder / file) for file in (f"{name}.h", f"{name}_vectors.h"))
    _check_version(folder, name, header, vectors)
    program = load(path)
    made = make(program, name=name, **_options(name, header, vectors))
    differing = [file for file in made.files if not _same(folder / file, made.files[file])]
    return Export(
        name=name,
        program=program,
        files=made.files,
        differing=[file for file in differing if file not in FREE],
        notes=[f"{file} is not as exported; it was not used" for file in differing if file in FREE],
        data_bytes=made.data_bytes,
        vectors_bytes=made.vectors_bytes,
        ram_bytes=made.ram_bytes,
        vectors=made.vectors,
        words=made.words,
    )


def _name(folder: Path) -> str:
    names = sorted(path.name.removesuffix("_vectors.h") for path in folder.glob("*_vectors.h"))
    if len(names) != 1:
        found = f"{len(names)} of them" if names else "none"
        raise SettingsError(
            f"{folder} should hold one NAME_vectors.h, as `qornn export --to c` writes it; found {found}"
        )
    return c_names.check(names[0])


def _check_version(folder: Path, name: str, header: str, vectors: str) -> None:
    """Folders of other versions have other files; a folder without any statement is compared, and differs."""
    version = re.match(r"/\* \w+: made by qornn ([\w.+-]{1,40})$", header, re.MULTILINE)
    number = re.search(rf"^#define {name}_FORMAT (\d{{1,6}})$", vectors, re.MULTILINE)
    stated = int(number[1]) if number else 1
    if version and vectors and (version[1] != __version__ or stated != FORMAT):
        raise SettingsError(
            f"{folder} was exported by another version of qornn ({version[1]}, format {stated}; this is {__version__}, "
            f"format {FORMAT}); export again: `qornn export {folder / name}.qornn --to c -o {folder} --name {name}`"
        )


def _options(name: str, header: str, vectors: str) -> dict[str, Any]:
    """As the files state them; where they do not, the defaults, from which such files differ."""
    command = re.match(r"[^\n]*\n\n {7}([^\n]*)\n", header)
    steps = re.search(rf"^#define {name}_STEPS (\d{{1,6}})$", vectors, re.MULTILINE)
    number = int(steps[1]) if steps else 0
    # Two hashes a step at least: who states more steps than there is text cannot make us simulate them.
    believed = 1 <= number <= min(STEPS_LIMIT, len(vectors))
    return {
        "command": command[1] if command else "",
        "vector_steps": number if believed else 1,
    }


def _same(path: Path, want: bytes) -> bool:
    """Line ends aside, which version control may have changed."""
    return _text(path, 2 * len(want)) == want.decode()


def _text(path: Path, limit: int = FILE_LIMIT) -> str:
    """Of a regular file, or nothing: a pipe would never end."""
    try:
        if not path.is_file() or path.stat().st_size > limit:
            return ""
        return path.read_bytes().decode("utf-8", errors="replace").replace("\r\n", "\n")
    except OSError:
        return ""
