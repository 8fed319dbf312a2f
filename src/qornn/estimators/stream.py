"""A fitted estimator fed sample by sample."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from qornn.errors import SettingsError
from qornn.estimators.tensors import from_torch
from qornn.estimators.threads import threads
from qornn.train.surroundings import own_torch


class Stream:
    """A sequence that arrives sample by sample: `step` gives the answer so far, in constant memory.

    The answer changes with every whole window. Before the first window it is the answer to no data. A stream keeps the
    network it was made from, also when the estimator is fitted again.
    """

    def __init__(self, estimator: Any, *, integer: bool) -> None:
        self._estimator = copy.copy(estimator)  # fit sets attributes anew; what the copy refers to stays
        self._network = estimator._network
        self._session = estimator.to_program().session() if integer else None
        with own_torch(), threads(0):
            self._runner = None if integer else self._network.runner(stream=True)
        self.reset()

    def reset(self) -> None:
        """Back to the start of a sequence."""
        self._window: list[np.ndarray] = []
        self._state: Any = None
        self._kept: Any = None
        if self._session is not None:
            self._session.reset()
            y = self._session.values[None].astype(np.float64)
        else:
            assert self._runner is not None
            y = self._runner.nothing()
        self._answer = self._estimator._answers(y)[0]

    def step(self, sample: Any) -> Any:
        """Take one sample (C,), or a number where there is one channel; the class or value after it."""
        x = np.asarray(from_torch(sample, "the sample"))
        channels = self._estimator.n_channels_
        if x.size != channels or x.ndim > 1 or x.dtype.kind not in "iufb" or not self._is_known(x):
            raise SettingsError(f"a sample is {channels} finite numbers, one per channel; got {sample!r}")
        self._window.append(x.reshape(channels))
        if len(self._window) == self._estimator.window_:
            self._answer = self._estimator._answers(self._take(np.concatenate(self._window)[None, None]))[0]
            self._window.clear()
        return self._answer

    def _take(self, x: np.ndarray) -> np.ndarray:
        """One step of the network.  # (1, 1, window·C) -> (1, n_o)"""
        if self._session is not None:
            raw = self._network.to_raw(self._session.program, x)
            self._session.step(raw[0, 0])
            return self._session.values[None].astype(np.float64)
        assert self._runner is not None
        with own_torch(), threads(0):
            inputs, self._kept = self._network.step_inputs(x, self._kept)
            y, self._state = self._runner.step(inputs, self._state)
        return y

    def _is_known(self, x: np.ndarray) -> bool:
        """Whether all are finite, or missing where that is held."""
        return bool((np.isfinite(x) | (np.isnan(x) & self._network.holds_missing)).all())
