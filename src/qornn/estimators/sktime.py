"""The estimators for sktime: X is (N, C, T), or any of sktime's panels. Install with `pip install 'qornn[sktime]'`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from qornn.estimators import classifier, regressor
from qornn.estimators.adapter import QUICK, constructor, lacking, tables

try:
    from sktime.classification.base import BaseClassifier
    from sktime.regression.base import BaseRegressor
except ModuleNotFoundError as error:
    raise lacking("sktime", error) from None

__all__ = ["QORNNClassifier", "QORNNRegressor"]

TAGS = {
    "capability:multivariate": True,
    "capability:unequal_length": True,
    "capability:predict_proba": True,
    "capability:random_state": True,
    "property:randomness": "derandomized",
    "authors": "the authors of qornn",
    "X_inner_mtype": "df-list",  # one table (T_i, C) per sequence
}


class QORNNClassifier(BaseClassifier):
    """sktime's classifier with the parameters of qornn.QORNNClassifier.

    After fit, `estimator_` is that estimator, with `to_program`, `export_c` and `stream`.

    >>> import numpy as np
    >>> from qornn.estimators.sktime import QORNNClassifier
    >>> X = np.sin(np.arange(20) * np.linspace(0.1, 0.9, 16)[:, None, None])  # (16, 1, 20)
    >>> clf = QORNNClassifier(n_hidden=4, max_epochs=2, random_state=0).fit(X, np.arange(16) // 8)
    >>> clf.predict(X).shape
    (16,)
    """

    _tags: ClassVar[dict[str, Any]] = TAGS

    __init__ = constructor(classifier.QORNNClassifier, BaseClassifier)

    def _fit(self, X: Any, y: Any) -> QORNNClassifier:
        self.estimator_ = classifier.QORNNClassifier(**self.get_params(deep=False)).fit(tables(X), y)
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.estimator_.predict(tables(X))

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.estimator_.predict_proba(tables(X))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        return [QUICK, {**QUICK, "map": "bjorck"}]


class QORNNRegressor(BaseRegressor):
    """sktime's regressor with the parameters of qornn.QORNNRegressor, which is `estimator_` after fit.

    >>> import numpy as np
    >>> from qornn.estimators.sktime import QORNNRegressor
    >>> X = np.sin(np.arange(20) * np.linspace(0.1, 0.9, 16)[:, None, None])  # (16, 1, 20)
    >>> reg = QORNNRegressor(n_hidden=4, max_epochs=2, random_state=0).fit(X, np.linspace(0, 1, 16))
    >>> reg.predict(X).shape
    (16,)
    """

    _tags: ClassVar[dict[str, Any]] = TAGS

    __init__ = constructor(regressor.QORNNRegressor, BaseRegressor)

    def _fit(self, X: Any, y: Any) -> QORNNRegressor:
        self.estimator_ = regressor.QORNNRegressor(**self.get_params(deep=False)).fit(tables(X), y)
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.estimator_.predict(tables(X))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        return [QUICK, {**QUICK, "map": "bjorck"}]
