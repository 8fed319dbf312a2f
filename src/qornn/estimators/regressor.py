"""A value for every sequence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from qornn.errors import SettingsError
from qornn.estimators.base import Estimator
from qornn.estimators.input import read
from qornn.estimators.settings import weights
from qornn.estimators.standard import mean_and_deviation
from qornn.estimators.targets import targets


class QORNNRegressor(RegressorMixin, Estimator):
    """Predicts one value per sequence with a recurrent network whose weights have `bits` bits.

    The parameters are those of QORNNClassifier, except `class_weight`. Targets are standardised for training.
    Predictions, the program and the exported C answer in the targets' own units.
    """

    def _learn(self, X: Any, y: Any, groups: Any) -> None:
        sequences = read(self, X, fitting=True)
        y = targets(self, y, len(sequences), numeric=True)
        shift, scale = (float(v) for v in mean_and_deviation(y))
        if (y == y[0]).all():
            shift, scale = float(y[0]), 0.0  # the answer to everything
        with np.errstate(over="ignore"):  # refused in words
            centred = y - shift
        if not (np.isfinite(centred).all() and math.isfinite(scale)):
            largest = float(np.abs(y).max())
            raise SettingsError(f"y holds values as large as {largest:.3g}, which overflow float64; divide y first")
        self._fit(sequences, (centred / (scale or 1.0)).astype(np.float32), groups, classes=None)
        self._network.shift, self._network.scale = shift, scale

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions."""
        answers = self.predict(X)
        y = targets(self, y, len(answers), numeric=True)
        return float(r2_score(y, answers, sample_weight=weights(sample_weight, len(answers))))

    def predict(self, X: Any, *, integer: bool = False) -> np.ndarray:
        """The value of each sequence; `integer=True` runs the integer program, as a device would.  # (N,)"""
        return self._answers(self._outputs(X, integer))

    def _answers(self, outputs: np.ndarray) -> np.ndarray:
        return outputs[:, 0]
