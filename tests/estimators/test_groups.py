"""Groups: what is held out shares no person, speaker or recording with what is trained on."""

import time
import warnings

import numpy as np
import pytest
import sklearn
import torch
from estimator_waves import labels, small, waves
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from qornn import QORNNClassifier, QORNNRegressor
from qornn.errors import SettingsError
from qornn.estimators.groups import group_numbers, hold_out_groups
from qornn.estimators.training import held_out


def drawn(n=400, groups=20, classes=3, seed=0):
    random = np.random.default_rng(seed)
    return random.integers(0, groups, n), random.integers(0, classes, n)


def hold(groups, classes, fraction=0.1, seed=0):
    return hold_out_groups(groups, classes, fraction, np.random.default_rng(seed))


@pytest.mark.parametrize("fraction", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_no_group_is_on_both_sides_and_the_share_is_near(fraction, seed):
    groups, classes = drawn(seed=seed)
    held = hold(groups, classes, fraction, seed)
    assert not {*groups[held]} & {*groups[~held]}
    assert abs(held.mean() - fraction) < 0.03  # a group is a twentieth
    for c in range(3):
        assert abs(held[classes == c].mean() - fraction) < 0.12


def test_the_seed_decides_which_groups():
    groups, classes = drawn()
    assert (hold(groups, classes, seed=1) == hold(groups, classes, seed=1)).all()
    assert any((hold(groups, classes, seed=1) != hold(groups, classes, seed=s)).any() for s in range(2, 6))


def test_every_class_stays_in_training():
    groups, classes = np.repeat(np.arange(10), 10), np.zeros(100, int)
    classes[groups == 4] = 1  # this group alone has it
    classes[(groups == 5) | (groups == 6)] = 2
    for seed in range(20):
        held = hold(groups, classes, 0.5, seed)
        assert held.any()
        assert {*classes[~held]} == {0, 1, 2}


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.9, 0.99])
def test_of_two_groups_one_is_held_out_and_of_one_none(fraction):
    groups = np.repeat([0, 1], 50)
    assert hold(groups, np.zeros(100), fraction).sum() == 50
    assert not hold(np.zeros(100, int), np.zeros(100), fraction).any()


@pytest.mark.parametrize("seed", range(5))
def test_of_few_uneven_groups_the_nearest_are_found(seed):
    groups = np.repeat(np.arange(5), [50, 24, 13, 7, 6])
    assert {*groups[hold(groups, np.zeros(100), 0.2, seed)].tolist()} == {2, 3}


def test_groups_that_each_have_a_class_alone_are_not_held_out():
    assert not hold(np.repeat([0, 1], 50), np.repeat([0, 1], 50)).any()


def test_ten_thousand_groups_take_no_time():
    groups, classes = np.arange(10_000), drawn(10_000, classes=30)[1]
    began = time.monotonic()
    assert abs(hold(groups, classes).mean() - 0.1) < 0.01
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "groups",
    [
        ["a", "b", "a"],
        (1, 2.5, 1),
        np.array(["x", "y", "x"]),
        np.array([3, 1, 3], np.int8),
        [("anna", 1), ("anna", 2), ("anna", 1)],
        torch.tensor([5, 4, 5]),
    ],
)
def test_labels_are_of_any_hashable_kind(groups):
    assert group_numbers(groups, 3).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([1, 2], "X has 3 sequences but groups has 2 labels; give one per sequence"),
        ([1, None, 2], "groups holds None at row 1, which is not a group"),
        ([1, 2, float("nan")], "groups holds nan at row 2, which is not a group"),
        ([1, [2], 3], r"groups holds \[2\] at row 1; use text or numbers as labels"),
        ("abc", "one label per sequence, got str"),
        ({1, 2, 3}, "one label per sequence, got set"),
        (3, "one label per sequence, got int"),
        (np.zeros((3, 1)), r"one label per sequence, got shape \(3, 1\)"),
    ],
)
def test_what_names_no_groups_is_refused_in_one_line(groups, words):
    with pytest.raises(SettingsError, match=words) as caught:
        group_numbers(groups, 3)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [QORNNClassifier, QORNNRegressor])
@pytest.mark.parametrize("map_", ["bjorck", "rotations"])
def test_what_fit_watches_is_whole_groups(kind, map_):
    X, f = waves(240)
    people = np.array([f"person {i % 12}" for i in range(240)])
    model = kind(
        map=map_, n_hidden=4, max_epochs=2, random_state=0, differences="auto" if map_ == "rotations" else False
    )
    model.fit(X, labels(f) if kind is QORNNClassifier else f, groups=people)
    held = model.held_out_
    assert held.sum() == {"bjorck": 20, "rotations": 60}[map_]
    assert not {*people[held]} & {*people[~held]}
    assert ("validation" in model.history_[0]) == (map_ == "bjorck")  # rotations choose by it, and then train on all


def test_of_few_sequences_no_group_is_held_out():
    assert not held_out(np.arange(60) % 2, 0.1, 0, stratify=True, groups=np.arange(60) % 3).any()


@pytest.mark.parametrize("groups", [np.zeros(240), np.where(waves(240)[1] < 1.5, 0, 1)])
def test_where_no_group_can_be_held_out_nothing_is_and_a_warning_says_so(groups):
    X, f = waves(240)
    with pytest.warns(UserWarning, match="nothing is held out") as caught:
        model = small(max_epochs=1).fit(X, labels(f), groups=groups)
    assert caught[0].filename == __file__
    assert not model.held_out_.any()
    assert "validation" not in model.history_[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(max_epochs=1, validation_fraction=0).fit(X, labels(f), groups=groups)


def test_wrong_groups_leave_the_estimator_unfitted():
    X, f = waves(40)
    model = small(max_epochs=1)
    with pytest.raises(SettingsError, match="groups has 3 labels"):
        model.fit(X, labels(f), groups=[1, 2, 3])
    assert not hasattr(model, "classes_")


class Spy(QORNNClassifier):
    """Tells which groups its fits were given."""

    seen: list = []  # noqa: RUF012  # shared on purpose: cross-validation fits clones

    def fit(self, X, y, groups=None):
        self.seen.append(groups)
        return super().fit(X, y, groups)


@pytest.mark.parametrize("search", [False, True])
def test_routed_groups_reach_both_the_folds_and_fit(search):
    X, f = waves(90)
    people = [f"person {i % 9}" for i in range(90)]
    Spy.seen.clear()
    with sklearn.config_context(enable_metadata_routing=True):
        model = Spy(n_hidden=4, max_epochs=1, random_state=0).set_fit_request(groups=True)
        folds = GroupKFold(3)
        if search:
            GridSearchCV(model, {"bits": [4]}, cv=folds, refit=False).fit(X, labels(f), groups=people)
        else:
            assert len(cross_val_score(model, X, labels(f), params={"groups": people}, cv=folds)) == 3
    assert [len({*groups}) for groups in Spy.seen] == [6, 6, 6]


def test_without_routing_groups_may_be_given_to_the_folds_alone():
    X, f = waves(90)
    people = np.arange(90) % 9
    assert len(cross_val_score(small(max_epochs=1), X, labels(f), groups=people, cv=GroupKFold(3))) == 3
