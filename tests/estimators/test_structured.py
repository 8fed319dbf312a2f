"""The estimators on maps that store no matrix: the same units in integers as in floats."""

import numpy as np
import pytest

from qornn import QORNNClassifier, QORNNRegressor
from qornn.maps import make_map

MAPS = ["hadamard", "hadamard-block", "cycle"]


def waves(n=60, steps=40):
    t = np.linspace(0, 1, steps)
    frequency = np.linspace(1, 3, n)
    return np.array([np.sin(2 * np.pi * f * t) for f in frequency]), frequency


@pytest.mark.parametrize("map_", MAPS)
def test_values_are_in_their_own_units(map_):
    X, frequency = waves()
    y = 1000 + 10 * frequency
    model = QORNNRegressor(map=map_, n_hidden=64, max_epochs=8, random_state=0).fit(X, y)
    whole, integer = model.predict(X), model.predict(X, integer=True)
    np.testing.assert_allclose(integer, whole, atol=0.5)
    stream = model.stream(integer=True)
    assert [stream.step(v) for v in X[0]][-1] == pytest.approx(integer[0], abs=1e-3)


@pytest.mark.parametrize("map_", MAPS)
def test_probabilities_are_those_of_the_floats(map_):
    X, frequency = waves()
    model = QORNNClassifier(map=map_, n_hidden=64, max_epochs=8, random_state=0).fit(X, frequency > 2)
    np.testing.assert_allclose(model.predict_proba(X, integer=True), model.predict_proba(X), atol=0.05)


def test_a_map_may_be_an_object():
    X, frequency = waves()
    model = QORNNClassifier(map=make_map("hadamard", seed=3), max_epochs=3, random_state=0).fit(X, frequency > 2)
    assert model.to_program().scheme == "paper"  # one scale for U, as for the map's name
