"""A folder of .wav files, one folder per class: features of every clip, as examples/keywords makes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from qornn.errors import DataError
from qornn.fit.dataset import Dataset, Labelled
from qornn.fit.mfcc import COEFFICIENTS, RATE, WINDOW, mfcc, one_second, quantized, read_wav
from qornn.fit.readers.npy_folder import inside
from qornn.tasks.arrays import Sequences

CHANNELS = tuple(f"mfcc {n}" for n in range(COEFFICIENTS))
NOTE = f"the network reads {COEFFICIENTS} features per 20 ms of sound; qornn.fit.mfcc makes them from samples"


def holds_clips(path: Path) -> bool:
    """Whether there are .wav files in a folder per class, perhaps within train."""
    return bool(_classes(path) or _classes(path / "train"))


def read_wav_folder(path: Path) -> Dataset:
    """CLASS/*.wav, or train/CLASS/*.wav with test/CLASS/*.wav; 16-bit PCM, one channel, 16 kHz."""
    inner = bool(_classes(path / "train"))
    if inner and set(_classes(path)) - {path / "train", path / "test"}:
        raise DataError(f"{path} holds both train/CLASS/*.wav and CLASS/*.wav; keep one of the layouts")
    train, other = _clips(path / "train" if inner else path, path)
    test = None
    if inner and _classes(path / "test"):
        test, more = _clips(path / "test", path)
        other += more
    notes = [NOTE, *_empty(path / "train" if inner else path)]
    if other:
        notes.append(
            f"{other} clips are not one second long: a shorter one is filled with zeros to a second, a longer one is "
            "read to its end"
        )
    return Dataset(train=train, test=test, channels=CHANNELS, notes=tuple(notes))


def _clips(path: Path, root: Path) -> tuple[Labelled, int]:
    """The features of every clip, and how many clips are not one second long."""
    parts, labels, other = [], [], 0
    for folder in _classes(path):
        for file in _wavs(folder):
            if not inside(file, root):
                raise DataError(f"{file} is a link to a file outside {root}; copy the file there")
            sound = read_wav(file)
            if len(sound) < WINDOW:
                raise DataError(
                    f"{file} holds {len(sound)} samples, less than a frame of {WINDOW}; leave the file out, or save "
                    "signals that are not sound as .npy"
                )
            other += len(sound) != RATE
            clip = sound if len(sound) > RATE else one_second(sound)
            parts.append(quantized(mfcc(clip, gain=float(clip.max()))))  # (T, 10) int8
            labels.append(folder.name)  # a class whatever it looks like: text
    return Labelled(Sequences.padded(parts), np.array(labels)), other


def _classes(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(inner for inner in folder.iterdir() if inner.is_dir() and _wavs(inner))


def _empty(path: Path) -> list[str]:
    """A note on empty folders, which may have been meant as classes; others, such as one of notes, are none."""
    found = sorted(inner.name for inner in path.iterdir() if inner.is_dir() and not any(inner.iterdir()))
    return [f"the folder {found[0]!r} is empty and is no class"] if found else []


def _wavs(folder: Path) -> list[Path]:
    files = (file for file in folder.iterdir() if file.suffix.lower() == ".wav" and not file.name.startswith("."))
    return sorted(file for file in files if file.is_file())
