"""What people hand to an estimator: tables, arrays and lists of sequences, read into one padded array."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d, validate_data

from qornn.errors import SettingsError
from qornn.estimators.tensors import from_torch
from qornn.tasks.arrays import Sequences
from qornn.tasks.base import check_count

INT16 = (-(2**15), 2**15 - 1)
STEPS = 32  # that window="auto" leaves at least


def read(estimator: Any, X: Any, *, fitting: bool) -> Sequences:
    """X as (N, T, C) in its own dtype, checked; in fit, what later X must agree with is kept on the estimator.

    A 2-D X is a table of univariate series, whose number of columns is kept as scikit-learn asks; a 3-D array or a
    list of arrays may have any number of steps.
    """
    X = _unmasked(from_torch(X, "X"))
    if _is_list(X):
        sequences, table = _from_list(X), False
    elif getattr(X, "ndim", 0) > 3:
        raise SettingsError(f"X has shape {tuple(X.shape)}; give (N, T), (N, T, C), or a list of (T,) or (T, C)")
    elif getattr(X, "ndim", 0) == 3:
        sequences, table = Sequences(_numbers(np.asarray(X), "X"), None), False
        if not sequences.x.size:
            raise SettingsError(f"X of shape {sequences.x.shape} is empty; give at least one sequence of one step")
    else:
        table = fitting or estimator._table
        options = {"dtype": "numeric", "ensure_all_finite": False, "order": "C"}
        array = validate_data(estimator, X, reset=fitting, **options) if table else check_array(X, **options)
        sequences = Sequences(array[:, :, None], None)
    if sequences.x.dtype.kind == "f" and sequences.x.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # past float64 becomes infinity, refused below
            sequences = Sequences(sequences.x.astype(np.float64), sequences.lengths)
    _refuse_missing(sequences, table=sequences.x.shape[2] == 1 and sequences.lengths is None)
    channels = sequences.x.shape[2]
    if fitting:
        estimator._table = table
        if not table:
            estimator.n_features_in_ = channels
        estimator.n_channels_ = channels
    elif channels != estimator.n_channels_:
        raise SettingsError(
            f"X has {channels} channels, but {type(estimator).__name__} was fitted on {estimator.n_channels_}"
        )
    return sequences


def window_of(window: int | str, sequences: Sequences) -> int:
    """Samples a step; "auto": as many as leave STEPS steps of the shortest sequence, and divide the common length."""
    shortest = sequences.x.shape[1] if sequences.lengths is None else int(sequences.lengths.min())
    if window != "auto":
        check_count("window", window)
        check_long_enough(sequences, int(window))
        return int(window)
    most = max(shortest // STEPS, 1)
    whole = [w for w in range(1, most + 1) if shortest % w == 0]
    return most if sequences.lengths is not None else whole[-1]


def check_long_enough(sequences: Sequences, window: int) -> None:
    """Every sequence must fill one window."""
    lengths = np.array([sequences.x.shape[1]]) if sequences.lengths is None else sequences.lengths
    if lengths.min() < window:
        raise SettingsError(
            f"sequence {int(lengths.argmin())} has {lengths.min()} samples, less than one step of window={window}; "
            "drop it, or fit with a smaller window"
        )


def is_raw(sequences: Sequences) -> bool:
    """Whether these are whole numbers that a device reads as they are, in int16."""
    x = sequences.x
    return x.dtype.kind in "iub" and INT16[0] <= int(x.min()) and int(x.max()) <= INT16[1]


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
            raise SettingsError(f"y holds {labels[missing]} at row {missing}, no label; label or drop that sequence")
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


def seed_of(random_state: Any) -> int:
    """A seed below 2^32 from what scikit-learn calls random_state; None asks the system, not a global generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if (
        isinstance(random_state, bool)
        or not isinstance(random_state, int | np.integer)
        or not 0 <= random_state < 2**32
    ):
        raise SettingsError(f"random_state must be None, a seed in 0..2^32-1 or a RandomState, got {random_state!r}")
    return int(random_state)


def mean_and_deviation(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each column in float64, of numbers of any size: squares of 1e-200 would vanish.  # (n, ...) -> two (...)"""
    samples = samples.astype(np.float64)
    unit = np.ldexp(1.0, np.frexp(np.abs(samples).max(0))[1] - 1)  # a power of two: nothing is rounded
    scaled = samples / unit
    with np.errstate(over="ignore"):  # the caller refuses what is not finite
        return scaled.mean(0) * unit, scaled.std(0) * unit


def _unmasked(X: Any) -> Any:
    """Masked samples are missing ones: NaN, which is refused with its place."""
    if isinstance(X, list | tuple) and any(isinstance(part, np.ma.MaskedArray) for part in X):
        return [_unmasked(part) for part in X]
    if not isinstance(X, np.ma.MaskedArray):
        return X
    return np.ma.filled(X.astype(np.float64), np.nan) if np.ma.is_masked(X) else X.data


def _is_list(X: Any) -> bool:
    """Whether X is a list of sequences: of arrays, or of lists whose lengths differ (those of one length: a table)."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype == object and len(X) > 0 and np.ndim(X[0]) > 0
    if not isinstance(X, list | tuple):
        return False
    if len(X) == 0:
        raise SettingsError("X is empty (0 sequences); give at least one")
    if all(getattr(sequence, "ndim", 0) > 0 for sequence in X):
        return True
    if not all(isinstance(sequence, list | tuple | np.ndarray) for sequence in X):
        return False
    nested = any(isinstance(step, list | tuple | np.ndarray) for sequence in X for step in sequence[:1])
    return nested or len({len(sequence) for sequence in X}) > 1


def _from_list(X: Any) -> Sequences:
    """One padded array of sequences (T_i,) or (T_i, C)."""
    parts: list[np.ndarray] = []
    for row, sequence in enumerate(X):
        try:
            part = _numbers(np.asarray(sequence), f"sequence {row}")
        except ValueError as error:
            raise SettingsError(f"sequence {row} is no array of numbers (T, C): {error}") from error
        part = part[:, None] if part.ndim == 1 else part
        if part.ndim != 2 or not part.size:
            raise SettingsError(
                f"sequence {row} must be (T,) or (T, C) with at least one step, got shape {np.shape(sequence)}"
            )
        if part.shape[1] != (parts[0] if parts else part).shape[1]:
            raise SettingsError(
                f"every sequence must have the same channels: sequence 0 has {parts[0].shape[1]}, "
                f"sequence {row} has {part.shape[1]}"
            )
        parts.append(part)
    return Sequences.padded(parts)


def _numbers(x: np.ndarray, what: str) -> np.ndarray:
    if x.dtype.kind == "c":
        raise SettingsError(f"Complex data not supported: {what} is {x.dtype}; give both parts as channels")
    return x if x.dtype.kind in "iufb" else x.astype(np.float64)


def _refuse_missing(sequences: Sequences, *, table: bool) -> None:
    x = sequences.x
    if x.dtype.kind != "f" or np.isfinite(x).all():
        return
    row, step, channel = np.argwhere(~np.isfinite(x))[0].tolist()
    place = f"row {row}, column {step}" if table else f"sequence {row}, step {step}, channel {channel}"
    found = "NaN" if np.isnan(x[row, step, channel]) else "infinity (inf)"
    raise SettingsError(f"X holds {found}, first at {place}; Input X contains NaN or infinity: fill or drop such rows")
