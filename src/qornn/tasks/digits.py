"""The 8x8 digits that come with scikit-learn, pixel by pixel: a task that needs no file and learns in seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qornn.tasks.base import Split
from qornn.tasks.pixels import Images, Pixels

SPLIT_SEED = 0  # not the run's seed: all runs are compared on the same images


@dataclass(frozen=True, kw_only=True)
class Digits(Pixels):
    """64 pixels p/16; 1197 training, 300 validation and 300 test images, classes in proportion (not in the paper)."""

    name = "digits"
    peak = 16
    side = 8
    pen = 1.4
    box = 8

    def load(self) -> dict[Split, Images]:
        from sklearn.datasets import load_digits

        data = load_digits()
        pixels, labels = data.data.astype(np.uint8), data.target.astype(np.uint8)  # (1797, 64), (1797,)
        shuffled = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
        by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
        # Every sixth image along the sorted classes: each class is shared out in the same proportion.
        turn = np.arange(len(labels)) % 6
        rows: dict[Split, np.ndarray] = {
            "train": by_class[turn > 1],
            "validation": by_class[turn == 1],
            "test": by_class[turn == 0],
        }
        return {split: Images(pixels[chosen], labels[chosen]) for split, chosen in rows.items()}
