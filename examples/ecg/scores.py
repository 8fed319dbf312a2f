"""Figures of a confusion matrix where one class is nearly all: recall, precision and balanced accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
from beats import NAMES

FREQUENT = ("N", "S", "V")  # F and Q are a few hundred beats of a few patients, and a handful


def confusion(truth: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """How many beats of each class got each answer.  # (5, 5): truth, answer"""
    found = np.zeros((len(NAMES), len(NAMES)), np.int64)
    np.add.at(found, (truth, answers), 1)
    return found


def scores(matrix: np.ndarray) -> dict[str, Any]:
    """In percent. A class without beats, or that is never the answer, counts as 0.

    Balanced accuracy is the mean recall of N, S and V, and of all five classes. Every wrong answer counts, F and Q too.
    """
    right, beats, answered = np.diag(matrix), matrix.sum(1), matrix.sum(0)
    recall = dict(zip(NAMES, 100 * right / np.maximum(beats, 1), strict=True))
    precision = dict(zip(NAMES, 100 * right / np.maximum(answered, 1), strict=True))
    found = {
        "balanced_accuracy": float(np.mean([recall[name] for name in FREQUENT])),
        "balanced_accuracy_of_five": float(np.mean([*recall.values()])),
        "accuracy": float(100 * right.sum() / beats.sum()),
        **{f"recall_{name}": float(recall[name]) for name in NAMES},
        **{f"precision_{name}": float(precision[name]) for name in FREQUENT},
    }
    return {key: round(value, 2) for key, value in found.items()} | {"confusion": matrix.tolist()}
