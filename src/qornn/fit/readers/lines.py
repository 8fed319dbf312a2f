"""A text table: its lines, which of them is the header, and its cells as numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from qornn.errors import DataError, SettingsError

DELIMITERS = ",;\t"
MISSING = ("", "nan", "na", "n/a", "null", "none", "?", "-")
HOLD = "hold the last value with --missing hold"  # a way out of missing samples
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
FEWEST = 3  # columns from which 0, 1, 2, … in the first line is taken as the header that pandas writes


@dataclass(frozen=True, slots=True)
class Line:
    """One line with its number in the file, counted from 1."""

    number: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A file of lines with cells, and the names of the columns where the file has them."""

    path: Path
    header: list[str] | None
    lines: list[Line]
    hold: bool = False  # samples may be missing

    @property
    def width(self) -> int:
        return len(self.lines[0].cells if self.header is None else self.header)

    def find(self, name: str) -> int | None:
        """The column of that name, in small or capital letters."""
        if self.header is None:
            return None
        if name in self.header:
            return self.header.index(name)
        folded = [column.lower() for column in self.header]
        return folded.index(name.lower()) if name.lower() in folded else None

    def column(self, name: str, option: str) -> int:
        """The column that an option means: by name, or by number counted from 1."""
        found = self.find(name)
        if found is not None:
            return found
        if name.isdecimal() and 1 <= int(name) <= self.width:
            return int(name) - 1
        named = "no header" if self.header is None else f"the columns {_some(self.header)}"
        raise SettingsError(
            f"{option} {name!r} is not a column of {self.path}, which has {named}; give such a name, or a number in "
            f"1..{self.width}"
        )

    def title(self, column: int) -> str:
        """A column in words."""
        return f"column {column + 1}" + ("" if self.header is None else f" ({self.header[column]!r})")

    def floats(self, line: Line, columns: Sequence[int]) -> np.ndarray:
        """Those cells of a line, every one a finite number, or NaN where samples may be missing."""
        cells = [line.cells[c] for c in columns]
        values = finite(cells)
        if values is not None:
            return values
        return np.array([self._sample(line, c, cell) for c, cell in zip(columns, cells, strict=True)])

    def _sample(self, line: Line, column: int, cell: str) -> float:
        missing = cell.lower() in MISSING
        if missing and self.hold:
            return float("nan")
        return self.number(line, column, cell, f", or {HOLD}" if missing else "")

    def number(self, line: Line, column: int, cell: str, way_too: str = "") -> float:
        """One cell as a finite number. `way_too` is one more hint for the error."""
        value = finite([cell])
        if value is not None:
            return float(value[0])
        kind = "a missing value" if cell.lower() in MISSING else f"{cell!r}, which is not a finite number,"
        way = "numbers take a point, as in 1.5" if DECIMAL_COMMA.fullmatch(cell) else f"fill or drop it{way_too}"
        raise DataError(f"{self.path} holds {kind} at row {line.number}, {self.title(column)}, counted from 1; {way}")


def finite(cells: Sequence[str]) -> np.ndarray | None:
    """The cells as numbers if all are finite ones. 1_000 is none, though Python reads it as 1000."""
    try:
        values = np.array(cells, np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() and "_" not in "".join(cells) else None


def read_table(path: Path, known: Sequence[str], *, hold: bool = False) -> Table:
    """The file's lines; `known` are names that make a first line the header; with `hold` samples may be missing."""
    lines = read_lines(path)
    header = lines.pop(0).cells if lines and is_header(lines[0].cells, known) else None
    if not lines:
        raise DataError(f"{path} has no rows of data; give one series per row, or one sample per row in long format")
    if header is not None:
        _refuse_repeated(header, path)
    return Table(path, header, lines, hold)


def read_lines(path: Path, delimiter: str | None = None) -> list[Line]:
    """The lines that are not empty; the first of them tells the delimiter unless it is given."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = next((line for line in file if line.strip()), "")
            file.seek(0)
            found = list(_cells(path, file, delimiter or delimiter_of(first)))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as CSV: {error}; write it as UTF-8 text") from error
    return [line for line in found if any(line.cells)]


def _cells(path: Path, file: TextIO, delimiter: str) -> Iterator[Line]:
    """Each line's cells. Neither numbers nor labels span lines, so a quote that does was left open by mistake."""
    reader = csv.reader(_without_nul(path, file), delimiter=delimiter, strict=True)
    number = 1
    try:
        for cells in reader:
            if reader.line_num > number:
                raise _open_quote(path, number, f"is closed only in line {reader.line_num}")
            yield Line(number, [cell.strip() for cell in cells])
            number += 1
    except csv.Error as error:
        if "limit" in str(error) and reader.line_num <= number:
            raise DataError(f"{path} has a cell that is too long in line {number}: {error}; separate cells") from error
        raise _open_quote(path, number, "is not closed there") from error


def _open_quote(path: Path, number: int, what: str) -> DataError:
    return DataError(f"{path} has a quote in line {number} that {what}; close it, or leave quotes out")


def _without_nul(path: Path, file: TextIO) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        if "\0" in line:
            raise DataError(f"{path} holds a NUL byte in line {number}; write it as UTF-8 text")
        yield line


def delimiter_of(line: str) -> str:
    """What stands between the cells; commas of which each cell has one are decimal, and refused as such later."""
    counts = {delimiter: line.count(delimiter) for delimiter in DELIMITERS}
    other = max(DELIMITERS[1:], key=lambda delimiter: counts[delimiter])
    return other if counts[other] and counts[","] <= counts[other] + 1 else ","


def is_header(cells: Sequence[str], known: Sequence[str]) -> bool:
    """A known name, mostly text, or the 0, 1, 2, … that pandas writes over unnamed columns."""
    if {cell.lower() for cell in cells} & {name.lower() for name in known if not name.isdecimal()}:
        return True
    words = [cell for cell in cells if not is_number(cell)]
    if len(words) * 2 > len(cells):
        return True
    counted = [cell for cell in cells if cell]
    return len(counted) >= FEWEST and counted in ([str(i + start) for i in range(len(counted))] for start in (0, 1))


def is_number(cell: str) -> bool:
    """Missing values and decimal commas count: a row of them is data to refuse, not a header."""
    try:
        float(cell)
    except ValueError:
        return cell.lower() in MISSING or DECIMAL_COMMA.fullmatch(cell) is not None
    return True


def _refuse_repeated(header: Sequence[str], path: Path) -> None:
    names = [name for name in header if name]
    repeated = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if repeated is not None:
        raise DataError(f"{path} has two columns named {repeated!r}; rename one of them")


def _some(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
