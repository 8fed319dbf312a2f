"""The page on defaults is its record, and every variant changes something."""

import json

import defaults
import numpy as np
import pytest

from qornn import QORNNClassifier
from qornn.estimators import single, training


def test_the_page_is_its_record():
    record = json.loads(defaults.RECORD.read_text(encoding="utf-8"))
    assert defaults.PAGE.read_text(encoding="utf-8") == defaults.page(record)
    assert list(record["accuracy"]) == list(defaults.VARIANTS)


@pytest.mark.parametrize(("name", "home"), [("SCALE", single), ("CLIP", training)])
def test_a_constant_is_changed_and_put_back(name, home):
    before = getattr(home, name)
    with defaults._constants({name: "other"}):
        assert getattr(home, name) == "other"
    assert getattr(home, name) == before


def test_each_variant_departs_from_the_defaults():
    given = QORNNClassifier().get_params()
    for variant, changes in defaults.VARIANTS.items():
        same = [key for key in changes if key in given and given[key] == changes[key]]
        assert not same, variant


@pytest.mark.slow
def test_accuracy_is_judged_in_integers_on_what_was_held_out():
    x = np.repeat([[0.0], [1.0]], 40, 0) * np.sin(np.arange(8)) + 0.01
    y = np.repeat(["flat", "wave"], 40)
    parts = defaults._split(x, y, None)
    assert [len(part) for part in parts] == [64, 64, 16, 16]
    assert defaults.judge("waves", "fewer units", {"lr": 1e-2}, *parts) == [100.0, 100.0]
