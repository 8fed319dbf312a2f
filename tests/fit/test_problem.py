"""From data to a problem: what is learned, and what is held out."""

from dataclasses import replace

import numpy as np
import pytest

from qornn.errors import DataError, SettingsError
from qornn.fit.dataset import Dataset, Labelled
from qornn.fit.problem import kind_of, pose
from qornn.tasks.arrays import Sequences


def part(y, channels=1, seed=0):
    y = np.asarray(y)
    return Labelled(Sequences(np.random.default_rng(seed).normal(size=(len(y), 5, channels)), None), y)


def posed(train, test=None, **options):
    options = {"task": "auto", "test_fraction": None, "seed": 0, "choose": False} | options
    return pose(Dataset(train=train, test=test), **options)


def of_people(y, people):
    return replace(part(y), groups=np.array(people, str))


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
    problem = posed(part([0, 1] * 10), part([0, 1, 1], seed=1))
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
    problem = posed(part([0, 1] * 20), part([0, 1], seed=1), choose=True)
    assert not problem.chooses
    assert len(problem.train) == 40
    assert "the training data is used instead" in problem.notes[0]


def test_unseen_test_labels_are_counted_as_wrong_and_told():
    problem = posed(part(["a", "b"] * 5), part(["a", "b", "z", "z"], seed=1))
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
        (part([0, 0, 1, 1]), None, {}, DataError, "4 sequences are too few to hold out 20% for the test"),
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


def test_test_and_choice_hold_out_whole_groups():
    y, people = np.arange(400) % 2, np.arange(400) // 4 % 20
    problem = posed(of_people(y, people), choose=True)
    parts = [{*part.groups.tolist()} for part in (problem.train, problem.choice, problem.test)]
    assert [len(found) for found in parts] == [13, 3, 4]
    assert len(set.union(*parts)) == 20
    assert problem.split == {"test": "by group, 4 of 20 groups", "choice": "by group, 3 of 16 groups"}
    assert "80 of 400 sequences, drawn with seed 0, are held out (by group, 4 of 20 groups)" in problem.notes[0]


def test_values_are_held_out_by_group_too():
    problem = posed(of_people(np.linspace(0.5, 9.7, 100), np.arange(100) % 10))
    assert len({*problem.test.groups}) == 2
    assert not {*problem.test.groups} & {*problem.train.groups}


def test_groups_of_a_given_test_set_are_told_where_training_has_them():
    train, apart = of_people([0, 1] * 10, np.arange(20) % 5), of_people([0, 1], [7, 8])
    assert posed(train, apart).split["test"] == "given, none of its 2 groups in training"
    problem = posed(train, of_people([0, 1, 0], [3, 4, 7]))
    assert problem.split["test"] == "given, 2 of its 3 groups in training too"
    assert "2 of the 3 groups of the test set are in training too (3, 4)" in problem.notes[0]
    assert len(problem.notes) == 1  # and not once more that sequences are equal


def test_without_groups_the_split_is_said_too():
    assert posed(part([0, 1] * 50), choose=True).split["test"] == "by class, 20 of 100 sequences"
    assert posed(part(np.linspace(0.5, 9.7, 50))).split == {"test": "at random, 10 of 50 sequences", "choice": None}
    assert posed(part([0, 1] * 10), part([0, 1], seed=1)).split["test"] == "given"


def test_windows_on_both_sides_are_told_unless_groups_say_what_belongs_together():
    twice = part([0, 1] * 100)
    x = Sequences(np.repeat(twice.x.x[:100], 2, 0), None)
    notes, people = posed(replace(twice, x=x)).notes, (np.arange(200) % 20).astype(str)
    assert any("test sequences" in note and "with --group COLUMN, or an array `groups`" in note for note in notes)
    assert len(posed(replace(twice, x=x, groups=people)).notes) == 1


def test_balanced_accuracy_is_the_mean_recall_of_the_test_s_classes():
    train, test = part(["a"] * 8 + ["b"] * 4), part(["a"] * 8 + ["b"] * 2 + ["z"], seed=1)
    problem = posed(train, test, metric="balanced")
    assert (problem.metric, problem.point) == ("balanced accuracy", 1.0)
    assert problem.baseline() == pytest.approx(100 / 3)
    answers = np.array(["a"] * 6 + ["b"] * 2 + ["b", "a"] + ["a"])
    assert problem.score(problem.test.y, answers) == pytest.approx(100 * (6 / 8 + 1 / 2 + 0) / 3)
    assert posed(train, test).score(test.y, answers) == pytest.approx(100 * 7 / 11)


def test_a_balanced_metric_is_for_classes():
    with pytest.raises(SettingsError, match="--metric balanced is for classes"):
        posed(part([0.5, 1.5] * 4), metric="balanced")
