"""CSV: one series per row with a label, or the long format, one sample per row with id, time and label."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from qornn.errors import DataError, SettingsError
from qornn.fit.dataset import Dataset, Labelled, as_counts, labels_of_text
from qornn.fit.readers.lines import MISSING, Line, Table, is_number, read_table
from qornn.tasks.arrays import Sequences

LABEL, ID, TIME = "label", "id", "time"  # columns are called so unless an option says otherwise


def read_csv(
    path: Path,
    *,
    label: str | None = None,
    id: str | None = None,
    time: str | None = None,
    group: str | None = None,
    hold: bool = False,
) -> Dataset:
    """The format is long where there are a column of ids and one of times, or an option names one of them."""
    named = (name for name in (label, id, time, group) if name is not None)
    table = read_table(path, [LABEL, ID, TIME, *named], hold=hold)
    return from_table(table, label=label, id=id, time=time, group=group)


def from_table(table: Table, *, label: str | None, id: str | None, time: str | None, group: str | None) -> Dataset:
    """The same of a table that was read already."""
    g = None if group is None else table.column(group, "--group")
    i, t = table.find(ID), table.find(TIME)
    if id is None and time is None and (i is None or t is None):
        _refuse_half_long(table, label, g, i, t)
        return _wide(table, label, g)
    if table.header is None:
        raise SettingsError(f"--id and --time name columns, but {table.path} has no header; add one as its first line")
    i = table.column(id, "--id") if id is not None else i
    t = table.column(time, "--time") if time is not None else t
    if i is None or t is None:
        lacking = "--id" if i is None else "--time"
        raise SettingsError(f"the long format needs both an id and a time column; name the other with {lacking}")
    return _long(table, label, g, i, t)


def _wide(table: Table, label: str | None, g: int | None) -> Dataset:
    own = [] if g is None else [g]
    at, notes = _label_column(table, label, but=[*_left_out(table), *own])
    _refuse_two_uses(table, label=at, group=g)
    left_out = [c for c in _left_out(table) if c not in (at, g)]
    notes += [f"{table.title(c)} is left out: it numbers the rows" for c in left_out]
    columns = [c for c in range(table.width) if c not in (at, g) and c not in left_out]
    if not columns:
        raise DataError(
            f"{table.path} has no columns but the label; one series per row needs its samples there, with a comma, "
            "semicolon or tab between them"
        )
    parts, labels, groups = [], [], []
    for line in table.lines:
        cells = _filled(table, line, max([at, *own]))
        labels.append(_named(table, line, at, "label"))
        groups += [_named(table, line, c, "group") for c in own]
        # A shorter series has nothing but empty cells to the end.
        end = max((n for n, c in enumerate(columns, 1) if cells[c]), default=0)
        if not end:
            raise DataError(f"{table.path} holds no samples at row {line.number}, counted from 1; drop that row")
        parts.append(table.floats(Line(line.number, cells), columns[:end])[:, None])
    shorter = sum(len(part) < len(columns) for part in parts)
    if shorter:
        notes.append(
            f"{shorter} of {len(parts)} series end before the last column: empty cells at the end are not samples"
        )
    train = Labelled(as_counts(Sequences.padded(parts)), labels_of_text(labels), np.array(groups) if own else None)
    first = "1" if at == 0 and label is None and table.header is None else None  # found in this file, true of its pair
    return Dataset(train=train, notes=tuple(notes), texts=tuple(labels), column=first)


def _refuse_two_uses(table: Table, **columns: int | None) -> None:
    """One column cannot be the label and the id, for instance."""
    used: dict[int, str] = {}
    for name, column in columns.items():
        if column in used:
            raise SettingsError(
                f"{table.title(column)} of {table.path} cannot be both {used[column]} and {name}; name another"
            )
        if column is not None:
            used[column] = name


def _refuse_half_long(table: Table, label: str | None, g: int | None, i: int | None, t: int | None) -> None:
    """A long table with one name missing would be read as one series per row, and the network would learn nonsense."""
    named = (None if label is None else table.column(label, "--label"), g)
    if t is not None and t not in named:
        assert table.header is not None
        raise DataError(
            f"{table.path} has a column {table.header[t]!r} but none called id; the long format needs both: name it "
            "with --id, or rename the other if each row is a series"
        )
    if i is None or i in named:
        return
    seen: set[str] = set()
    for line in table.lines:
        name = line.cells[i] if i < len(line.cells) else ""
        if name in seen:
            raise DataError(
                f"{table.path} repeats id {name!r} at row {line.number}, counted from 1; if it is in the long "
                "format, name its times with --time; if each row is a series, rename that column or leave it out"
            )
        seen.add(name)


def _left_out(table: Table) -> list[int]:
    """The nameless first column in which pandas numbers rows, and a column called id: neither is a sample."""
    if table.header is None:
        return []
    found = [0] if not table.header[0] else []
    i = table.find(ID)
    return found if i is None else [*found, i]


def _filled(table: Table, line: Line, at: int) -> list[str]:
    """The cells, with empty ones for a series that was cut short."""
    missing = table.width - len(line.cells)
    if missing < 0 or (missing > 0 and at >= len(line.cells)):
        raise DataError(
            f"{table.path} has {len(line.cells)} cells at row {line.number}, counted from 1, of {table.width} columns; "
            "end a shorter series with empty cells, so that the label stays in its column"
        )
    return line.cells + [""] * missing


def _label_column(table: Table, label: str | None, but: Sequence[int]) -> tuple[int, list[str]]:
    if label is not None:
        return table.column(label, "--label"), []
    found = table.find(LABEL)
    if found is not None:
        return found, []
    last = max((c for c in range(table.width) if c not in but), default=0)  # 0: refused for want of samples
    words = _is_text(table, 0) and not _is_text(table, last)  # which no sample is
    if table.header is None and _names_classes(table, 0) and (words or not _names_classes(table, last)):  # as UCR's are
        reason = "text" if words else "whole numbers or names, which the last column does not hold"
        return 0, [f"{table.title(0)}, the first, is taken as the label: {reason}; --label names another"]
    return last, [f"{table.title(last)}, the last, is taken as the label; --label names another"]


def _names_classes(table: Table, column: int) -> bool:
    """Whether the column holds text or whole numbers alone, of which some repeat."""
    cells = [line.cells[column] for line in table.lines if column < len(line.cells)]
    return len(set(cells)) < len(cells) and all(_whole_or_text(cell) for cell in cells)


def _is_text(table: Table, column: int) -> bool:
    """Whether no cell of the column is a number."""
    return not any(is_number(line.cells[column]) for line in table.lines if column < len(line.cells))


def _whole_or_text(cell: str) -> bool:
    try:
        return float(cell).is_integer()
    except ValueError:
        return bool(cell)


def _named(table: Table, line: Line, at: int, what: str) -> str:
    """The label or group of a line."""
    text = line.cells[at] if at < len(line.cells) else ""
    if text.lower() in MISSING[:5]:
        raise DataError(
            f"{table.path} has no {what} at row {line.number}, {table.title(at)}, counted from 1; add one, or drop it"
        )
    return text


def _long(table: Table, label: str | None, g: int | None, i: int, t: int) -> Dataset:
    own = [] if g is None else [g]
    at, notes = _label_column(table, label, but=[i, t, *own, *([0] if table.header and not table.header[0] else [])])
    _refuse_two_uses(table, id=i, time=t, label=at)
    _refuse_two_uses(table, time=t, label=at, group=g)  # an id may be a group: each sequence its own
    assert table.header is not None
    columns = [c for c in range(table.width) if c not in (i, t, at, g) and table.header[c]]
    if not columns:
        raise DataError(f"{table.path} has no columns but id, time and label; channels are the other columns")
    _refuse_uneven(table)
    samples = _by_id(table, i, t)
    parts, labels, groups = [], [], []
    for name, found in samples.items():
        found.sort(key=lambda pair: pair[1])
        _refuse_twice(table, name, found, t)
        lines = [line for line, _ in found]
        labels.append(_one(table, name, lines, at, "label"))
        groups += [_one(table, name, lines, c, "group") for c in own]
        parts.append(np.stack([table.floats(line, columns) for line in lines]))
    train = Labelled(as_counts(Sequences.padded(parts)), labels_of_text(labels), np.array(groups) if own else None)
    names = tuple(table.header[c] for c in columns)
    return Dataset(train=train, channels=names, notes=tuple(notes), texts=tuple(labels))


def _by_id(table: Table, i: int, t: int) -> dict[str, list[tuple[Line, float]]]:
    """The lines of each sequence with their times."""
    found: dict[str, list[tuple[Line, float]]] = {}
    for line, moment in zip(table.lines, _times(table, t), strict=True):
        if not line.cells[i]:
            raise DataError(
                f"{table.path} has no id at row {line.number}, {table.title(i)}, counted from 1; give it one"
            )
        found.setdefault(line.cells[i], []).append((line, moment))
    return found


def _times(table: Table, t: int) -> list[float]:
    """Numbers, or moments such as 2024-05-01T12:00:00; the first row tells which."""
    try:
        float(table.lines[0].cells[t])
    except ValueError:
        return [_moment(table, line, t) for line in table.lines]
    return [table.number(line, t, line.cells[t]) for line in table.lines]


def _moment(table: Table, line: Line, t: int) -> float:
    try:
        moment = datetime.fromisoformat(line.cells[t])
    except ValueError as error:
        raise DataError(
            f"{table.path} holds {line.cells[t]!r} as time at row {line.number}, {table.title(t)}, counted from 1; "
            "times are numbers, or moments such as 2024-05-01T12:00:00"
        ) from error
    # Without a zone of its own, one without summer time: an hour must not come twice.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _refuse_uneven(table: Table) -> None:
    for line in table.lines:
        if len(line.cells) != table.width:
            raise DataError(
                f"{table.path} has {len(line.cells)} cells at row {line.number}, counted from 1, but {table.width} "
                "columns; give every sample all of them"
            )


def _refuse_twice(table: Table, name: str, group: Sequence[tuple[Line, float]], t: int) -> None:
    for (one, before), (other, after) in pairwise(group):
        if before == after:
            raise DataError(
                f"{table.path} holds time {other.cells[t]} of id {name!r} twice, at rows {one.number} and "
                f"{other.number}, counted from 1; an id has one row per time: drop one, or give each its own id"
            )


def _one(table: Table, name: str, lines: Sequence[Line], at: int, what: str) -> str:
    """The label or group of a sequence, the same in all its lines."""
    first = _named(table, lines[0], at, what)
    for line in lines[1:]:
        if _named(table, line, at, what) != first:
            raise DataError(
                f"{table.path} gives id {name!r} the {what} {first!r} at row {lines[0].number} and {line.cells[at]!r} "
                f"at row {line.number}, counted from 1; a sequence has one {what}: cut it there, with an id each"
            )
    return first
