"""An exported folder, as verify finds it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from qornn.errors import ProgramError, SettingsError
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import load


@dataclass(frozen=True, kw_only=True)
class Export:
    """One model: its sources, and the sizes its headers state."""

    folder: Path
    name: str
    data_bytes: int
    vectors_bytes: int
    ram_bytes: int

    @property
    def sources(self) -> list[Path]:
        """What to compile: the model, the example and the runtime, whatever else lies there."""
        return [self.folder / name for name in (f"{self.name}.c", "example_main.c", *self._runtime())]

    @property
    def in_double(self) -> bool:
        """Whether NAME_quantize calculates in double, which brings some kilobytes of library."""
        return f" {self.name}_gain[" in _text(self.folder / f"{self.name}.c")

    def _runtime(self) -> list[str]:
        """As the Makefile lists it, or whatever is called so where somebody took that away."""
        there = sorted(path.name for path in self.folder.glob("qornn*.c"))
        makefile = self.folder / "Makefile"
        listed = re.search(r"^RUNTIME := (.*)$", _text(makefile), re.MULTILINE) if makefile.is_file() else None
        return there if listed is None else [name for name in there if name in listed[1].split()]

    def program(self) -> IntegerProgram | None:
        """The program it was made from, if it is still there and whole."""
        try:
            return load(self.folder / f"{self.name}.qornn")
        except ProgramError:
            return None


def find(folder: str | Path) -> Export:
    """The export in a folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise SettingsError(f"no folder at {folder}; `qornn export FILE --to c -o {folder} --name NAME` writes one")
    names = sorted(path.name.removesuffix("_vectors.h") for path in folder.glob("*_vectors.h"))
    if len(names) != 1:
        found = f"{len(names)} of them" if names else "none"
        raise SettingsError(
            f"{folder} should hold one NAME_vectors.h, as `qornn export --to c` writes it; found {found}"
        )
    name = names[0]
    for needed in (f"{name}.c", f"{name}.h", "example_main.c", "qornn.h"):
        if not (folder / needed).is_file():
            raise SettingsError(f"{folder} has no {needed}; export again")
    header = _text(folder / f"{name}.h") + _text(folder / f"{name}_vectors.h")
    numbers = {key: int(value) for key, value in re.findall(rf"^#define {name}_(\w+) (\d+)", header, re.MULTILINE)}
    try:
        return Export(
            folder=folder.absolute(),
            name=name,
            data_bytes=numbers["DATA_BYTES"],
            vectors_bytes=numbers["VECTORS_BYTES"],
            ram_bytes=numbers["RAM_BYTES"],
        )
    except KeyError as missing:
        raise SettingsError(f"{name}.h does not state {missing}; export again") from missing


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
