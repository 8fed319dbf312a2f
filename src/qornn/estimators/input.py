"""The X of an estimator: tables, arrays and lists of sequences, read into one padded array."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from qornn.errors import SettingsError
from qornn.estimators.tensors import from_torch
from qornn.tasks.arrays import Sequences


def read(estimator: Any, X: Any, *, fitting: bool) -> Sequences:
    """X as (N, T, C) in its own dtype, checked; in fit, what later X must agree with is kept on the estimator.

    A 2-D X is a table of univariate series, whose number of columns is kept as scikit-learn asks; a 3-D array or a
    list of arrays may have any number of steps.
    """
    X = _unmasked(from_torch(X, "X"))
    _refuse_levels(X)
    if _is_list(X):
        sequences, table = _from_list(X), False
        if fitting:
            _warn_if_swapped(sequences.x.shape)
    elif getattr(X, "ndim", 0) > 3:
        raise SettingsError(f"X has shape {tuple(X.shape)}; give (N, T), (N, T, C), or a list of (T,) or (T, C)")
    elif getattr(X, "ndim", 0) == 3:
        sequences, table = Sequences(_numbers(np.asarray(X), "X"), None), False
        if not sequences.x.size:
            raise SettingsError(f"X of shape {sequences.x.shape} is empty; give at least one sequence of one step")
        if fitting:
            _warn_if_swapped(sequences.x.shape)
    else:
        table = fitting or estimator._table
        options = {"dtype": "numeric", "ensure_all_finite": False, "order": "C"}
        array = validate_data(estimator, X, reset=fitting, **options) if table else check_array(X, **options)
        sequences = Sequences(array[:, :, None], None)
    if sequences.x.dtype.kind == "f" and sequences.x.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # past float64 becomes infinity, refused below
            sequences = Sequences(sequences.x.astype(np.float64), sequences.lengths)
    table_like = sequences.x.shape[2] == 1 and sequences.lengths is None
    _refuse_missing(sequences, table=table_like, held=estimator.missing == "hold")
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


def _warn_if_swapped(shape: tuple[int, ...]) -> None:
    """aeon and sktime have channels before steps; a signal rarely has more than twice as many channels as steps."""
    if shape[2] > 2 * shape[1]:
        warnings.warn(
            f"X of shape {shape} is read as (N, T, C): {shape[1]} steps of {shape[2]} channels; if X is (N, C, T), as "
            "in aeon and sktime, give X.transpose(0, 2, 1)",
            stacklevel=5,
        )


def _refuse_levels(X: Any) -> None:
    """Refuse a DataFrame whose rows or columns have several levels: it would be read as one series per row."""
    if any(getattr(getattr(X, axis, None), "nlevels", 1) > 1 for axis in ("index", "columns")):
        raise SettingsError(
            "X is a DataFrame with a MultiIndex; give one series per row, or a list of tables (T, C). "
            "qornn.estimators.sktime takes rows of (instance, time)"
        )


def _unmasked(X: Any) -> Any:
    """Masked samples are missing ones: NaN."""
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
            raise SettingsError(f"sequence {row} is not an array of numbers (T, C): {error}") from error
        part = part[:, None] if part.ndim == 1 else part
        if part.ndim != 2 or not part.size:
            raise SettingsError(
                f"sequence {row} must be (T,) or (T, C) with at least one step, got shape {np.shape(sequence)}"
            )
        if part.shape[1] != (parts[0] if parts else part).shape[1]:
            raise SettingsError(
                f"every sequence must have the same channels: sequence 0 has {parts[0].shape[1]}, "
                f"sequence {row} has {part.shape[1]}; a sequence is (T, C), steps first"
            )
        parts.append(part)
    return Sequences.padded(parts)


def _numbers(x: np.ndarray, what: str) -> np.ndarray:
    if x.dtype.kind == "c":
        raise SettingsError(f"Complex data not supported: {what} is {x.dtype}; give both parts as channels")
    return x if x.dtype.kind in "iufb" else x.astype(np.float64)


def _refuse_missing(sequences: Sequences, *, table: bool, held: bool) -> None:
    """Refuse NaN with its place, unless missing samples are `held`, and infinity."""
    x = sequences.x
    if x.dtype.kind != "f" or np.isfinite(x).all() or (held and not np.isinf(x).any()):
        return
    row, step, channel = np.argwhere(np.isinf(x) if held else ~np.isfinite(x))[0].tolist()
    place = f"row {row}, column {step}" if table else f"sequence {row}, step {step}, channel {channel}"
    found, way = "infinity (inf)", ""
    if np.isnan(x[row, step, channel]):
        found, way = "NaN", ", or hold the last value with missing='hold' and map='rotations'"
    raise SettingsError(
        f"X holds {found}, first at {place}; Input X contains NaN or infinity: fill or drop such rows{way}"
    )
