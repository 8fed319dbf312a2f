"""Early classification for aeon: the same network answers after every step, and decides once it is sure enough."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from aeon.classification.early_classification import BaseEarlyClassifier
from sklearn.model_selection import train_test_split

from qornn.errors import SettingsError
from qornn.estimators import classifier
from qornn.estimators.adapter import QUICK, constructor, steps_first
from qornn.estimators.settings import seed_of

POINTS = 20  # lengths at which it may decide, as many as aeon's own take
THRESHOLDS = np.append(np.arange(0.5, 0.99, 0.02), [0.99, 0.995, 0.999])
POINT = 0.01  # of accuracy
CAUTION = 10  # series
HELD = 0.25  # of the training data, to choose the threshold by


class QORNNEarlyClassifier(BaseEarlyClassifier):
    """aeon's early classifier with the parameters of qornn.QORNNClassifier, and `threshold`.

    One recurrent network answers at 20 lengths of a series, s_i = (s_{i-1} + p_i)/2 is its smoothed probability, and it
    decides where the largest s_i reaches `threshold`, at the latest at the full length.

    - `threshold` (None): None chooses it. The network is trained on three quarters of the training data, and the
      smallest threshold is taken whose accuracy on the other quarter is within a point of the best, raised where that
      quarter is small. A number from 0 to 1 is taken as it is, and the network is trained on all data.

    After fit, `threshold_` is the one in use, and `estimator_` the network.
    """

    _tags: ClassVar[dict[str, Any]] = {"capability:multivariate": True, "X_inner_type": "numpy3D"}

    __init__ = constructor(classifier.QORNNClassifier, BaseEarlyClassifier, threshold=None)

    def _fit(self, X: np.ndarray, y: np.ndarray) -> QORNNEarlyClassifier:
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise SettingsError(f"threshold must be in 0..1, or None to choose it, got {self.threshold!r}")
        self.n_timepoints_ = X.shape[2]
        self.points_ = np.unique(np.ceil(np.arange(1, POINTS + 1) * self.n_timepoints_ / POINTS).astype(int))
        seen, held = self._split(y)
        settings = {name: value for name, value in self.get_params(deep=False).items() if name != "threshold"}
        self.estimator_ = classifier.QORNNClassifier(**settings).fit(steps_first(X[seen]), y[seen])
        self.threshold_ = self._chosen(X[held], y[held]) if self.threshold is None else float(self.threshold)
        return self

    def _split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows to train on, and rows to choose the threshold by: none where it is given or a class has one series."""
        rows, classes = np.arange(len(y)), len(self.classes_)
        alone = np.unique(y, return_counts=True)[1].min() < 2 or int(HELD * len(y)) < classes
        if self.threshold is not None or alone:
            return rows, rows[:0]
        return train_test_split(rows, test_size=HELD, stratify=y, random_state=seed_of(self.random_state))

    def _chosen(self, X: np.ndarray, y: np.ndarray) -> float:
        """The smallest threshold within a point of the best accuracy on data that the network has not seen.

        Few series say little, so it counts as if CAUTION more had needed a threshold of 1.
        """
        if not len(y):
            return float(THRESHOLDS[-1])
        smoothed = self._smoothed(X)
        accuracy = np.array([self._scores(*self._decided(smoothed, t)[:2], y)[1] for t in THRESHOLDS])
        smallest = THRESHOLDS[np.argmax(accuracy >= accuracy.max() - POINT)]
        return float((smallest * len(y) + CAUTION) / (len(y) + CAUTION))

    def _smoothed(self, X: np.ndarray) -> np.ndarray:
        """Probabilities at the lengths that X reaches; equal ones before the first window.  # (N, points, classes)"""
        points = self.points_[self.points_ <= X.shape[2]]
        found = np.full((len(X), len(points), self.n_classes_), 1 / self.n_classes_)
        long_enough = np.flatnonzero(points >= self.estimator_.window_)
        for i in long_enough:
            p = self.estimator_.predict_proba(steps_first(X[:, :, : points[i]]))
            found[:, i] = p if i == long_enough[0] else (found[:, i - 1] + p) / 2
        return found

    def _decided(self, smoothed: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each series the point of its decision, or the last; the class; and whether it is decided."""
        if not smoothed.shape[1]:
            none = np.zeros(len(smoothed), int)
            return none, none, none.astype(bool)
        sure = smoothed.max(2) >= threshold
        if smoothed.shape[1] == len(self.points_):
            sure[:, -1] = True
        decided = sure.any(1)
        at = np.where(decided, sure.argmax(1), smoothed.shape[1] - 1)
        return at, smoothed[np.arange(len(at)), at].argmax(1), decided

    def _predict_proba(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        smoothed = self._smoothed(X)
        at, answer, decided = self._decided(smoothed, self.threshold_)
        self.state_info = np.stack([at, decided, answer, self.points_[at]], 1)
        y = np.full((len(X), self.n_classes_), -1.0)
        y[decided] = smoothed[decided, at[decided]] if smoothed.shape[1] else -1.0
        return y, decided

    def _predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y, decided = self._predict_proba(X)
        return np.array([self.classes_[p.argmax()] if d else -1 for p, d in zip(y, decided, strict=True)]), decided

    # X holds all that was seen so far, so what was undecided is decided from it alone.
    _update_predict = _predict
    _update_predict_proba = _predict_proba

    def _score(self, X: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
        return self._scores(*self._decided(self._smoothed(X), self.threshold_)[:2], y)

    def _scores(self, at: np.ndarray, answer: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
        """Harmonic mean of accuracy and 1 − earliness, and both."""
        accuracy = float(np.mean(self.classes_[answer] == y))
        earliness = float(np.mean(self.points_[at] / self.n_timepoints_))
        total = accuracy + 1 - earliness
        return 2 * accuracy * (1 - earliness) / total if total else 0.0, accuracy, earliness

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        return [QUICK, {**QUICK, "threshold": 0.8}]
