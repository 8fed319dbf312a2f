"""Writing files so that no reader ever sees half a file, even after a full disk or kill -9."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from qornn._io import flock
from qornn.errors import SettingsError, WriteError

TEMPORARY = re.compile(r"\.qornn-\d+-[0-9a-f]{8}-\d+\.part")  # short: a name may be as long as the system allows
LINKS = 40  # Linux follows no more either
_TOKEN = secrets.token_hex(4)  # of this process: numbers of processes come again
_count = itertools.count()


def write_atomically(path: Path, data: bytes | str, *, own: bool = False) -> None:
    """Write beside the target, flush to disk, then rename over it: the old file survives every failure before that.

    Links are followed, modes are kept, and what is no regular file (a pipe, a device) is written to as it is.
    A file of our `own` folders takes its name from whatever has it: a link there may lead out of a folder that
    somebody else packed.
    """
    with reporting(path), replacing(path, own=own) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def write_together(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Several files of a folder of ours: all are written under temporary names before the first takes its own.

    None is waited for until it is on disk: thirty times that is half a second, and together they can be made again.
    """
    with reporting(folder), ExitStack() as stack:
        for name, data in contents.items():
            file = stack.enter_context(replacing(folder / name, sync=False, own=True))
            file.write(data)
            flush(file, sync=False)


def to_json(figures: Any, **options: Any) -> str:
    """JSON in which NaN and infinity, which it lacks, are null."""
    return json.dumps(_finite(figures), allow_nan=False, **options)


@contextmanager
def replacing(path: Path, *, sync: bool = True, own: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, which takes the path's place once the block ends well."""
    target = path if own else end_of_links(path)
    state = state_of(target) if not own or _is_regular(path) else None
    if state is not None and not is_replaceable(target, state):
        with target.open("wb") as through:
            yield through
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary, handle = create(target.parent, 0o666 if state is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if state is not None:
                _make_alike(temporary, state)
            yield file
            flush(file, sync=sync)
            if os.name == "nt":  # which renames no open file
                file.close()
            os.replace(temporary, target)  # still locked, so that nobody takes it for a leftover
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    if sync:
        _sync_folder(target.parent)


def clean(folder: Path) -> None:
    """Remove what killed processes left half-written in the folder: our own temporary files that nobody writes to."""
    with suppress(OSError):
        for path in folder.iterdir():
            if is_temporary(path) and _left(path):
                path.unlink(missing_ok=True)


def check_file(path: Path) -> None:
    """Refuse a file that could not be written once the work is done; what a killed process left there goes."""
    with reporting(path):
        target = end_of_links(path)
        state = state_of(target)
        if state is not None and stat.S_ISDIR(state.st_mode):
            raise SettingsError(f"{path} is a folder; name a file, as in {path / 'file'}")
        if state is not None and not is_replaceable(target, state):
            if not os.access(target, os.W_OK):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            return
        made = make_folders(target.parent)
        clean(target.parent)
        try:
            state_of(target)  # a name that is too long
            temporary, handle = create(target.parent)
            os.close(handle)
            temporary.unlink()
        finally:
            remove_folders(made)


def is_temporary(path: Path) -> bool:
    """Whether it is a file of ours that was to take another's place."""
    try:
        return bool(TEMPORARY.fullmatch(path.name)) and stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """What the system refuses, in words."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"could not write {path}: {_reason(path, error)}") from error


def _reason(path: Path, error: OSError) -> str:
    """The system's message, and what to do."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the working directory was deleted; change to another one"
    try:
        device = not stat.S_ISREG(path.stat().st_mode) and not path.is_dir()
    except OSError:
        device = False
    words = error.strerror or str(error)
    if device:
        return f"{words}; choose another place"
    return f"{words}. What was there before is unharmed; free some space or choose another place"


def end_of_links(path: Path) -> Path:
    """Where a chain of links leads; the names of open files, such as /dev/stdout, are not followed."""
    for _ in range(LINKS):
        if not path.is_symlink() or _names_open_files(path.parent):
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def state_of(path: Path) -> os.stat_result | None:
    """What is there, if anything."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def is_replaceable(target: Path, state: os.stat_result) -> bool:
    """A regular file under its own name; anything else is written to, not replaced."""
    return stat.S_ISREG(state.st_mode) and not _names_open_files(target.parent)


def create(folder: Path, mode: int = 0o600) -> tuple[Path, int]:
    """A new temporary file, open and locked."""
    path = folder / f".qornn-{os.getpid()}-{_TOKEN}-{next(_count)}.part"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    flock.take(handle)
    return path, handle


def make_folders(folder: Path) -> list[Path]:
    """Make it and those above it; what was not there before, the innermost first."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        remove_folders(made)
        raise
    return made


def remove_folders(made: Sequence[Path]) -> None:
    """As far as they are empty."""
    with suppress(OSError):
        for path in made:
            path.rmdir()


def flush(file: BinaryIO, *, sync: bool) -> None:
    """All that was written, now: later it would be too late to say that the disk is full."""
    file.flush()
    if sync:
        os.fsync(file.fileno())


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _names_open_files(folder: Path) -> bool:
    real = os.path.realpath(folder)
    return real in ("/dev", "/dev/fd") or real.startswith("/proc/")


def _make_alike(path: Path, state: os.stat_result) -> None:
    """Owner, where that is allowed, and mode of the file to be replaced."""
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(path, state.st_uid, state.st_gid)
    path.chmod(stat.S_IMODE(state.st_mode))


def _left(path: Path) -> bool:
    """Whether no process has it open for writing. False if that cannot be found out."""
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        return flock.take(handle) is True
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; not every system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
