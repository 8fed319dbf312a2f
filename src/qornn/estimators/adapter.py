"""What the classes for aeon and sktime share: the parameters of the scikit-learn estimators, and X with steps first."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

# Of the libraries' own checks: a network that is trained in a moment.
QUICK = {"n_hidden": 4, "max_epochs": 2, "window": 1, "random_state": 0}


def constructor(inner: type, base: type) -> Callable[..., None]:
    """An __init__ with the parameters of `inner`; both libraries ask its signature for their names."""
    signature = inspect.signature(inner.__init__)  # type: ignore[misc]

    def __init__(self: Any, **settings: Any) -> None:
        given = signature.bind(self, **settings)
        given.apply_defaults()
        for name, value in list(given.arguments.items())[1:]:
            setattr(self, name, value)
        base.__init__(self)  # type: ignore[misc]

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def steps_first(X: Any) -> np.ndarray | list[np.ndarray]:
    """(N, C, T), or a list of (C, T_i), as the estimators take it: (N, T, C), or a list of (T_i, C)."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X.transpose(0, 2, 1))
    return [np.ascontiguousarray(np.asarray(part).T) for part in X]


def tables(X: Any) -> list[np.ndarray]:
    """A list of DataFrames (T_i, C) as arrays."""
    return [part.to_numpy() for part in X]
