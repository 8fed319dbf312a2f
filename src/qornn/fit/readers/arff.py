"""The .arff files of the UCR and UEA archives: @attribute lines, then one series per row, its label last.

A series of several dimensions is one relational attribute: a text in quotes, dimensions separated by \\n.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from qornn.errors import DataError
from qornn.fit.dataset import Dataset, Labelled, as_counts, labels_of_text
from qornn.fit.readers.series import is_missing, label_of, samples, short, text_lines, value
from qornn.tasks.arrays import Sequences

QUOTED = r"""'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)\""""
# Possessive, so that no text takes longer than its length.
CELL = re.compile(rf"""\s*+(?:{QUOTED}|([^,'"]*+))\s*+(,|\Z)""")
ATTRIBUTE = re.compile(rf"""@attribute\s++(?:{QUOTED}|(\S++))\s++(.++)""", re.IGNORECASE)
NUMERIC = ("numeric", "real", "integer")
SEPARATOR = "\\n"  # the two characters


@dataclass(slots=True)
class Header:
    """What stands before @data."""

    steps: int = 0  # numeric attributes that are samples
    relational: bool = False
    label: str = ""  # the last attribute, which is the class or the value
    classes: frozenset[str] | None = None  # None: a value to predict
    names: list[tuple[str, str]] = field(default_factory=list)  # of each attribute, with its type


def read_arff(path: Path, *, hold: bool = False) -> Dataset:
    """The last attribute is the class if it is nominal, and the value to predict if it is numeric."""
    lines = text_lines(path, "%")
    header = _header(path, lines)
    parts: list[np.ndarray] = []
    labels: list[str] = []
    values: list[float] = []
    for row, line in lines:
        *cells, label = _row(path, row, line, header)
        series = cells[0].split(SEPARATOR) if header.relational else None
        part = _series(path, row, [text.split(",") for text in series] if series else [cells], header, hold)
        if parts and part.shape[1] != parts[0].shape[1]:
            raise DataError(
                f"{path} holds {part.shape[1]} dimensions at row {row}, counted from 1, but {parts[0].shape[1]} in the "
                "first series; correct that row"
            )
        parts.append(part)
        if header.classes is None:
            values.append(value(label, path, f"row {row}"))
        else:
            labels.append(label_of(label, header.classes, path, row, short(header.label)))
    if not parts:
        raise DataError(f"{path} has no rows after @data; give one series per row")
    shorter = sum(len(part) < header.steps for part in parts)
    notes = [f"{shorter} of {len(parts)} series end before the last sample: ? at the end are not samples"]
    x = as_counts(Sequences.padded(parts))
    if header.classes is None:
        note = f"attribute {header.label!r}, the last, is taken as the value to predict"
        return Dataset(train=Labelled(x, np.array(values)), notes=(note, *(notes if shorter else [])))
    y = labels_of_text(labels)
    return Dataset(train=Labelled(x, y), notes=tuple(notes if shorter else []), texts=tuple(labels))


def _header(path: Path, lines: Iterator[tuple[int, str]]) -> Header:
    """Reads up to @data."""
    header, inside = Header(), False
    for row, line in lines:
        word = line.split(maxsplit=1)[0].lower()
        if word == "@data":
            return _checked(path, header)
        if word == "@end":
            inside = False
        elif word == "@attribute":
            name, kind = _attribute(path, row, line)
            if inside and kind.lower() not in NUMERIC:
                raise DataError(
                    f"{path} has the attribute {short(name)} at row {row}, which is not numeric; leave it out"
                )
            if inside:
                header.steps += 1
                continue
            inside = kind.lower() == "relational"
            header.names.append((name, kind))
        elif word != "@relation":
            raise DataError(f"{path} holds {short(line)} at row {row}, before the line @data; add that line")
    raise DataError(f"{path} has no line @data; is it an .arff file?")


def _attribute(path: Path, row: int, line: str) -> tuple[str, str]:
    found = ATTRIBUTE.fullmatch(line)
    if found is None:
        raise DataError(f"{path} holds {short(line)} at row {row}, counted from 1; write @attribute NAME TYPE")
    return next(text for text in found.groups()[:3] if text is not None), found[4]


def _checked(path: Path, header: Header) -> Header:
    """Samples first, the label last."""
    if len(header.names) < 2:
        raise DataError(
            f"{path} has {len(header.names)} attributes; it needs samples and, as the last, a class or value"
        )
    *series, (header.label, kind) = header.names
    if kind.startswith("{"):
        header.classes = frozenset(_cells(kind.strip("{} \t")) or [])
    elif kind.lower() == "string":
        header.classes = frozenset()  # any
    elif kind.lower() not in NUMERIC:
        raise DataError(f"{path} has {short(kind)} as type of its last attribute; it should be the class or a value")
    header.relational = series[0][1].lower() == "relational"
    if header.relational:
        series = series[1:]
    else:
        header.steps = len(series)
    for name, kind in series:
        if header.relational or kind.lower() not in NUMERIC:
            raise DataError(
                f"{path} has the attribute {short(name)}, which is neither a sample nor the last one, the label; leave "
                "it out, or write the label last"
            )
    return header


def _row(path: Path, row: int, line: str, header: Header) -> list[str]:
    """The cells of a row, as many as attributes."""
    if line.startswith("{"):
        raise DataError(f"{path} holds a sparse row, in braces, at row {row}, counted from 1; write all of its samples")
    cells = _cells(line)
    if cells is None:
        raise DataError(f"{path} has a quote at row {row}, counted from 1, that is not closed there; close it")
    if len(cells) != len(header.names):
        raise DataError(
            f"{path} has {len(cells)} cells at row {row}, counted from 1, but {len(header.names)} attributes; write ? "
            "where a sample is missing"
        )
    return cells


def _cells(line: str) -> list[str] | None:
    """What stands between commas that no quotes hold; None where a quote is left open."""
    cells, at = [], 0
    while True:
        found = CELL.match(line, at)
        if found is None:
            return None
        single, double, plain, end = found.groups()
        cells.append(next(text for text in (single, double, plain.strip() if plain else plain, "") if text is not None))
        at = found.end()
        if not end:
            return cells


def _series(path: Path, row: int, dimensions: list[list[str]], header: Header, hold: bool) -> np.ndarray:
    """The dimensions of a row as channels, without the samples that are ? in all of them at the end.  # (T, C)"""
    for d, cells in enumerate(dimensions, 1):
        if len(cells) != header.steps:
            raise DataError(
                f"{path} holds {len(cells)} samples at row {row}, dimension {d}, counted from 1, but its attributes "
                f"are {header.steps}; write ? where a sample is missing"
            )
    end = max(
        max((n for n, cell in enumerate(cells, 1) if not is_missing(cell.strip())), default=0) for cells in dimensions
    )
    if not end:
        raise DataError(f"{path} holds no samples at row {row}, counted from 1; drop that row")
    places = [f"row {row}" + (f", dimension {d}" if header.relational else "") for d in range(1, len(dimensions) + 1)]
    channels = [samples(c[:end], path, at, hold=hold) for c, at in zip(dimensions, places, strict=True)]
    return np.stack(channels, 1)
