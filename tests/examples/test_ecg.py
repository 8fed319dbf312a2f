"""Heartbeats: patients stay apart, intervals stay with their beats, figures are what they are called."""

import sys
from dataclasses import replace

import beats
import measure_beats as measure
import numpy as np
import pytest
import scores

from qornn import QORNNClassifier
from qornn.errors import DataError

STACK = {"map": "rotations", "width": 4, "layers": 1, "window": 8, "max_epochs": 30, "lr": 1e-2, "noise": 0.0}
OWN = {"intervals": "ratios", "one_in": 2, "power": 0.5}


def made_up(records, rng):
    """Beats of a shape each for N and V; S has the shape of N and comes early."""
    y = np.tile([0, 0, 0, 1, 2, 0], 8 * len(records))
    record = np.repeat(np.array(records, np.uint8), len(y) // len(records))
    t = np.arange(256)
    width = np.where(y == 2, 30.0, 8.0)[:, None]
    x = 200 * np.exp(-(((t - 100) / width) ** 2)) + rng.normal(0, 5, (len(y), 256))
    before = np.where(y == 1, 180, 300) + rng.integers(-5, 5, len(y))
    rr = np.stack([before, np.roll(before, -1)], axis=1).astype(np.int32)
    return {"x": np.rint(x).astype(np.int16), "y": y.astype(np.uint8), "record": record, "rr": rr}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng, root = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    parts = {"train": made_up(range(101, 109), rng), "test": made_up((100, 103), rng)}
    (root / "ecg").mkdir()
    np.savez(root / beats.FILE, **{f"{key}_{part}": value for part, a in parts.items() for key, value in a.items()})
    return root


@pytest.fixture(scope="module")
def data(folder):
    return beats.mitbih(folder)


def test_no_record_is_on_both_sides_of_a_fold_and_each_is_held_out_once(data):
    numbered = replace(data, x_train=data.x_train.copy())
    numbered.x_train[:, 0, 0] = data.groups
    seen = []
    for part in measure.folds(numbered):
        kept, held = ({*x[:, 0, 0].tolist()} for x in (part.x_train, part.x_test))
        assert not kept & held
        assert kept == {*part.groups.tolist()}
        seen += sorted(held)
    assert sorted(seen) == sorted({*data.groups.tolist()})


def test_intervals_belong_to_their_beat_and_stay_the_same_along_it(data, folder):
    with np.load(folder / beats.FILE) as a:
        for part, x in (("train", data.x_train), ("test", data.x_test)):
            assert (x[:, :, 0] == a[f"x_{part}"]).all()
            assert (x[:, :, 1] == a[f"rr_{part}"][:, :1]).all()
            assert (x[:, :, 2] == a[f"rr_{part}"][:, 1:]).all()
            assert x.dtype == np.int16
    assert (data.x_train[1:, 0, 1] == data.x_train[:-1, 0, 2]).all()  # the interval after is the next beat's before


def test_ratios_are_to_the_mean_up_to_the_beat():
    rr = np.array([[300, 300], [300, 150], [150, 450], [200, 100], [100, 100]])
    found = beats.intervals(rr, np.array([1, 1, 1, 2, 2]))
    means = [300, 300, 250, 200, 150]
    assert found[:, 2].tolist() == [256 * b // m for b, m in zip(rr[:, 0], means, strict=True)]
    assert found[:, 3].tolist() == [256 * a // m for a, m in zip(rr[:, 1], means, strict=True)]


def test_later_beats_and_other_records_do_not_change_the_mean():
    rng = np.random.default_rng(0)
    values, record = rng.integers(200, 400, 300), np.repeat([1, 2, 3], 100)
    found = beats.running_mean(values, record)
    changed = values.copy()
    changed[150:] += 500
    assert (beats.running_mean(changed, record)[:150] == found[:150]).all()
    assert (beats.running_mean(values[100:200], record[100:200]) == found[100:200]).all()


def test_the_mean_forgets():
    values = np.r_[np.full(200, 300), np.full(4 * beats.MEMORY, 200)]
    found = beats.running_mean(values, np.ones(len(values)))
    assert found[199] == 300
    assert 200 <= found[-1] <= 203  # e^-4 of the step is left: 1.8, and what whole numbers round
    assert found[200 + beats.MEMORY // 4] > 260


def test_missed_beats_are_cut_and_not_wrapped():
    found = beats.intervals(np.array([[300, 90_000], [40_000, 300]]), np.array([1, 1]))
    assert found.min() > 0
    assert found.max() == beats.LONGEST


def test_an_unknown_interval_is_as_long_as_the_known_one():
    found = beats.intervals(np.array([[0, 310], [310, 300], [300, 0]]), np.array([1, 1, 1]))
    assert found[:, :2].tolist() == [[310, 310], [310, 300], [300, 300]]
    assert found[0, 2:].tolist() == [beats.ONE, beats.ONE]


def test_only_normal_beats_are_left_out(data):
    fewer = beats.fewer_normal(data, 3)
    before, after = (np.bincount(d.y_train, minlength=5) for d in (data, fewer))
    assert after[1:].tolist() == before[1:].tolist()
    assert after[0] == -(-before[0] // 3)
    assert len(fewer.groups) == len(fewer.x_train) == len(fewer.y_train)
    assert len(fewer.y_test) == len(data.y_test)


@pytest.mark.parametrize(("kind", "columns"), [("none", [0]), ("before", [0, 3]), ("ratios", [0, 3, 4])])
def test_the_network_reads_what_its_settings_say(data, kind, columns):
    assert (beats.reading(data, kind).x_test == data.x_test[:, :, columns]).all()


def test_figures_of_a_confusion_made_by_hand():
    truth = np.repeat([0, 1, 2, 3], [10, 4, 5, 1])
    answers = np.array([0] * 8 + [1, 2] + [1] * 3 + [0] + [2] * 4 + [3] + [2])
    matrix = scores.confusion(truth, answers)
    assert matrix[:4, :4].tolist() == [[8, 1, 1, 0], [1, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 0]]
    found = scores.scores(matrix)
    assert (found["recall_N"], found["recall_S"], found["recall_V"]) == (80, 75, 80)
    assert (found["precision_S"], found["precision_V"]) == (75, 66.67)  # 3 of 4, 4 of 6: F answered as V counts
    assert found["balanced_accuracy"] == 78.33  # mean of 80, 75 and 80
    assert found["balanced_accuracy_of_five"] == 47  # F has 0, and Q, which has no beats
    assert found["accuracy"] == 75  # 15 of 20


def test_always_normal_has_a_third():
    found = scores.scores(scores.confusion(np.repeat([0, 1, 2], [89, 5, 6]), np.zeros(100, int)))
    assert (found["accuracy"], found["balanced_accuracy"]) == (89, 33.33)


def test_weights_grow_with_rarity_up_to_a_limit():
    y = np.repeat([0, 1, 2], [1600, 100, 1])
    assert measure.class_weights(y, 0.5) == {0: 1, 1: 4, 2: measure.HEAVIEST}
    assert measure.class_weights(y, 0.0) == {0: 1, 1: 1, 2: 1}


@pytest.mark.slow
def test_intervals_tell_early_beats_from_normal_ones(data):
    with_rr = measure.run("stack, RR", data, STACK | OWN, 0, device=False)
    without = measure.run("stack", data, STACK | OWN | {"intervals": "none"}, 0, device=False)
    assert with_rr["recall_S"] > 80
    assert with_rr["balanced_accuracy"] > 85
    assert without["balanced_accuracy"] < with_rr["balanced_accuracy"] - 10  # N and S have one shape
    assert without["recall_V"] > 80


@pytest.mark.slow
def test_figures_are_those_of_the_integers(data, monkeypatch):
    asked = []
    predict = QORNNClassifier.predict

    def seen(self, X, *, integer=False):
        asked.append(integer)
        return predict(self, X, integer=integer)

    monkeypatch.setattr(QORNNClassifier, "predict", seen)
    found = measure.run("stack", data, STACK | OWN | {"max_epochs": 1}, 0, device=False)
    assert asked == [True]
    assert np.sum(found["confusion"]) == len(data.y_test)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic, RR", "lstm, RR"])
def test_the_others_learn_what_is_easy(data, name):
    settings = {"n_hidden": 12, "window": 8, "max_epochs": 30, "lr": 1e-2} if "lstm" in name else {}
    assert measure.run(name, data, settings | OWN, 0, device=False)["recall_V"] > 80


@pytest.mark.slow
def test_the_record_keeps_both_parts(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "RECORD", tmp_path / "ecg.json")
    monkeypatch.setattr(measure, "TRIED", {"stack, RR": [STACK | OWN | {"max_epochs": 1}], "logistic": [OWN]})
    for part in ("--validate", "--record"):
        words = ["measure_beats.py", "--data-dir", str(folder), "--only", "stack, RR", "logistic", "--seeds", "0", part]
        monkeypatch.setattr(sys, "argv", words)
        measure.main()
    found = measure.recorded()
    assert list(found["validation"]) == list(found["test"]) == ["stack, RR", "logistic"]
    beats_held_out = np.sum(found["validation"]["stack, RR"][0]["confusion"])
    assert beats_held_out == 8 * 48  # all of DS1
    assert np.sum(found["test"]["logistic"]["runs"][0]["confusion"]) == 2 * 48


def test_the_chosen_settings_are_the_best_that_were_tried_and_those_that_were_measured():
    record = measure.recorded()
    for name, tried in measure.TRIED.items():
        found = record["validation"][name]
        assert len(found) == len(tried)
        assert all(one["settings"] in tried for one in found)
        best = max(found, key=lambda one: one["balanced_accuracy"])
        assert best["settings"] == tried[0] == record["test"][name]["settings"]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="mitbih_aami_beats256"):
        beats.mitbih(tmp_path)


def test_the_real_beats_are_split_by_patient(real_data):
    folder = real_data(beats.FILE)
    data = beats.mitbih(folder)
    with np.load(folder / beats.FILE) as a:
        assert not {*a["record_train"].tolist()} & {*a["record_test"].tolist()}
    assert np.bincount(data.y_train).tolist() == [45846, 944, 3788, 414, 8]
    assert np.bincount(data.y_test).tolist() == [44239, 1837, 3220, 388, 7]
    assert data.x_train.shape == (51000, 256, 5)
