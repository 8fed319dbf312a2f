"""The page on defaults is its record, and figures are those of what was held out."""

import json

import defaults
import defaults_page
import numpy as np
import pytest

from qornn import QORNNClassifier


def test_the_page_is_its_record():
    record = json.loads(defaults.RECORD.read_text(encoding="utf-8"))
    assert defaults_page.PAGE.read_text(encoding="utf-8") == defaults_page.page(record)


def test_each_variant_departs_from_the_defaults():
    given = QORNNClassifier().get_params()
    for variant, changes in defaults_page.VARIANTS.items():
        assert all(given[key] != value for key, value in changes.items()), variant


def test_folds_are_of_every_class_and_share_no_group():
    y, groups = np.arange(60) % 3, np.arange(60) // 5
    for _, rest in defaults.splits(y, None):
        assert sorted(np.unique(y[rest], return_counts=True)[1].tolist())[::2] == [6, 7]  # of 20
    for train, rest in defaults.splits(y, groups):
        assert not {*groups[train]} & {*groups[rest]}
    assert len(defaults.splits(np.array([0, 0, 1, 1, 1]), None)) == 2  # a class of two sequences


def test_gaps_hold_the_last_value_and_shorter_sequences_end_in_zeros():
    gap = np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, 3.0]])
    assert defaults._padded([gap, gap[1:2]])[:, :, 0].tolist() == [[0, 2, 2], [2, 0, 0]]
    assert defaults._padded([gap])[0, :, 1].tolist() == [1, 1, 3]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["stack", "nearest", "single"])
def test_what_is_easy_is_learned_by_every_method(method):
    x = (np.repeat([[0.0], [1.0]], 40, 0) * np.sin(np.arange(8)) + 0.01)[:, :, None]
    y = np.repeat([3, 5], 40)
    found = defaults.judged(defaults.method_of(method), x, y, None)
    assert found["accuracy"] == 100
    assert len(found["folds"]) == defaults.FOLDS
