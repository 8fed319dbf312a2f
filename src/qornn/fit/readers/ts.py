"""The .ts files of the UCR and UEA archives: a header of @ lines, then dimension:dimension:…:label per row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qornn.errors import DataError
from qornn.fit.dataset import Dataset, Labelled, as_counts, labels_of_text
from qornn.fit.readers.series import label_of, samples, short, text_lines, value
from qornn.tasks.arrays import Sequences


@dataclass(frozen=True, slots=True)
class Header:
    """What the @ lines say."""

    values: bool  # the last field is a value to predict, not a class
    classes: frozenset[str]  # empty: any
    dimensions: int | None
    equal: bool  # all series have one length


def read_ts(path: Path, *, hold: bool = False) -> Dataset:
    """One series per row, of one dimension or several, of one length or several."""
    lines = text_lines(path, "#")
    header = _header(path, lines)
    parts: list[np.ndarray] = []
    labels: list[str] = []
    values: list[float] = []
    for row, line in lines:
        *dimensions, label = line.split(":")
        part = _series(path, row, dimensions, hold)
        _check(path, row, part, parts, header)
        parts.append(part)
        if header.values:
            values.append(value(label.strip(), path, f"row {row}"))
        else:
            labels.append(label_of(label.strip(), header.classes, path, row, "@classLabel"))
    if not parts:
        raise DataError(f"{path} has no rows after @data; give one series per row")
    x = as_counts(Sequences.padded(parts))
    if header.values:  # floats even where all are whole: the file says that they are values
        return Dataset(train=Labelled(x, np.array(values)))
    return Dataset(train=Labelled(x, labels_of_text(labels)), texts=tuple(labels))


def _header(path: Path, lines: Iterator[tuple[int, str]]) -> Header:
    """Reads up to @data."""
    found: dict[str, list[str]] = {}
    for row, line in lines:
        name, *words = line.split()
        if name.lower() == "@data":
            break
        if not name.startswith("@"):
            raise DataError(f"{path} holds {short(line)} at row {row}, before the line @data; add that line")
        found[name.lower()] = words
    else:
        raise DataError(f"{path} has no line @data; is it a .ts file of the UCR or UEA archive?")
    if _yes(found.get("@timestamps")):
        raise DataError(f"{path} has time stamps (@timeStamps true), which are not read; write the samples alone")
    values = _yes(found.get("@targetlabel"))
    classes = found.get("@classlabel", ["true"])
    if not values and not _yes(classes):
        raise DataError(f"{path} has no labels (@classLabel false); each row needs a class or a value at its end")
    number = (found.get("@dimensions") or found.get("@dimension") or [""])[0]
    return Header(
        values=values,
        classes=frozenset() if values else frozenset(classes[1:]),
        dimensions=int(number) if number.isdecimal() and len(number) < 9 else None,
        equal=_yes(found.get("@equallength")),
    )


def _yes(words: list[str] | None) -> bool:
    return words is not None and words[:1] != [] and words[0].lower() == "true"


def _series(path: Path, row: int, dimensions: list[str], hold: bool) -> np.ndarray:
    """The dimensions of a row as channels.  # (T, C)"""
    if not dimensions:
        raise DataError(f"{path} holds no label at row {row}, counted from 1; a row is samples:label")
    channels: list[np.ndarray] = []
    for d, text in enumerate(dimensions, 1):
        place = f"row {row}" if len(dimensions) == 1 else f"row {row}, dimension {d}"
        if not text.strip():
            raise DataError(f"{path} holds no samples at {place}, counted from 1; drop that row")
        if text.lstrip().startswith("("):
            raise DataError(f"{path} holds time stamps at {place}, which are not read; write the samples alone")
        channels.append(samples(text.split(","), path, place, hold=hold))
        if len(channels[-1]) != len(channels[0]):
            raise DataError(
                f"{path} holds {len(channels[-1])} samples at {place}, counted from 1, but {len(channels[0])} in "
                "dimension 1; all dimensions of a row have one length"
            )
    return np.stack(channels, 1)


def _check(path: Path, row: int, part: np.ndarray, parts: list[np.ndarray], header: Header) -> None:
    """Dimensions, and the length where all are equal, as the header or the first row says."""
    wanted = header.dimensions or (parts[0] if parts else part).shape[1]
    if part.shape[1] != wanted:
        raise DataError(
            f"{path} holds {part.shape[1]} dimensions at row {row}, counted from 1, not {wanted}; correct that row"
        )
    if header.equal and parts and len(part) != len(parts[0]):
        raise DataError(
            f"{path} holds {len(part)} samples at row {row}, counted from 1, but {len(parts[0])} in the first series; "
            "correct that row, or write @equalLength false"
        )
