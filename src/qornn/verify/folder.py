"""An exported folder, compared with what the program in it exports: nothing else of it is compiled."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, Final

from qornn import __version__
from qornn.errors import SettingsError
from qornn.export.c99 import flat as former
from qornn.export.c99 import folder as layout
from qornn.export.c99 import names as c_names
from qornn.export.c99.facts import plain
from qornn.export.c99.make import FORMAT, STEPS_LIMIT, Made, make
from qornn.export.c99.vectors import Vectors
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import load

MEASURED_LIMIT: Final = 2**14  # characters
RUNTIME_LIMIT: Final = 2**16
FILE_LIMIT: Final = 2**28  # no compiler takes a larger source
STRANGERS: Final = 10  # files that nobody exported: so many are named
MEASURED: Final = re.compile(r"^(<!-- measured by [^\n]*-->\n).*?^(<!-- /measured -->\n)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Export:
    """One model: the files that its program exports, and how those in the folder differ from them."""

    folder: Path
    name: str
    program: IntegerProgram
    files: dict[str, bytes]  # by their paths in the folder
    flat: bool  # the former layout: all files in one folder
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
        sources = {name: data for name, data in self.files.items() if name.endswith((".c", ".h"))}
        for name, data in sources.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
        return [place / name for name in sources if name.endswith(".c")]

    def headers(self, folder: Path) -> Path:
        """Where NAME.h lies once the sources were put there."""
        return folder / "sources" if self.flat else folder / "sources" / "src"

    @property
    def way_out(self) -> str:
        """What exports the program anew, as a command."""
        return _again(self.folder, self.name)

    @property
    def main(self) -> str:
        """The path of the replay among the files."""
        return layout.FLAT_MAIN if self.flat else layout.MAIN

    @property
    def in_double(self) -> bool:
        """Whether NAME_quantize calculates in double, which brings some kilobytes of library."""
        return self.program.input.in_double


def find(folder: str | Path) -> Export:
    """The export in a folder: its program, exported once more with the options that its files state."""
    folder = Path(folder)
    if not folder.is_dir():
        raise SettingsError(f"no folder at {folder}; `qornn export FILE --to c -o {folder} --name NAME` writes one")
    name, flat = _name(folder)
    path = folder / f"{name}.qornn"
    if not path.is_file():
        raise SettingsError(
            f"{folder} has no {name}.qornn, the program that its C is compared with; "
            f"export again: `qornn export FILE --to c -o {folder} --name {name}`"
        )
    header, _, vectors = (_text(folder / file) for file in layout.sources(name, flat=flat))
    _check_version(folder, name, header, vectors, flat=flat)
    program = load(path)
    made = make(program, name=name, flat=flat, **_options(name, header, vectors))
    runtime, unknown = _flat_runtime(folder, made) if flat else ({}, [])
    strangers = [] if flat else _strangers(folder, made)
    same = _same_code if flat else _same  # words of comments have changed since then
    differing = [file for file in made.files if not same(folder / file, made.files[file])]
    return Export(
        folder=folder,
        name=name,
        program=program,
        files=made.files | runtime,
        flat=flat,
        differing=[file for file in differing if not is_free(file)] + unknown,
        notes=[f"{file} is not as exported; it was not used" for file in differing if is_free(file)] + strangers,
        data_bytes=made.data_bytes,
        vectors_bytes=made.vectors_bytes,
        ram_bytes=made.ram_bytes,
        vectors=made.vectors,
        words=made.words,
    )


def is_free(file: str) -> bool:
    """Whether it may be edited: that changes neither the model nor its test."""
    path = PurePosixPath(file)
    return path.suffix not in (".c", ".h") or path.name in (PurePosixPath(layout.MAIN).name, layout.FLAT_MAIN)


def _flat_runtime(folder: Path, made: Made) -> tuple[dict[str, bytes], list[str]]:
    """The runtime of the former layout: its files are known by their digests. And those that are not as they were."""
    known: dict[str, str] = json.loads((files("qornn.verify") / "flat_runtime.json").read_text(encoding="utf-8"))
    found: dict[str, bytes] = {}
    unknown: list[str] = []
    waiting = [name for name in known if name.endswith(".c")] + _includes(made.files[f"{made.words['name']}.c"])
    while waiting:
        name = waiting.pop()
        if name in found or name in unknown or name == f"{made.words['name']}.h":
            continue
        data = _text(folder / name, RUNTIME_LIMIT).encode()
        if hashlib.sha256(data).hexdigest() == known.get(name):
            found[name] = data
            waiting += _includes(data)
        else:
            unknown.append(name)
    return found, sorted(unknown)


def _strangers(folder: Path, made: Made) -> list[str]:
    """Notes on files in src that nobody exported: build systems compile whatever they find there."""
    found = []
    for place, _, names in os.walk(folder / "src"):
        found += [(Path(place) / name).relative_to(folder).as_posix() for name in names]
    strange = sorted(set(found) - made.files.keys())
    more = [f"so are {len(strange) - STRANGERS} more files in src"] if len(strange) > STRANGERS else []
    note = "is not part of the export, but Arduino compiles what lies in src; it was not used"
    return [f"{plain(file)} {note}" for file in strange[:STRANGERS]] + more


def _includes(text: bytes) -> list[str]:
    return re.findall(r'^#include "(\w+\.h)"', text.decode(), re.MULTILINE)


def _name(folder: Path) -> tuple[str, bool]:
    names, flat = layout.held(folder)
    if len(names) != 1:
        found = f"{len(names)} of them" if names else "none"
        raise SettingsError(
            f"{folder} should hold one test/NAME_vectors.h, as `qornn export --to c` writes it; found {found}"
        )
    return c_names.check(names[0]), flat


def _check_version(folder: Path, name: str, header: str, vectors: str, *, flat: bool) -> None:
    """Folders of other versions have other files; a folder without any statement is compared, and differs.

    Of a flat folder the code alone is compared, which its format decides.
    """
    version = re.match(r"/\* \w+: made by qornn ([\w.+-]{1,40})$", header, re.MULTILINE)
    number = re.search(rf"^#define {name}_FORMAT (\d{{1,6}})$", vectors, re.MULTILINE)
    stated = int(number[1]) if number else 1
    known = stated == former.FORMAT if flat else stated == FORMAT and version is not None and version[1] == __version__
    if version and vectors and not known:
        raise SettingsError(
            f"{folder} was exported by another version of qornn ({version[1]}, format {stated}; this is {__version__}, "
            f"format {FORMAT}, which also verifies format {former.FORMAT}); {_again(folder, name)}"
        )


def _again(folder: Path, name: str) -> str:
    return f"export again: `qornn export {folder / name}.qornn --to c -o {folder} --name {name}`"


def _options(name: str, header: str, vectors: str) -> dict[str, Any]:
    """As the files state them; where they do not, the defaults, from which such files differ."""
    command = re.match(r"[^\n]*\n\n {7}([^\n]*)\n", header)
    steps = re.search(rf"^#define {name}_STEPS (\d{{1,6}})$", vectors, re.MULTILINE)
    number = int(steps[1]) if steps else 0
    # At least two hashes per step: who states more steps than there is text cannot make us simulate them.
    believed = 1 <= number <= min(STEPS_LIMIT, len(vectors))
    return {
        "command": command[1] if command else "",
        "vector_steps": number if believed else 1,
    }


def _same(path: Path, want: bytes) -> bool:
    """Line ends aside, which version control may have changed, and what `verify` wrote into the README."""
    text = _text(path, 2 * len(want) + MEASURED_LIMIT)
    return text == want.decode() or (path.name == "README.md" and _unmeasured(text) == _unmeasured(want.decode()))


def _same_code(path: Path, want: bytes) -> bool:
    """Comments and space aside."""
    return _code(_text(path, 2 * len(want) + MEASURED_LIMIT)) == _code(want.decode())


def _code(text: str) -> list[str]:
    """Its words; of the preprocessor whole lines, which end where their words do."""
    lines = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).splitlines()
    return [word for line in lines for word in ([line.strip()] if line.lstrip().startswith("#") else line.split())]


def _unmeasured(text: str) -> str:
    return MEASURED.sub(r"\1\2", text)


def _text(path: Path, limit: int = FILE_LIMIT) -> str:
    """Of a regular file, or nothing: a pipe would never end."""
    try:
        if not path.is_file() or path.stat().st_size > limit:
            return ""
        return path.read_bytes().decode("utf-8", errors="replace").replace("\r\n", "\n")
    except OSError:
        return ""
