"""Scikit-learn estimators: sequences in, classes or values out, an integer program and C from the same object.

>>> import numpy as np
>>> from qornn import QORNNClassifier
>>> t = np.linspace(0, 1, 20)
>>> X = np.array([np.sin(2 * np.pi * f * t) for f in np.linspace(1, 3, 60)])  # (60, 20)
>>> y = np.where(np.linspace(1, 3, 60) < 2, "slow", "fast")
>>> clf = QORNNClassifier(random_state=0).fit(X, y)
>>> clf.predict(X[:1], integer=True)
array(['slow'], dtype='<U4')
"""

from qornn.estimators.classifier import QORNNClassifier
from qornn.estimators.regressor import QORNNRegressor
from qornn.estimators.stream import Stream

__all__ = ["QORNNClassifier", "QORNNRegressor", "Stream"]
