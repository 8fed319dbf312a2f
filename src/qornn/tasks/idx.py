"""The IDX format of MNIST: a big-endian header, then bytes."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from qornn.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"
UNSIGNED_BYTE = 8  # the type code of the only element type MNIST uses


def read_idx(path: Path, *, ndim: int) -> np.ndarray:
    """The array of unsigned bytes in an IDX file, gzipped or not; anything short, long or foreign is refused."""
    raw = _read(path)
    magic = bytes([0, 0, UNSIGNED_BYTE, ndim])
    if raw[:4] != magic:
        raise _damaged(path, f"it starts with {raw[:4].hex(' ') or 'nothing'}, not with {magic.hex(' ')}")
    start = 4 + 4 * ndim
    if len(raw) < start:
        raise _damaged(path, f"its header ends after {len(raw)} of {start} bytes")
    shape = [int(n) for n in np.frombuffer(raw, ">u4", count=ndim, offset=4)]
    expected = start + math.prod(shape)
    if len(raw) != expected:
        sizes = "x".join(map(str, shape))
        raise _damaged(path, f"its header announces {sizes}, {expected} bytes in all, but it holds {len(raw)}")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def _read(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        # By content, not by name: unpacked files often keep the .gz and the reverse.
        return gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, f"it cannot be unpacked ({error})") from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}; check the file and its permissions"
        ) from error


def _damaged(path: Path, why: str) -> DataError:
    return DataError(f"{path} is damaged: {why}; delete it and fetch it again")
