"""Google Speech Commands as arrays: twelve classes for keyword spotting, all 30 words, and MLPerf Tiny's clips.

A clip is a second of speech as 49 frames of 10 int8 features (features.py). The files lie in a data folder as
kws/gsc_v1_mfcc10x49.npz, kws/mlperf_tiny_kws01.npz and, for features.py, kws/gsc_v1_commands_raw16k_test1000.npz.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qornn.errors import DataError

COMMANDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
LABELS = (*COMMANDS, "unknown", "silence")
UNKNOWN, SILENCE = LABELS.index("unknown"), LABELS.index("silence")
# Whole recordings: seconds of one recording sound alike, and a network would know those it was trained on.
NOISES = {
    "train": ("doing_the_dishes", "dude_miaowing", "exercise_bike", "pink_noise"),
    "val": ("white_noise",),
    "test": ("running_tap",),
}
SPLITS = tuple(NOISES)
FILE = "kws/gsc_v1_mfcc10x49.npz"
MLPERF = "kws/mlperf_tiny_kws01.npz"
URL = "http://download.tensorflow.org/data/speech_commands_v0.01.tar.gz"
INT8 = (-128, 127)
SHIFT = 5  # frames
SEED = 12  # draws the unknown words and the silence, the same for every network


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clips:
    """One part of a data set."""

    x: np.ndarray  # (N, 49, 10) int8
    y: np.ndarray  # (N,) numbers of LABELS, or of the 30 words
    source: np.ndarray  # (N,) the speaker's number, or the name of the noise recording, as text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Data:
    """Training, validation and test, as the authors of the data split the speakers."""

    train: Clips
    val: Clips
    test: Clips
    labels: tuple[str, ...]


def keywords12(data_dir: str | Path) -> Data:
    """Ten commands, the other 20 words as "unknown", and noise as "silence".

    Unknown has as many clips as a command has on average. So has silence in training, where noise is varied;
    validation and test take every second of their noise recordings once, as it is.
    """
    arrays = _load(data_dir, FILE)
    words = [str(word) for word in arrays["label_names"]]
    return Data(labels=LABELS, **{split: _twelve(arrays, split, words) for split in SPLITS})


def words30(data_dir: str | Path) -> Data:
    """All 30 words, without silence."""
    arrays = _load(data_dir, FILE)
    return Data(labels=tuple(map(str, arrays["label_names"])), **{split: _spoken(arrays, split) for split in SPLITS})


def mlperf(data_dir: str | Path) -> Clips:
    """MLPerf Tiny's 1,000 clips for accuracy, of Speech Commands v2, with the numbers of LABELS."""
    arrays = _load(data_dir, MLPERF)
    ours = np.array([LABELS.index(str(name).lower()) for name in arrays["label_names"]])
    return Clips(x=arrays["x"], y=ours[arrays["y"]], source=arrays["files"].astype(str))


def with_shifted_copies(clips: Clips, copies: int, seed: int) -> Clips:
    """The clips, and so many copies that begin up to 0.1 s earlier or later; missing frames repeat the edge."""
    rng = np.random.default_rng(seed)
    frames = np.arange(clips.x.shape[1])
    x = [clips.x]
    for _ in range(copies):
        shifts = rng.integers(-SHIFT, SHIFT + 1, len(clips.x))
        at = (frames + shifts[:, None]).clip(0, frames[-1])  # (N, 49)
        x.append(np.take_along_axis(clips.x, at[:, :, None], axis=1))
    y, source = (np.tile(array, copies + 1) for array in (clips.y, clips.source))
    return Clips(x=np.concatenate(x), y=y, source=source)


def noise(data_dir: str | Path, split: str) -> np.ndarray:
    """Every second of a split's noise recordings.  # (N, 49, 10) int8"""
    arrays = _load(data_dir, FILE)
    return np.concatenate([arrays[f"noise1s_{name}"] for name in NOISES[split]])


def _spoken(arrays: dict[str, np.ndarray], split: str) -> Clips:
    x, y, speaker = (arrays[f"{part}_{split}"] for part in ("x", "y", "speaker"))
    return Clips(x=x, y=y.astype(np.int64), source=speaker.astype(str))


def _twelve(arrays: dict[str, np.ndarray], split: str, words: list[str]) -> Clips:
    rng = np.random.default_rng([SEED, SPLITS.index(split)])
    spoken = _spoken(arrays, split)
    y = np.array([LABELS.index(word) if word in COMMANDS else UNKNOWN for word in words])[spoken.y]
    commands, others = np.flatnonzero(y != UNKNOWN), np.flatnonzero(y == UNKNOWN)
    count = round(len(commands) / len(COMMANDS))
    rows = np.sort(np.concatenate([commands, rng.choice(others, count, replace=False)]))
    noise = [_noise(arrays[f"noise1s_{name}"], name) for name in NOISES[split]]
    if split == "train":
        deviation = spoken.x.mean(1).std(0)  # (10,) of the mean spectrum, from speaker to speaker and microphone
        noise = [_more(part, count // len(noise), deviation, rng) for part in noise]
    parts = [Clips(x=spoken.x[rows], y=y[rows], source=spoken.source[rows]), *noise]
    x, y, source = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y", "source"))
    return Clips(x=x, y=y, source=source)


def _noise(x: np.ndarray, name: str) -> Clips:
    return Clips(x=x, y=np.full(len(x), SILENCE), source=np.full(len(x), name))


def _more(noise: Clips, count: int, deviation: np.ndarray, rng: np.random.Generator) -> Clips:
    """So many clips that begin at any frame of the recording, each as if heard through a filter of its own.

    Four recordings are few to learn silence from. A filter multiplies the spectrum, so it adds a constant to each
    coefficient: random ones, with these deviations (10,), make many noises of one recording.
    """
    frames = noise.x.reshape(-1, noise.x.shape[2])
    length = noise.x.shape[1]
    starts = rng.integers(0, len(frames) - length + 1, count)
    x = frames[starts[:, None] + np.arange(length)]  # (count, 49, 10)
    x = np.rint(x + deviation * rng.standard_normal((count, 1, len(deviation)))).clip(*INT8)
    return _noise(x.astype(np.int8), str(noise.source[0]))


def _load(data_dir: str | Path, file: str) -> dict[str, np.ndarray]:
    """Every array of the file, read once: an open .npz reads an array again at each access."""
    path = Path(os.path.expanduser(data_dir)) / file
    if not path.is_file():
        raise DataError(f"no file {path}; docs/keywords.md says what it holds and where the clips come from ({URL})")
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read: {error}; make it again as docs/keywords.md describes") from error
