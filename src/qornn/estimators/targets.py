"""The y of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

from qornn.errors import SettingsError
from qornn.estimators.tensors import from_torch


def targets(estimator: Any, y: Any, n: int, *, numeric: bool = False) -> np.ndarray:
    """y as (N,), one for each sequence."""
    if y is None:
        raise SettingsError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    y = from_torch(y, "y")
    if numeric:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    if len(y) != n:
        raise SettingsError(f"X has {n} sequences but y has {len(y)} targets; found inconsistent numbers of samples")
    return y


def classes_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes in their order, and of each label the number of its class; kinds of labels may be mixed."""
    if y.dtype == object:
        labels = y.tolist()
        missing = next((row for row, label in enumerate(labels) if label is None or label != label), None)
        if missing is not None:
            raise SettingsError(
                f"y holds {labels[missing]} at row {missing}, which is not a label; label or drop that sequence"
            )
        if not all(isinstance(label, str | int | float) for label in labels) or len({*map(type, labels)}) > 1:
            return _classes_of_objects(labels)
        y = y if isinstance(labels[0], str) else np.array(labels)
    if y.dtype.kind != "S":  # which scikit-learn refuses, though nothing is wrong with it here
        check_classification_targets(y)
    return np.unique(y, return_inverse=True)


def _classes_of_objects(labels: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Sorted where they can be compared, else by type and text."""
    found = set(labels)
    try:
        ordered = sorted(found)
    except TypeError:
        ordered = sorted(found, key=lambda label: (type(label).__name__, repr(label)))
    classes = np.empty(len(ordered), object)
    classes[:] = ordered
    numbers = {label: number for number, label in enumerate(ordered)}
    return classes, np.array([numbers[label] for label in labels])
