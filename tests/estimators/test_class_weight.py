"""Rare classes weigh as much as common ones, whatever the map and however few they are."""

import numpy as np
import pytest

from qornn import QORNNClassifier
from qornn.maps import MAPS


def rare(n=120, few=12):
    """A level that differs little between two classes, one of which is rare."""
    random = np.random.default_rng(0)
    y = np.where(np.arange(n) < few, "rare", "common")
    X = random.normal(0, 1, (n, 8))
    X[y == "rare"] += 0.4
    return X, y


@pytest.mark.parametrize("map_", [*MAPS, "rotations"])
def test_balanced_weights_answer_the_rare_class_more_often_with_every_map(map_):
    X, y = rare()
    units = 136 if map_ == "delay" else 16  # sixteen lines of different lengths
    settings = {"map": map_, "n_hidden": units, "max_epochs": 12, "lr": 1e-2, "random_state": 0, "window": 2}
    plain, balanced = (
        np.mean(QORNNClassifier(**settings, class_weight=weight).fit(X, y).predict(X) == "rare")
        for weight in (None, "balanced")
    )
    assert plain + 0.03 < balanced


@pytest.mark.parametrize("map_", ["bjorck", "rotations"])
def test_a_class_of_one_sequence_is_trained_on(map_):
    X, y = rare(300, 1)
    settings = {"map": map_, "n_hidden": 8, "max_epochs": 2, "differences": "auto" if map_ == "rotations" else False}
    model = QORNNClassifier(**settings, random_state=0, class_weight="balanced").fit(X, y)
    assert model.held_out_.any()
    assert not model.held_out_[0]
    assert np.isfinite([list(epoch.values()) for epoch in model.history_]).all()
