"""Parquet through pandas and pyarrow: a table like those of CSV, wide or long, by the names of its columns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from qornn.errors import DataError, SettingsError
from qornn.fit.dataset import Dataset
from qornn.fit.readers.csv import from_table
from qornn.fit.readers.lines import Line, Table

SAFE = (14, 0, 1)  # pyarrow before it could run code from a file (CVE-2023-47248)


def read_parquet(
    path: Path,
    *,
    label: str | None = None,
    id: str | None = None,
    time: str | None = None,
    group: str | None = None,
    hold: bool = False,
) -> Dataset:
    """The rows of a table, counted from 1, read as those of a CSV file with a header."""
    try:
        import pandas
        import pyarrow
    except ImportError as error:
        raise SettingsError(
            f"{path} needs pandas and pyarrow, which are not installed ({error.name}); pip install 'qornn[parquet]', "
            "or write it as CSV"
        ) from error
    if tuple(int(part) for part in pyarrow.__version__.split(".")[:3]) < SAFE:
        raise SettingsError(
            f"{path} needs pyarrow of at least 14.0.1, got {pyarrow.__version__}; pip install -U pyarrow"
        )
    try:
        frame = pandas.read_parquet(path, engine="pyarrow")
    except Exception as error:  # pyarrow's own kinds, and whatever a damaged file leads to
        raise DataError(f"{path} cannot be read as parquet: {error}; write it with pandas.to_parquet") from error
    header = [str(name) for name in frame.columns]
    if not header or not len(frame):
        raise DataError(f"{path} has no rows of data; give one series per row, or one sample per row in long format")
    if len({*header}) < len(header):
        raise DataError(f"{path} has two columns of one name; rename one of them")
    rows = frame.itertuples(index=False, name=None)
    lines = [Line(number, [_text(cell) for cell in row]) for number, row in enumerate(rows, 1)]
    return from_table(Table(path, header, lines, hold), label=label, id=id, time=time, group=group)


def _text(cell: Any) -> str:
    """As it would stand in a CSV file; what is missing is empty."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return "" if str(cell) in ("NaT", "<NA>", "nan") else str(cell).strip()
