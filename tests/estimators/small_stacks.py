"""Estimators of stacks so small that they train in no time."""

from qornn import QORNNClassifier, QORNNRegressor

TINY = {"map": "rotations", "width": 5, "pairs": 4, "max_epochs": 8, "random_state": 0}


def tiny(**settings):
    return QORNNClassifier(**{**TINY, **settings})


def values(**settings):
    return QORNNRegressor(**{**TINY, **settings})
