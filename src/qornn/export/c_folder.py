"""Writing the folder: complete or not at all, and never over files that are not ours."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Final

from qornn.errors import SettingsError, WriteError

MARKER: Final = "made by qornn"


def check(out: Path, name: str) -> None:
    """Refuse a place that holds something else."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir():
        raise SettingsError(f"{out} is a file; a C export is a folder: choose another place")
    if not any(out.iterdir()):
        return
    try:
        ours = MARKER in (out / "README.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        ours = False
    if not ours:
        raise SettingsError(f"{out} exists and is no C export of qornn; choose another folder, or empty it")
    if not (out / f"{name}_vectors.h").exists():
        held = ", ".join(sorted(p.name.removesuffix("_vectors.h") for p in out.glob("*_vectors.h")))
        raise SettingsError(f"{out} holds another model ({held}); give each its own folder, or delete this one")


def write(out: Path, contents: Mapping[str, bytes]) -> None:
    """All files into a folder of their own, then moved: a new folder as a whole, into an existing one file by file.

    In an existing folder (which may be a link, a mount, or where a shell stands) whatever is not ours stays.
    """
    out = out.absolute()
    existing = out.is_dir()
    part = out / f".{os.getpid()}.part" if existing else out.with_name(f".{out.name}.{os.getpid()}.part")
    made = [folder for folder in part.parents if not folder.exists()]  # the innermost first
    try:
        part.mkdir(parents=True)
        for name, data in contents.items():
            (part / name).write_bytes(data)
        if existing:
            stale = _runtime_of(out) - contents.keys()
            for name in contents:
                (part / name).replace(out / name)
            for name in stale:
                (out / name).unlink(missing_ok=True)
            part.rmdir()
        else:
            part.replace(out)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):  # somebody else has put something there meanwhile
            for folder in made:
                folder.rmdir()
        raise WriteError(
            f"could not write {out}: {error.strerror or error}. Nothing half-written is left; "
            "free some space or choose another folder"
        ) from error


def _runtime_of(out: Path) -> set[str]:
    """The runtime's files in an older export, as its Makefile lists them."""
    try:
        text = (out / "Makefile").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    listed = re.search(r"^RUNTIME := (.*)$", text, re.MULTILINE)
    return set(re.findall(r"(?<!\S)qornn\w*\.[ch](?!\S)", listed[1])) if listed else set()


def runtime() -> dict[str, bytes]:
    """The runtime's files for devices, unmodified: its .c files but the host's, and what they include."""
    source = files("qornn") / "runtime"
    left = [item.name for item in source.iterdir() if re.fullmatch(r"qornn(?!_host)\w*\.c", item.name)]
    left.append("qornn_step.h")  # which NAME.c includes
    found: dict[str, bytes] = {}
    while left:
        name = left.pop()
        if name not in found:
            found[name] = (source / name).read_bytes()
            left += re.findall(r'^#include "(\w+\.h)"', found[name].decode(), re.MULTILINE)
    return dict(sorted(found.items()))


def fill(template: str, words: Mapping[str, object]) -> str:
    """A template with its @words@ put in."""
    text = (files("qornn.export") / "templates" / template).read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda match: str(words[match[1]]), text)
