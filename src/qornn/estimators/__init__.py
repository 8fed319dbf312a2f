"""Scikit-learn estimators: sequences in, classes or values out, an integer program and C from the same object."""

from qornn.estimators.base import QORNNClassifier, QORNNRegressor
from qornn.estimators.stream import Stream

__all__ = ["QORNNClassifier", "QORNNRegressor", "Stream"]
