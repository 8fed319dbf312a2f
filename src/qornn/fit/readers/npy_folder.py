"""A folder of .npy files: arrays by name, one folder per class, or one file per sequence with a table of labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from qornn.errors import DataError
from qornn.fit.dataset import Dataset, Labelled, labels_of_text, load_array
from qornn.fit.readers.lines import HOLD, read_lines
from qornn.fit.readers.npz import KNOWN, from_arrays, near
from qornn.tasks.arrays import Sequences

LABELS = "labels.csv"
LAYOUTS = "x.npy and y.npy, CLASS/*.npy, train/CLASS/*.npy with test/CLASS/*.npy, or *.npy with labels.csv"


def read_folder(path: Path, *, hold: bool = False) -> Dataset:
    """Whichever of the four layouts is there."""
    files = {file.stem: file for file in _arrays(path)}
    if files.keys() & {"x", "x_train"}:
        arrays = {name: _load(file, path) for name, file in files.items() if name in KNOWN}
        return from_arrays(arrays, where=str(path), names=list(files), hold=hold)
    if (path / LABELS).is_file():
        return _by_table(path, hold)
    meant = next(((name, known) for name in files if (known := near(name))), None)
    if meant:
        raise DataError(f"{path} holds {meant[0]}.npy; did you mean {meant[1]}.npy? Layouts are {LAYOUTS}")
    if files:
        raise DataError(f"{path} holds {min(files)}.npy, whose label is unknown; layouts are {LAYOUTS}")
    if _classes(path / "train"):
        test = _by_folder(path / "test", path, hold) if _classes(path / "test") else None
        return Dataset(train=_by_folder(path / "train", path, hold), test=test)
    if _classes(path):
        return Dataset(train=_by_folder(path, path, hold))
    raise DataError(
        f"{path} holds no .npy or .wav files; layouts are {LAYOUTS}, or CLASS/*.wav. Tables: save each as .npy, or "
        "join them in one .csv with columns id, time and label"
    )


def holds_arrays(path: Path) -> bool:
    """Whether one of the layouts may be there."""
    return bool(_arrays(path) or _classes(path) or _classes(path / "train"))


def _arrays(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.npy") if file.is_file() and not file.name.startswith("."))


def _classes(folder: Path) -> list[Path]:
    """Folders that hold sequences. Other folders, such as one of notes, are not classes."""
    if not folder.is_dir():
        return []
    return sorted(inner for inner in folder.iterdir() if inner.is_dir() and _arrays(inner))


def inside(file: Path, root: Path) -> bool:
    """Whether it lies in the folder, links followed: a folder from elsewhere must not reach other files."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root))


def _load(file: Path, root: Path) -> np.ndarray:
    if not inside(file, root):
        raise DataError(f"{file} is a link to a file outside {root}; copy the file there")
    return load_array(file)


def _by_folder(path: Path, root: Path, hold: bool) -> Labelled:
    files = [(file, folder.name) for folder in _classes(path) for file in _arrays(folder)]
    # The name of a folder is a class whatever it looks like: text.
    return _sequences([file for file, _ in files], np.array([label for _, label in files]), root, hold)


def _by_table(path: Path, hold: bool) -> Dataset:
    """labels.csv: a header `file,label` or `file,label,group`, then one line per sequence."""
    table = path / LABELS
    lines = read_lines(table, ",")
    header = [cell.lower() for cell in lines[0].cells] if lines else []
    if header not in (["file", "label"], ["file", "label", "group"]):
        raise DataError(f"{table} should begin with the line file,label or file,label,group; got {','.join(header)!r}")
    files: dict[Path, list[str]] = {}
    for line in lines[1:]:
        if len(line.cells) != len(header) or not all(line.cells):
            raise DataError(f"{table} holds {','.join(line.cells)!r} as line {line.number}; each is {','.join(header)}")
        name, *rest = line.cells
        said = f"{table} names {name} in line {line.number}"
        file = path / name if name.endswith(".npy") else path / f"{name}.npy"
        if not inside(file, path):
            raise DataError(f"{said}, which is outside {path}; copy it there, or drop the line")
        if not os.path.isfile(file):
            raise DataError(f"{said}, which is not in {path}; correct or drop it")
        if file in files:
            raise DataError(f"{said} again; a sequence has one label: drop one of the lines")
        files[file] = rest
    if not files:
        raise DataError(f"{table} names no files; add a line file,label for each sequence")
    labels, *groups = (tuple(column) for column in zip(*files.values(), strict=True))
    train = _sequences([*files], labels_of_text(labels), path, hold)
    train = replace(train, groups=np.array(groups[0]) if groups else None)
    left = sorted({*_arrays(path)} - files.keys())
    note = [f"{len(left)} files have no line in {LABELS} and are left out, {left[0].name} first"] if left else []
    return Dataset(train=train, notes=tuple(note), texts=labels)


def _sequences(files: Sequence[Path], labels: np.ndarray, root: Path, hold: bool) -> Labelled:
    parts: list[np.ndarray] = []
    for file in files:
        part = _load(file, root)
        part = part[:, None] if part.ndim == 1 else part
        if part.ndim != 2 or not part.size or part.dtype.kind not in "iufb":
            raise DataError(
                f"{file} is {part.dtype} of shape {part.shape}; a sequence is numbers of shape (T,) or (T, C)"
            )
        if parts and part.shape[1] != parts[0].shape[1]:
            raise DataError(
                f"{file} has {part.shape[1]} channels, {files[0].name} has {parts[0].shape[1]}; all must agree"
            )
        bad = np.argwhere(np.isinf(part) if hold else ~np.isfinite(part))
        if len(bad):
            row, column = bad[0].tolist()
            way = f", or {HOLD}" if np.isnan(part[row, column]) else ""
            raise DataError(
                f"{file} holds {part[row, column]}, a missing value, at row {row}, column {column}, counted from 0; "
                f"fill it, or leave the file out{way}"
            )
        parts.append(part)
    return Labelled(Sequences.padded(parts), labels)
