"""Heartbeats of the MIT-BIH arrhythmia database, split by patient, with or without the intervals between beats.

The file lies in a data folder as ecg/mitbih_aami_beats256.npz; `prepare_beats.py` makes it from the download.
"""

from __future__ import annotations

import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "real"))
from data import Data

from qornn.errors import DataError

FILE = "ecg/mitbih_aami_beats256.npz"
NAMES = ("N", "S", "V", "F", "Q")  # AAMI: normal, supraventricular, ventricular, fusion, unknown
MEMORY = 64  # beats that the running mean of the intervals remembers, about; 8 to 256 were compared on DS1
ONE = 256  # an interval as long as the running mean, as a ratio
LONGEST = 4 * ONE  # longer intervals and ratios are cut: beats that the annotation misses
INTERVALS = {  # which columns of `intervals` the network reads beside the ECG
    "none": [],
    "before": [2],  # known at the beat itself
    "ratios": [2, 3],
    "all": [0, 1, 2, 3],
}


def mitbih(data_dir: str | Path) -> Data:
    """DS1 to train, DS2 to test: one beat per sequence, five channels: the ECG and the four of `intervals`."""
    a = _load(Path(os.path.expanduser(data_dir)) / FILE)
    x = {}
    for part in ("train", "test"):
        channels = intervals(a[f"rr_{part}"], a[f"record_{part}"])
        x[part] = with_intervals(a[f"x_{part}"][:, :, None], channels)  # (N, 256, 5) int16
    return Data(
        x_train=x["train"],
        y_train=a["y_train"].astype(np.int64),
        x_test=x["test"],
        y_test=a["y_test"].astype(np.int64),
        groups=a["record_train"],
        labels=NAMES,
    )


def intervals(rr: np.ndarray, record: np.ndarray) -> np.ndarray:
    """Of each beat: the interval before, the one after, and both as ratios to the record's running mean.

    In samples, and in 1/256 of the mean. The mean is that of the intervals up to the beat, so it needs no later beat.
    The interval after is known one beat later, so a device that reads it answers one beat late. At a record's first
    and last beat one interval is not known (0); the other takes its place.  # (N, 2) -> (N, 4) int16
    """
    rr = np.where(rr == 0, rr[:, ::-1], rr).clip(1, LONGEST)
    before, after = rr.T
    mean = running_mean(before, record)
    ratios = [np.minimum(ONE * part // mean, LONGEST) for part in (before, after)]
    return np.stack([before, after, *ratios], axis=1).astype(np.int16)


def running_mean(values: np.ndarray, record: np.ndarray) -> np.ndarray:
    """The mean up to each beat of its record, of whole numbers; it forgets after MEMORY beats.  # (N,)"""
    found = np.empty(len(values), np.int64)
    total = count = 0
    for i, value in enumerate(values.tolist()):
        if i == 0 or record[i] != record[i - 1]:
            total = count = 0
        if count == MEMORY:
            total -= total // MEMORY
            count -= 1
        total, count = total + value, count + 1
        found[i] = total // count
    return found


def with_intervals(x: np.ndarray, channels: np.ndarray) -> np.ndarray:
    """Sequences (N, T, 1) with further channels (N, C) that stay the same from their first to their last sample."""
    return np.concatenate([x, np.broadcast_to(channels[:, None], (*x.shape[:2], channels.shape[1]))], axis=2)


def reading(data: Data, kind: str) -> Data:
    """The ECG and the intervals of that kind, a name of INTERVALS."""
    channels = [0, *(1 + column for column in INTERVALS[kind])]
    return replace(data, x_train=data.x_train[:, :, channels], x_test=data.x_test[:, :, channels])


def fewer_normal(data: Data, one_in: int) -> Data:
    """The training data with one in every `one_in` normal beats, and all other beats."""
    normal = np.flatnonzero(data.y_train == 0)
    kept = np.sort(np.concatenate([normal[::one_in], np.flatnonzero(data.y_train != 0)]))
    groups = None if data.groups is None else data.groups[kept]
    return replace(data, x_train=data.x_train[kept], y_train=data.y_train[kept], groups=groups)


def _load(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise DataError(f"no file {path}; examples/ecg/prepare_beats.py makes it from the download")
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read: {error}; make it again with prepare_beats.py") from error
