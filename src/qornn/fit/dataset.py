"""What every reader returns: sequences with their labels, checked, and notes for the user."""

from __future__ import annotations

import hashlib
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qornn.errors import DataError
from qornn.tasks.arrays import Sequences

INT16 = np.iinfo(np.int16)
# What numpy raises for files that are damaged, or something else.
UNREADABLE = (
    *(OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, SyntaxError, OverflowError, MemoryError),
    *(NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error, tokenize.TokenError, struct.error),
)


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Sequences and one label or value for each."""

    x: Sequences
    y: np.ndarray  # (N,) numbers or text
    groups: np.ndarray | None = None  # (N,) text: what each sequence comes from, such as a person or a recording

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, rows: np.ndarray) -> Labelled:
        return Labelled(self.x.rows(rows), self.y[rows], None if self.groups is None else self.groups[rows])

    def for_estimator(self) -> np.ndarray | list[np.ndarray]:
        """As the estimators take it: (N, T, C), or a list of (T_i, C)."""
        if self.x.lengths is None:
            return self.x.x
        return [part[:length] for part, length in zip(self.x.x, self.x.lengths, strict=True)]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Dataset:
    """What a file or folder holds."""

    train: Labelled
    test: Labelled | None = None
    channels: tuple[str, ...] = ()  # their names, where there are any
    notes: tuple[str, ...] = ()  # what a reader decided, for the user to see
    texts: tuple[str, ...] | None = None  # the labels as they are written, where the file is text
    column: str | None = None  # of the labels, for a reader of the test data that belongs to this

    def channel(self, c: int) -> str:
        return f"channel {c}" if not self.channels else f"channel {c} ({self.channels[c]!r})"

    def digest(self) -> str:
        """SHA-256 of what was read, wherever it lies: the same figures come from the same digest."""
        found = hashlib.sha256()
        for part in (self.train, self.test):
            if part is None:
                continue
            lengths = np.zeros(0) if part.x.lengths is None else part.x.lengths
            for array in (part.x.x, lengths, part.y, *(() if part.groups is None else (part.groups,))):
                found.update(f"{array.dtype.str}{array.shape}".encode())
                found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()


def as_counts(x: Sequences) -> Sequences:
    """Text has no types: whole numbers in int16 become integers, which a device then reads as they are."""
    if x.x.min() < INT16.min or x.x.max() > INT16.max or (x.x != np.rint(x.x)).any():
        return x
    return Sequences(x.x.astype(np.int16), x.lengths)


def labels_of_text(texts: Sequence[str]) -> np.ndarray:
    """Labels read as text: numbers where all are, unless that would make two different labels one ("01" and "1")."""
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        return np.array(texts)
    if not np.isfinite(numbers).all() or len(set(texts)) != len(np.unique(numbers)):
        return np.array(texts)
    return as_whole(numbers)


def as_whole(y: np.ndarray) -> np.ndarray:
    """Floats that are all whole numbers as integers: label 1, not 1.0."""
    if y.dtype.kind == "f" and (y == np.rint(y)).all() and np.abs(y).max(initial=0) < 2**53:
        return y.astype(np.int64)
    return y


def load_array(path: Path) -> np.ndarray:
    """One .npy file; pickled objects are never loaded."""
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except UNREADABLE as error:
        raise DataError(f"{path} is not an array of numbers or text: {error}; write it with numpy.save") from error
