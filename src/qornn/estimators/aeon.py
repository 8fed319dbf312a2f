"""The estimators for aeon: X is (N, C, T), or a list of (C, T_i). Install with `pip install 'qornn[aeon]'`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from qornn.estimators import classifier, regressor
from qornn.estimators.adapter import QUICK, constructor, lacking, steps_first

try:
    from aeon.classification.base import BaseClassifier
    from aeon.regression.base import BaseRegressor

    from qornn.estimators.aeon_early import QORNNEarlyClassifier
except ModuleNotFoundError as error:
    raise lacking("aeon", error) from None

__all__ = ["QORNNClassifier", "QORNNEarlyClassifier", "QORNNRegressor"]

TAGS = {
    "capability:multivariate": True,
    "capability:unequal_length": True,
    "X_inner_type": ["np-list", "numpy3D"],
}


class QORNNClassifier(BaseClassifier):
    """aeon's classifier with the parameters of qornn.QORNNClassifier.

    After fit, `estimator_` is that estimator, with `to_program`, `export_c` and `stream`.
    """

    _tags: ClassVar[dict[str, Any]] = TAGS

    __init__ = constructor(classifier.QORNNClassifier, BaseClassifier)

    def _fit(self, X: Any, y: Any) -> QORNNClassifier:
        self.estimator_ = classifier.QORNNClassifier(**self.get_params(deep=False)).fit(steps_first(X), y)
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.estimator_.predict(steps_first(X))

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.estimator_.predict_proba(steps_first(X))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return QUICK


class QORNNRegressor(BaseRegressor):
    """aeon's regressor with the parameters of qornn.QORNNRegressor, which is `estimator_` after fit."""

    _tags: ClassVar[dict[str, Any]] = TAGS

    __init__ = constructor(regressor.QORNNRegressor, BaseRegressor)

    def _fit(self, X: Any, y: Any) -> QORNNRegressor:
        self.estimator_ = regressor.QORNNRegressor(**self.get_params(deep=False)).fit(steps_first(X), y)
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.estimator_.predict(steps_first(X))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        return QUICK
