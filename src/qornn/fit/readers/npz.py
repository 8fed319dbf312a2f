"""Arrays by name, from an .npz file or a folder of .npy files."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from qornn.errors import DataError
from qornn.fit.dataset import UNREADABLE, Dataset, Labelled, as_whole
from qornn.fit.readers.lines import HOLD
from qornn.tasks.arrays import Sequences

NAMES = (
    "x_train, y_train, x_test and y_test, or x and y; with lengths_train, lengths_test or lengths where x is padded, "
    "and groups_train, groups_test or groups where sequences belong together"
)
KINDS, SPLITS = ("x", "y", "groups", "lengths"), ("train", "test")
KNOWN = tuple(f"{kind}{suffix}" for kind in KINDS for suffix in ("", *(f"_{split}" for split in SPLITS)))
ALIKE = 0.7  # of difflib: trian and training are train, length is lengths


def read_npz(path: Path, *, hold: bool = False) -> Dataset:
    """An .npz file: x is (N, T) or (N, T, C), y (N,), lengths (N,) the true lengths of padded sequences."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:  # numpy leaves what it refuses open
            found = {name: file[name] for name in file.files if name in KNOWN}
            names = list(file.files)
    except UNREADABLE as error:
        way = (
            "; write it with numpy.savez, text labels as y.astype(str), sequences of different lengths padded, with an "
            "array `lengths`"
        )
        raise DataError(f"{path} cannot be read as arrays: {error}{way}") from error
    return from_arrays(found, where=str(path), names=names, hold=hold)


def from_arrays(arrays: Mapping[str, np.ndarray], *, where: str, names: list[str], hold: bool = False) -> Dataset:
    """The parts that the names tell; with `hold` samples may be NaN."""
    stray = _stray(names, where)
    whole, split = {"x", "y"} & arrays.keys(), {"x_train", "y_train"} & arrays.keys()
    if whole and split:
        raise DataError(f"{where} holds both {min(whole)} and {min(split)}; keep x, y or x_train, y_train")
    suffix = "_train" if split else ""
    if len(whole | split) != 2:
        raise DataError(f"{where} holds {', '.join(sorted(names)) or 'no arrays'}; needed are {NAMES}")
    tested = {name for name in ("x_test", "y_test") if name in arrays}
    if len(tested) == 1:
        raise DataError(f"{where} holds {min(tested)} alone; x_test and y_test belong together")
    for name in arrays:
        kind, _, of = name.partition("_")
        needed = f"x_{of}" if of else "x"
        if kind in ("lengths", "groups") and needed not in arrays:
            raise DataError(f"{where} holds {name} but no {needed}; rename or leave it out")
    train = _part(arrays, suffix, where, hold)
    test = _part(arrays, "_test", where, hold) if tested else None
    verb = "is" if len(stray) == 1 else "are"
    note = (f"{', '.join(stray)} {verb} left out; names are {NAMES}",) if stray else ()
    return Dataset(train=train, test=test, notes=note)


def near(name: str) -> str | None:
    """The known name that this one nearly matches, or None.

    >>> near("length_train"), near("X"), near("test_x"), near("ids_train")
    ('lengths_train', 'x', 'x_test', None)
    """
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower())
    if plain[:1] in ("", "_"):
        return None
    same = next((known for known in KNOWN if known.replace("_", "") == plain.replace("_", "")), None)
    first, _, last = plain.rpartition("_")
    if same is not None or not first:
        return same or _kind(last)
    for kind, split in ((first, last), (last, first)):  # train_x is x_train
        found = difflib.get_close_matches(split, SPLITS, 1, ALIKE)
        if found and _kind(kind):
            return f"{_kind(kind)}_{found[0]}"
    return None


def _kind(name: str) -> str | None:
    if len(name) > 2 and KINDS[-1].startswith(name):  # len
        return KINDS[-1]
    return next(iter(difflib.get_close_matches(name, KINDS, 1, ALIKE)), None)


def _stray(names: Sequence[str], where: str) -> list[str]:
    """Names of arrays that are not read. A name that nearly matches a known one, or comes twice, is refused."""
    twice = next((name for name in names if names.count(name) > 1), None) if len({*names}) < len(names) else None
    if twice is not None:
        raise DataError(f"{where} holds {twice} twice; keep one of them")
    stray = [name for name in names if name not in KNOWN]
    for name in stray:
        if (meant := near(name)) is not None:
            raise DataError(f"{where} holds {name}; did you mean {meant}? Rename it, or leave it out")
    return stray


