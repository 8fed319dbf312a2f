"""Three public data sets as arrays: human activity from a phone, ECG5000 and FordA.

The files lie in a data folder as har/hapt.npz, ucr/ECG5000.npz and ucr/FordA.npz; `prepare.py` makes them from the
downloads.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qornn.errors import DataError

HAPT_URL = (
    "https://archive.ics.uci.edu/static/public/341/"
    "smartphone+based+recognition+of+human+activities+and+postural+transitions.zip"
)
UCR_URL = "https://timeseriesclassification.com/aeon-toolkit/{name}.zip"
SAMPLES = 128  # of a window of HAR, 2.56 s
RATE = 50  # samples of HAR per second
BASIC = 6  # activities; the six transitions between postures that follow are left out, as in UCI HAR


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Data:
    """One data set, split as its authors split it."""

    x_train: np.ndarray  # (N, T, C)
    y_train: np.ndarray  # (N,) whole numbers
    x_test: np.ndarray
    y_test: np.ndarray
    groups: np.ndarray | None  # (N,) who each training sequence is of
    labels: tuple[str, ...]  # names of the classes, in the order of their numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recording:
    """A phone's sensors from start to end, as they came."""

    user: int
    x: np.ndarray  # (T, 6) int16
    label: np.ndarray  # (T,) 1.. as in Data; 0 where nobody said what was done


def har(data_dir: str | Path) -> Data:
    """Six activities of 30 people from raw int16 accelerometer and gyroscope at 50 Hz; nine people are the test set."""
    a = _load(data_dir, "har/hapt.npz", HAPT_URL)
    basic = a["win_label"] <= BASIC
    windows = a["x"][a["win_start"][:, None] + np.arange(SAMPLES)]  # (windows, 128, 6)
    train, test = basic & ~a["win_test"], basic & a["win_test"]
    return Data(
        x_train=windows[train],
        y_train=a["win_label"][train].astype(np.int64),
        x_test=windows[test],
        y_test=a["win_label"][test].astype(np.int64),
        groups=a["win_user"][train],
        labels=tuple(str(name).lower().replace("_", " ") for name in a["label_names"][1 : BASIC + 1]),
    )


def har_windows(data_dir: str | Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    """Windows that overlap by half, cut anew from every labelled part: samples, labels, people, names of the labels."""
    a = _load(data_dir, "har/hapt.npz", HAPT_URL)
    found: list[tuple[np.ndarray, int, int]] = []
    for user, start, end in zip(a["rec_user"], a["rec_start"][:-1], a["rec_start"][1:], strict=True):
        label = a["label"][start:end]
        for part in np.split(np.arange(start, end), np.flatnonzero(np.diff(label)) + 1):
            kind = int(a["label"][part[0]])
            if 1 <= kind <= BASIC:
                begins = range(part[0], part[-1] + 2 - SAMPLES, SAMPLES // 2)
                found += [(a["x"][begin : begin + SAMPLES], kind, int(user)) for begin in begins]
    x, y, users = zip(*found, strict=True)
    labels = tuple(str(name).lower().replace("_", " ") for name in a["label_names"][1 : BASIC + 1])
    return np.stack(x), np.array(y, np.int64), np.array(users, np.int64), labels


def har_recordings(data_dir: str | Path) -> list[Recording]:
    """The recordings of the test users."""
    a = _load(data_dir, "har/hapt.npz", HAPT_URL)
    x, label, starts, tested = a["x"], a["label"], a["rec_start"], np.unique(a["win_user"][a["win_test"]])
    parts = [(int(user), slice(starts[i], starts[i + 1])) for i, user in enumerate(a["rec_user"]) if user in tested]
    return [Recording(user=user, x=x[part], label=label[part]) for user, part in parts]


def ecg5000(data_dir: str | Path) -> Data:
    """Single heartbeats, five classes of very different sizes."""
    return _ucr(data_dir, "ECG5000")


def forda(data_dir: str | Path) -> Data:
    """Engine noise, with or without a certain symptom."""
    return _ucr(data_dir, "FordA")


SETS: dict[str, Callable[[str | Path], Data]] = {"har": har, "ecg5000": ecg5000, "forda": forda}


def _ucr(data_dir: str | Path, name: str) -> Data:
    a = _load(data_dir, f"ucr/{name}.npz", UCR_URL.format(name=name))
    return Data(
        x_train=a["x_train"][:, :, None],
        y_train=a["y_train"].astype(np.int64),
        x_test=a["x_test"][:, :, None],
        y_test=a["y_test"].astype(np.int64),
        groups=None,
        labels=tuple(map(str, np.unique(a["y_train"]))),  # the archive gives them no names
    )


def _load(data_dir: str | Path, file: str, url: str) -> dict[str, np.ndarray]:
    """Every array of the file, read once: an open .npz reads an array again at each access."""
    path = Path(os.path.expanduser(data_dir)) / file
    if not path.is_file():
        raise DataError(
            f"no file {path}; download {url} and turn it into that file with "
            f"`python examples/real/prepare.py DOWNLOAD --data-dir {data_dir}`"
        )
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read: {error}; make it again with examples/real/prepare.py") from error
