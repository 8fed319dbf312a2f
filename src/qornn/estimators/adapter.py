"""What the classes for aeon and sktime share: the parameters of the scikit-learn estimators, and X with steps first."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

# Of the libraries' own checks: a network that is trained in a moment.
QUICK = {"n_hidden": 4, "max_epochs": 2, "window": 1, "random_state": 0}


def lacking(library: str, error: ModuleNotFoundError) -> ImportError:
    """One line that names the extra, where it is the library itself that is not installed."""
    if error.name is None or error.name.split(".")[0] != library:
        return error
    return ImportError(f"qornn.estimators.{library} needs {library}; `pip install 'qornn[{library}]'` brings it")


def constructor(inner: type, base: type, **more: Any) -> Callable[..., None]:
    """An __init__ with the parameters of `inner`, and `more` with their defaults; both libraries ask its signature.

    Where missing samples are held, both let them through: their tag says so.
    """
    signature = inspect.signature(inner.__init__)  # type: ignore[misc]
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in more.items()]
    signature = signature.replace(parameters=[*signature.parameters.values(), *added])

    def __init__(self: Any, **settings: Any) -> None:
        given = signature.bind(self, **settings)
        given.apply_defaults()
        for name, value in list(given.arguments.items())[1:]:
            setattr(self, name, value)
        base.__init__(self)  # type: ignore[misc]
        if self.missing == "hold":
            self.set_tags(**{"capability:missing_values": True})

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
