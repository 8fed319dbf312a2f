"""MNIST pixel by pixel, in reading order (smnist) or in one fixed random order (pmnist)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from qornn.errors import DataError, SettingsError
from qornn.tasks.base import Split, check_count
from qornn.tasks.data import RemoteFile, locate
from qornn.tasks.idx import read_idx
from qornn.tasks.pixels import CLASSES, Images, Pixels

SIDE = 28
TRAINING_IMAGES = 60_000
PERMUTATION_SEED = 92916  # the one of expRNN and projUNN, so that figures compare
SPLIT_SEED = 0  # not the run's seed: all runs are validated on the same images


def _file(stem: str, kind: str, sha256: str) -> RemoteFile:
    name = f"{stem}-{kind}-ubyte.gz"
    return RemoteFile(
        dataset="MNIST",
        name=name,
        folder="mnist",
        other_folders=("MNIST/raw",),
        other_names=(f"{stem}-{kind}-ubyte", f"{stem}.{kind}-ubyte", f"{stem}.{kind}-ubyte.gz"),
        urls=(
            f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}",
            f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}",
        ),
        checksum=f"sha256:{sha256}",
    )


FILES = {
    "train": (
        _file("train-images", "idx3", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        _file("train-labels", "idx1", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    ),
    "test": (
        _file("t10k-images", "idx3", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        _file("t10k-labels", "idx1", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class SMnist(Pixels):
    """784 pixels p/255 in reading order (paper, sMNIST).

    10 000 of the training images are held out for validation by a fixed shuffle [ours]; validation=0 restores the
    paper's 60 000, and leaves the validation split empty.
    """

    name = "smnist"
    peak = 255
    side = SIDE
    pen = 2.8
    box = 20
    by_ink = True

    validation: int = 10_000
    data_dir: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("validation", self.validation, least=0)
        _check_validation(self.validation, TRAINING_IMAGES)

    def load(self) -> dict[Split, Images]:
        pixels, labels = read_images(*(locate(file, self.data_dir) for file in FILES["train"]))
        _check_validation(self.validation, len(labels))
        order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
        train, held = np.split(order, [len(order) - self.validation])
        return {
            "train": Images(pixels[train], labels[train]),
            "validation": Images(pixels[held], labels[held]),
            "test": read_images(*(locate(file, self.data_dir) for file in FILES["test"])),
        }


@dataclass(frozen=True, kw_only=True)
class PMnist(SMnist):
    """The same pixels in one fixed random order (paper, pMNIST)."""

    name = "pmnist"

    def arrange(self, pixels: np.ndarray) -> np.ndarray:
        return np.take(pixels, permutation(), axis=1)


@cache
def permutation() -> np.ndarray:
    """The order of pMNIST: step t reads pixel permutation()[t]."""
    # The legacy generator on purpose: published results use this very order.
    order = np.random.RandomState(PERMUTATION_SEED).permutation(SIDE * SIDE)
    order.flags.writeable = False
    return order


def read_images(images: Path, labels: Path) -> Images:
    """One MNIST part from its two files, checked against each other."""
    pixels, classes = read_idx(images, ndim=3), read_idx(labels, ndim=1)
    if pixels.shape[1:] != (SIDE, SIDE):
        rows, columns = pixels.shape[1:]
        raise DataError(f"{images} holds images of {rows}x{columns}, not {SIDE}x{SIDE}; put MNIST's own file there")
    if len(pixels) != len(classes):
        counts = f"{images} holds {len(pixels)} images and {labels} {len(classes)} labels"
        raise DataError(f"{counts}; both files must come from the same part of MNIST")
    if len(classes) == 0:
        raise DataError(f"{images} holds no image; put MNIST's own file there")
    if classes.max() >= CLASSES:
        raise DataError(f"{labels} holds the label {classes.max()}, outside 0..9; put MNIST's own file there")
    return Images(pixels.reshape(len(pixels), -1), classes)


def _check_validation(validation: int, available: int) -> None:
    if validation >= available:
        held = f"validation must leave some of the {available} training images, got {validation}"
        raise SettingsError(f"{held}; take at most {available - 1}, or 0 for none")
