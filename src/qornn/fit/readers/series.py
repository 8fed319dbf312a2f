"""What the text files of the time series archives share: lines with their numbers, and cells as samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from qornn.errors import DataError
from qornn.fit.readers.lines import HOLD, MISSING, finite

LONGEST = 40  # letters of a cell that an error shows


def text_lines(path: Path, comment: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither empty nor comments, with their numbers counted from 1."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if "\0" in line:
                    raise DataError(f"{path} holds a NUL byte in line {number}; write it as UTF-8 text")
                text = line.strip()
                if text and not text.startswith(comment):
                    yield number, text
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as text: {error}; write it as UTF-8 text") from error


def samples(cells: Sequence[str], path: Path, place: str, *, hold: bool) -> np.ndarray:
    """Cells as finite numbers, or NaN where samples may be missing. `place` is row and dimension in words."""
    values = finite(cells)
    if values is not None:
        return values
    places = (f"{place}, sample {n}" for n in range(1, len(cells) + 1))
    return np.array([_number(cell.strip(), path, at, hold) for cell, at in zip(cells, places, strict=True)])


def value(cell: str, path: Path, place: str) -> float:
    """The value to predict, a finite number."""
    return _number(cell, path, f"{place}, as the value to predict", False)


def label_of(cell: str, classes: frozenset[str], path: Path, row: int, header: str) -> str:
    """The class of a row; `header` names what lists the classes, if it lists any."""
    if is_missing(cell) and cell not in classes:
        raise DataError(f"{path} holds no label at row {row}, counted from 1; add one, or drop the row")
    if classes and cell not in classes:
        raise DataError(
            f"{path} holds the label {short(cell)} at row {row}, counted from 1, which {header} does not list; correct "
            "one of them"
        )
    return cell


def is_missing(cell: str) -> bool:
    """Whether a cell means that there is no sample, no class or no value."""
    return cell.lower() in MISSING


def _number(cell: str, path: Path, place: str, hold: bool) -> float:
    if is_missing(cell):
        if hold:
            return float("nan")
        raise DataError(f"{path} holds a missing value at {place}, counted from 1; fill or drop it, or {HOLD}")
    found = finite([cell])
    if found is not None:
        return float(found[0])
    raise DataError(f"{path} holds {short(cell)}, which is not a finite number, at {place}, counted from 1; correct it")


def short(text: str) -> str:
    """Text in quotes, cut for an error."""
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")