def _part(arrays: Mapping[str, np.ndarray], suffix: str, where: str, hold: bool) -> Labelled:
    x, y = arrays[f"x{suffix}"], arrays[f"y{suffix}"]
    name = f"x{suffix} of {where}"
    if x.ndim not in (2, 3) or x.dtype.kind not in "iufb":
        raise DataError(f"{name} is {x.dtype} of shape {x.shape}; give numbers of shape (N, T) or (N, T, C)")
    if not x.size:
        raise DataError(f"{name} is empty, of shape {x.shape}; give at least one sequence of one step")
    lengths = arrays.get(f"lengths{suffix}")
    if lengths is not None:
        lengths = _checked_lengths(lengths, x, f"lengths{suffix} of {where}")
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1 or len(y) != len(x):
        raise DataError(f"y{suffix} of {where} has shape {y.shape} for {len(x)} sequences; give one label each")
    _refuse_missing(x, lengths, f"x{suffix}", where, hold)
    full = x[:, :, None] if x.ndim == 2 else x
    if lengths is not None:  # padding may be anything, NaN too: what is behind the end must not reach arithmetic
        full = np.where((np.arange(full.shape[1]) < lengths[:, None])[:, :, None], full, full.dtype.type(0))
        lengths = None if (lengths == full.shape[1]).all() else lengths
    groups = arrays.get(f"groups{suffix}")
    if groups is not None:
        groups = _groups(groups, len(x), f"groups{suffix}", where)
    return Labelled(Sequences(full, lengths), _labels(y, f"y{suffix}", where), groups)


def _checked_lengths(lengths: np.ndarray, x: np.ndarray, name: str) -> np.ndarray:
    if lengths.shape != (len(x),) or lengths.dtype.kind not in "iu":
        raise DataError(
            f"{name} is {lengths.dtype} of shape {lengths.shape}; give {len(x)} whole numbers, one per sequence"
        )
    bad = np.flatnonzero((lengths < 1) | (lengths > x.shape[1]))
    if len(bad):
        raise DataError(f"{name} is {lengths[bad[0]]} at row {bad[0]}; lengths lie in 1..{x.shape[1]}, the steps of x")
    return lengths.astype(np.int64)


def _refuse_missing(x: np.ndarray, lengths: np.ndarray | None, name: str, where: str, hold: bool) -> None:
    if x.dtype.kind != "f":
        return
    bad = np.isinf(x) if hold else ~np.isfinite(x)
    if lengths is not None:
        inside = np.arange(x.shape[1]) < lengths[:, None]
        bad &= inside if x.ndim == 2 else inside[:, :, None]
    if not bad.any():
        return
    place = np.argwhere(bad)[0].tolist()
    channel = f", channel {place[2]}" if x.ndim == 3 else ""
    missing = np.isnan(x[tuple(place)])
    found, way = ("NaN, a missing value,", f", or {HOLD}") if missing else ("an infinite value", "")
    raise DataError(
        f"{where} holds {found} at row {place[0]}, column {place[1]}{channel}, counted from 0: {name}{place}; fill or "
        f"drop such rows, or give the true lengths in `lengths` if sequences are padded{way}"
    )


def _labels(y: np.ndarray, name: str, where: str) -> np.ndarray:
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8", "replace")
    if y.dtype.kind not in "iufbU":
        raise DataError(f"{name} of {where} is {y.dtype}; labels are numbers or text")
    if y.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(y))
        if len(bad):
            raise DataError(f"{where} holds {y[bad[0]]} as label at row {bad[0]} of {name}; label or drop that row")
    return as_whole(y.astype(np.float64) if y.dtype.kind == "f" else y)


def _groups(groups: np.ndarray, n: int, name: str, where: str) -> np.ndarray:
    """As text: 1 in one part and "1" in the other are the same person."""
    if groups.dtype.kind == "S":
        groups = np.char.decode(groups, "utf-8", "replace")
    if groups.shape != (n,) or groups.dtype.kind not in "iufbU":
        raise DataError(
            f"{name} of {where} is {groups.dtype} of shape {groups.shape}; give {n} numbers or texts, one per sequence"
        )
    missing = groups == "" if groups.dtype.kind == "U" else ~np.isfinite(groups)
    if missing.any():
        row = int(missing.argmax())
        raise DataError(
            f"{where} holds {str(groups[row])!r} at row {row} of {name}, which is not a group; name one, or drop it"
        )
    return as_whole(groups).astype(str)
