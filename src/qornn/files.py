"""Writing so that a reader, a full disk or kill -9 never meets half a file."""

from __future__ import annotations

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any

from qornn.errors import WriteError


def write_atomically(path: Path, data: bytes | str) -> None:
    """Write beside the target, flush to disk, then rename over it: the old file survives every failure before that."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise WriteError(
            f"could not write {path}: {error.strerror or error}. What was there before is unharmed; "
            "free some space or choose another folder"
        ) from error


def to_json(figures: Any, **options: Any) -> str:
    """JSON in which NaN and infinity, which it lacks, are null."""
    return json.dumps(_finite(figures), allow_nan=False, **options)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; not every system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
