"""From data to a problem: what is learned, and what is held out."""

import numpy as np
import pytest

from qornn.errors import DataError, SettingsError
from qornn.fit.dataset import Dataset, Labelled
from qornn.fit.problem import CHOICE, hold_out, kind_of, pose
from qornn.tasks.arrays import Sequences


def part(y, channels=1, seed=0):
    y = np.asarray(y)
    return Labelled(Sequences(np.random.default_rng(seed).normal(size=(len(y), 5, channels)), None), y)


def posed(train, test=None, *, task="auto", test_fraction=None, seed=0, choose=False):
    return pose(Dataset(train=train, test=test), task=task, test_fraction=test_fraction, seed=seed, choose=choose)


@pytest.mark.parametrize(
    ("y", "task", "kind"),
    [
        ([1, 2, 3], "auto", "classify"),
        (["a", "b"], "auto", "classify"),
        ([1.5, 2.0], "auto", "regress"),
        ([1, 2, 3], "regress", "regress"),
        ([1.5, 2.0], "classify", "classify"),
    ],
)
def test_the_task_is_told_by_the_labels_unless_it_is_said(y, task, kind):
    assert kind_of(np.array(y), task) == kind


def test_a_given_test_set_is_left_as_it_is():
    problem = posed(part([0, 1] * 10), part([0, 1, 1]))
    assert len(problem.train) == 20
    assert problem.test.y.tolist() == [0, 1, 1]
    assert not problem.notes
    assert not problem.chooses


def test_a_fifth_of_every_class_is_held_out_by_the_seed():
    y = np.array(["a"] * 50 + ["b"] * 10 + ["c"])
    one, again, other = (posed(part(y), seed=seed) for seed in (3, 3, 4))
    assert sorted(one.test.y.tolist()) == ["a"] * 10 + ["b"] * 2
    assert "c" in one.train.y
    assert (one.test.x.x == again.test.x.x).all()
    assert (one.test.x.x != other.test.x.x).any()
    assert "12 of 61 sequences, drawn with seed 3, are held out" in one.notes[0]
    rows = {row.tobytes() for row in one.train.x.x} & {row.tobytes() for row in one.test.x.x}
    assert not rows


def test_another_fifth_chooses_and_is_neither_trained_nor_tested_on():
    problem = posed(part([0, 1] * 100), part([0, 1] * 5, seed=1), choose=True)
    assert (len(problem.train), len(problem.choice), len(problem.test)) == (160, 40, 10)
    parts = [{row.tobytes() for row in p.x.x} for p in (problem.train, problem.choice, problem.test)]
    assert not parts[0] & parts[1]
    assert not parts[1] & parts[2]


def test_too_few_to_choose_on_are_said():
    problem = posed(part([0, 1] * 20), part([0, 1]), choose=True)
    assert not problem.chooses
    assert len(problem.train) == 40
    assert "training data chooses them" in problem.notes[0]


def test_one_of_each_class_always_stays():
    assert not hold_out(np.array([0, 1, 2]), 0.9, 0, stream=1, by_class=True).any()
    assert hold_out(np.zeros(10), CHOICE, 0, stream=1, by_class=False).sum() == 2


def test_unseen_test_labels_are_counted_as_wrong_and_told():
    problem = posed(part(["a", "b"] * 5), part(["a", "b", "z", "z"]))
    assert "2 test sequences have labels unseen in training (z)" in problem.notes[0]
    assert problem.score(problem.test.y, np.array(["a", "b", "a", "b"])) == 50.0
    assert problem.classes == ("a", "b")


def test_the_baseline_is_training_s_commonest_class_or_mean():
    assert posed(part([0, 0, 0, 1]), part([0, 1, 1, 1])).baseline() == 25.0
    values = posed(part([0.5, 1.5]), part([1.5, 0.5]))
    assert values.baseline() == 0.0
    assert values.score(values.test.y, values.test.y) == 1.0


def test_constant_channels_are_kept_and_told():
    train = part([0, 1] * 5, channels=3)
    train.x.x[:, :, 1] = 7
    problem = pose(
        Dataset(train=train, test=part([0, 1], 3), channels=("ax", "ay", "az")),
        task="auto",
        test_fraction=None,
        seed=0,
        choose=False,
    )
    assert problem.notes == ("channel 1 ('ay') is constant in training and carries no information; it is kept",)
    assert problem.train.x.x.shape[2] == 3


def constant(y):
    return Labelled(Sequences(np.full((len(y), 5, 1), 2.0), None), np.array(y))


@pytest.mark.parametrize(
    ("train", "test", "options", "error", "words"),
    [
        (part(["a"] * 5), None, {}, DataError, "one class only, a;"),
        (part(["a", "b", "c", "a", "b"]), None, {}, DataError, "5 training sequences for 3 classes are too few"),
        (part([1, 2, 3]), None, {}, DataError, "add --task regress"),
        (part([0, 1] * 4), part(["x", "y"]), {}, DataError, r"none of the test labels \(x, y\)"),
        (constant([0, 1] * 4), None, {}, DataError, r"every sample of the training data is \[2.0\]"),
        (part([0, 0, 1, 1]), None, {}, DataError, "4 sequences are too few to hold 20% of them out"),
        (part([0.5]), None, {}, DataError, "1 sequences are too few"),
        (part([0.5] * 4), part([0.5, 1.5]), {}, DataError, "every training value is 0.5"),
        (part([0.5, 1.5]), part([0.5, 0.5]), {}, DataError, "every test value is 0.5"),
        (part(["a", "b"] * 4), None, {"task": "regress"}, SettingsError, "needs numbers, got labels such as 'a'"),
        (part([0, 1] * 4), None, {"task": "clasify"}, SettingsError, "Did you mean 'classify'"),
        (part([0, 1] * 4), part([0, 1]), {"test_fraction": 0.5}, SettingsError, "has a test set already"),
        (part([0, 1] * 4), None, {"test_fraction": 1.0}, SettingsError, "must lie between 0 and 1, got 1.0"),
        (part([0, 1] * 4), None, {"test_fraction": 0.0}, SettingsError, "must lie between 0 and 1, got 0.0"),
    ],
)
def test_what_is_no_problem_is_refused_in_words(train, test, options, error, words):
    with pytest.raises(error, match=words):
        posed(train, test, **options)


def test_values_named_as_classes_are_text():
    problem = posed(part([0.5, 1.5] * 5), part([0.5, 1.5]), task="classify")
    assert problem.classes == ("0.5", "1.5")
