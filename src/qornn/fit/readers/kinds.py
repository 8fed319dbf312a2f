"""From a path to a Dataset: the kind of file tells the reader."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from qornn.errors import DataError, SettingsError
from qornn.fit.dataset import Dataset, Labelled, labels_of_text
from qornn.fit.readers.arff import read_arff
from qornn.fit.readers.csv import read_csv
from qornn.fit.readers.npy_folder import holds_arrays, read_folder
from qornn.fit.readers.npz import read_npz
from qornn.fit.readers.parquet import read_parquet
from qornn.fit.readers.ts import read_ts
from qornn.fit.readers.wav_folder import holds_clips, read_wav_folder

# Tables have columns that options name.
TABLES: Final[dict[str, Callable[..., Dataset]]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".txt": read_csv,
    ".parquet": read_parquet,
}
FILES: Final[dict[str, Callable[..., Dataset]]] = {".npz": read_npz, ".ts": read_ts, ".arff": read_arff}
KNOWN = "an .npz, .ts, .arff or .parquet file, a .csv, .tsv or .txt table, or a folder of .npy or .wav files"
PAIRED = (".ts", ".arff", ".tsv", ".txt")  # kinds of which the archives have NAME_TRAIN and NAME_TEST
TRAIN, TEST = "_TRAIN", "_TEST"


def read(
    path: Path,
    *,
    test: Path | None = None,
    label: str | None = None,
    id: str | None = None,
    time: str | None = None,
    group: str | None = None,
    hold: bool = False,
    paired: bool = False,
) -> Dataset:
    """The data at `path`; `test` is a second path, of held-out data, where it lies apart.

    With `hold` samples that are missing are NaN, else they are refused. With `paired`, NAME_TEST beside NAME_TRAIN is
    the test data if no other is given.
    """
    data = _read(path, hold, label=label, id=id, time=time, group=group)
    if paired and test is None and (test := beside(path)) is not None:
        note = f"{test.name} lies beside {path.name} and is the test set; --test-fraction draws one instead"
        data = replace(data, notes=(*data.notes, note))
    if test is not None:
        if data.test is not None:
            raise SettingsError(f"{path} holds a test set already; leave out --test {test}")
        other = _read(test, hold, label=label or data.column, id=id, time=time, group=group)
        if other.test is not None or other.channels != data.channels:
            what = "train and test sets of its own" if other.test is not None else f"the channels {other.channels}"
            raise DataError(f"--test {test} holds {what}; it should be as {path} is: the same columns, held-out rows")
        data = replace(data, test=other.train)
        if data.texts is not None and other.texts is not None:  # "01" is 1 only if neither file has both
            y = labels_of_text([*data.texts, *other.texts])
            train = replace(data.train, y=y[: len(data.texts)])
            data = replace(data, train=train, test=replace(other.train, y=y[len(data.texts) :]))
    if data.test is None:
        return data
    channels = [part.x.x.shape[2] for part in (data.train, data.test)]
    if channels[0] != channels[1]:
        raise DataError(
            f"training sequences have {channels[0]} channels, test sequences {channels[1]}; they must agree"
        )
    train, held = _alike(data.train, data.test)
    return replace(data, train=train, test=held)


def beside(path: Path) -> Path | None:
    """NAME_TEST of NAME_TRAIN, as the archives name both; None if the name is another, or there is no such file."""
    name = path.stem.removesuffix(TRAIN)
    if path.suffix.lower() not in PAIRED or name == path.stem:
        return None
    found = path.with_name(f"{name}{TEST}{path.suffix}")
    return found if os.path.isfile(found) else None


def _read(path: Path, hold: bool, **columns: str | None) -> Dataset:
    if not os.path.exists(path):  # Path.exists raises for a name that is too long
        raise DataError(f"there is no data at {path}; give {KNOWN}")
    if not path.is_file() and not path.is_dir():  # a pipe would be waited for
        raise DataError(f"{path} is neither a file nor a folder; write the data to a file first")
    kind = path.suffix.lower()
    if kind in TABLES and path.is_file():
        return TABLES[kind](path, **columns, hold=hold)
    given = [f"--{name}" for name, value in columns.items() if value is not None]
    if given:
        way = "name it groups in there" if given == ["--group"] else "leave it out"
        raise SettingsError(f"{given[0]} names a column of a CSV file, but the data is {path}; {way}")
    if path.is_dir():
        try:
            return _read_folder(path, hold)
        except OSError as error:  # a folder that may not be listed
            raise DataError(f"{path} cannot be read: {error}") from error
    if kind in FILES:
        return FILES[kind](path, hold=hold)
    raise DataError(f"{path} is not a known kind of file; give {KNOWN}")


def _read_folder(path: Path, hold: bool) -> Dataset:
    if not holds_clips(path):
        return read_folder(path, hold=hold)
    if holds_arrays(path):
        raise DataError(f"{path} holds both .npy and .wav files; keep one kind in a folder")
    return read_wav_folder(path)


def _alike(train: Labelled, test: Labelled) -> list[Labelled]:
    """Labels of one kind: text where one part has text, else floats where one has; samples integers only in both."""
    parts = [train, test]
    for kind in ("U", "f"):
        if len({part.y.dtype.kind == kind for part in parts}) == 2:
            parts = [replace(part, y=part.y.astype(str if kind == "U" else np.float64)) for part in parts]
    if len({part.x.x.dtype.kind in "iub" for part in parts}) == 2:
        parts = [replace(part, x=replace(part.x, x=part.x.x.astype(np.float64))) for part in parts]
    return parts
