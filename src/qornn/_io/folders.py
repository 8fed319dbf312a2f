"""Folders that are written: by one process at a time, and never over other files."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from qornn._io import flock
from qornn._io.files import clean, is_temporary, make_folders, remove_folders, reporting
from qornn.errors import SettingsError

LOCK = ".qornn.lock"  # inside the folder: what lies around it may not be ours to write
_held: dict[str, tuple[int, int]] = {}  # real path -> the process and thread that are in there


@contextmanager
def alone(folder: Path, what: str, *, within: Sequence[str] = ()) -> Iterator[str | None]:
    """Keep every other process out; the lock goes with its process, however that ends.

    The folder is made where there is none, and taken away again if it stays empty. What killed processes left
    half-written in it, and in its subfolders `within`, is removed. Yields what such a process was doing there.
    """
    with reporting(folder):
        real = os.path.realpath(folder)
    me = os.getpid(), threading.get_ident()
    if _held.get(real) == me:
        yield None
        return
    path = Path(real, LOCK)
    with reporting(folder):
        made = make_folders(path.parent)
    try:
        with reporting(folder):
            handle = _take(path, folder)
        _held[real] = me
        try:
            left = left_by(folder)
            with reporting(folder):
                _say(handle, f"{me[0]} {what}\n")
            for place in ("", *within):
                clean(path.parent / place)
            yield left
        finally:
            del _held[real]
            _give_back(path, handle)
    finally:
        remove_folders(made)


def left_by(folder: Path) -> str | None:
    """What a process does in the folder, or did when it was killed."""
    try:
        path = folder / LOCK
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return None
    return text.partition(" ")[2].strip() or None


def is_free(out: Path) -> bool:
    """Whether the folder is new, or empty except for leftovers of a killed process. Refuse what is not a folder."""
    with reporting(out):
        real = Path(os.path.realpath(out))
    nearest = next(path for path in (real, *real.parents) if path.exists())
    if not nearest.is_dir():
        name = out if nearest == real else nearest
        raise SettingsError(f"could not write {out}: {name} is a file, not a folder; choose another folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise SettingsError(f"{out} cannot be written: {nearest} is not writable; choose another place")
    return nearest != real or not held_in(real)


def held_in(folder: Path) -> set[str]:
    """Names in the folder, but for our lock and temporary files."""
    with reporting(folder):
        return {path.name for path in folder.iterdir() if path.name != LOCK and not is_temporary(path)}


def _take(path: Path, folder: Path) -> int:
    """The lock's open file."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    while True:
        handle = os.open(path, flags, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise SettingsError(f"{path} is not a regular file, so {folder} cannot be locked; delete it")
            if flock.take(handle) is False:
                owner = os.read(handle, 20).split(b" ")[0].decode("ascii", "replace") or "unknown"
                raise SettingsError(
                    f"{folder} is being written by another process ({owner}); wait for it, stop it, "
                    "or choose another folder"
                )
            if _is_still(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its owner finished and removed it between our opening and our locking


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _say(handle: int, text: str) -> None:
    os.ftruncate(handle, 0)
    os.write(handle, text.encode())


def _give_back(path: Path, handle: int) -> None:
    """Remove the file while nobody else can lock it; Windows removes no open file."""
    if os.name == "nt":
        os.close(handle)
    with suppress(OSError):
        path.unlink()
    if os.name != "nt":
        os.close(handle)
