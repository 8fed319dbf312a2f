"""The comparison on data made here, its golden figures on the real data, and the table that is its record."""

import json
import sys

import compare
import data
import methods
import numpy as np
import pytest

from qornn import QORNNClassifier
from qornn.estimators.standard import Standard
from qornn.tasks.arrays import Sequences

TINY = {"map": "bjorck", "n_hidden": 12, "window": 4, "max_epochs": 5}


@pytest.fixture(scope="module")
def record(waves):
    """HAR's place taken by waves."""
    return {"har": compare.compare("har", waves, TINY, {"lr": 1e-2}, [0, 1])}


@pytest.mark.slow
def test_every_method_learns_what_is_easy(record):
    found = {name: m["accuracy"] for name, m in record["har"]["methods"].items()}
    assert list(found) == ["qornn", "lstm", "logistic", "nearest"]
    assert min(found.values()) > 80  # a coin has 50


@pytest.mark.slow
def test_seeds_are_listed_and_their_median_is_the_figure(record):
    for name in ("qornn", "lstm"):
        m = record["har"]["methods"][name]
        assert [run["seed"] for run in m["runs"]] == [0, 1]
        assert m["accuracy"] == np.median([run["accuracy"] for run in m["runs"]])
    assert len(record["har"]["methods"]["nearest"]["runs"]) == 1


@pytest.mark.slow
def test_the_accuracy_is_that_of_the_integers(waves, record, monkeypatch):
    clf, _ = methods.fitted(waves, TINY, 0)
    run = record["har"]["methods"]["qornn"]["runs"][0]
    right = clf.predict(waves.x_test, integer=True) == waves.y_test
    assert run["accuracy"] == pytest.approx(100 * right.mean(), abs=1e-4)  # kept to four digits
    assert right.mean() < 1
    assert run["bytes"] == clf.to_program().true_bytes
    monkeypatch.setattr(QORNNClassifier, "predict", lambda self, X, *, integer=False: waves.y_test + integer)
    monkeypatch.setattr(methods, "on_device", lambda clf: {})
    run = methods.qornn(waves, TINY | {"max_epochs": 1}, 0)
    assert (run["accuracy"], run["float_accuracy"]) == (0, 100)


@pytest.mark.slow
def test_bytes_are_what_must_be_kept(waves, record):
    m = record["har"]["methods"]
    n_i, n_h, n_o = 4 * 6, 12, 2
    assert m["lstm"]["bytes"] == 4 * (4 * n_h * (n_i + n_h + 2) + n_o * (n_h + 1))
    assert m["logistic"]["bytes"] == 4 * (18 * 6 + 1)  # one output tells two classes apart
    assert m["nearest"]["bytes"] == 240 * 32 * 6 * 2 + 240


@pytest.mark.slow
def test_only_our_network_is_counted_on_a_device_and_the_others_say_why(record):
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    m = record["har"]["methods"]
    assert m["qornn"]["instructions_per_step"] > m["qornn"]["instructions_per_sample"] > 0
    assert m["qornn"]["flash_bytes"] > m["qornn"]["bytes"]
    for name in ("lstm", "logistic", "nearest"):
        assert m[name]["instructions_per_step"] is None
        assert m[name]["not_measured"] == compare.NO_CODE


def test_the_lstm_sees_what_our_network_sees(waves, monkeypatch):
    """The same sequences held out, the same windows, noise, epochs and batches."""
    seen = []

    def train_in(module):
        true = module.train

        def watched(model, task, **how):
            seen.append((task, how))
            return true(model, task, **how)

        monkeypatch.setattr(module, "train", watched)

    import qornn.estimators.single

    train_in(qornn.estimators.single)
    train_in(methods)
    settings = TINY | {"class_weight": "balanced"}
    methods.fitted(waves, settings, 3)
    methods.lstm(waves, settings, 3)
    (ours, how), (theirs, same) = seen
    assert how == same
    assert ours.noise == theirs.noise > 0
    assert np.array_equal(ours.class_weight, theirs.class_weight)
    for split in ("train", "validation"):
        assert np.array_equal(ours.sequences[split].x, theirs.sequences[split].x)
        assert np.array_equal(ours.targets[split], theirs.targets[split])


def test_features_do_not_mind_a_constant_channel():
    x = np.zeros((3, 40, 2))
    x[:, :, 1] = np.random.default_rng(0).standard_normal((3, 40))
    found = methods.features(x)
    assert found.shape == (3, 18 * 2)
    assert np.isfinite(found).all()


@pytest.mark.slow
def test_the_verdict_sets_the_networks_beside_the_lstm(record):
    found = json.loads(json.dumps(record["har"]))
    lstm = found["methods"]["lstm"] | {"accuracy": 60.0, "bytes": 4000}
    found["methods"] |= {"lstm": lstm, "stack": lstm | {"accuracy": 98.5, "bytes": 100}}
    found["methods"]["qornn"] |= {"accuracy": 50.0, "bytes": 2000}
    found["methods"]["nearest"]["accuracy"] = found["methods"]["logistic"]["accuracy"] = 98.0
    assert compare.verdict("har", found) == (
        "HAR: stack of rotations +38.50 points to the LSTM in 1/40 of its bytes; "
        "single layer -10.00 points to the LSTM in 1/2 of its bytes; most accurate: stack of rotations"
    )
    found["methods"]["nearest"]["accuracy"] = 99.5
    assert compare.verdict("har", found).endswith("most accurate: 1-NN")


@pytest.mark.slow
def test_the_table_goes_between_its_marks(record):
    page = "a\n<!-- real data: by hand -->\nold\n<!-- /real data -->\nz\n"
    made = compare.with_table(page, record)
    assert "| HAR | single layer, 4-bit weights, integers |" in made
    assert "old" not in made
    assert (made[:2], made[-2:]) == ("a\n", "z\n")
    assert compare.with_table(made, record) == made


def test_the_page_is_its_record():
    page = compare.PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- /real data -->") == 1
    if not compare.recorded():
        pytest.skip("nothing was recorded yet")
    assert "| HAR | single layer, 4-bit weights, integers |" in page
    assert compare.with_table(page, compare.recorded()) == page


def test_the_record_is_of_the_settings_that_stand_in_the_example():
    for name, found in compare.recorded().items():
        given = {"qornn": compare.SETTINGS[name], "lstm": compare.SETTINGS[name] | compare.LSTM[name]}
        for method, recorded in found["settings"].items():
            now = compare.resolved(given[method])
            assert {key: now[key] for key in recorded} == recorded  # a parameter that is new since has its default


def test_the_command_says_where_to_get_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["compare.py", "--data-dir", str(tmp_path), "--sets", "forda"])
    with pytest.raises(SystemExit, match=r"error: no file .*aeon-toolkit/FordA\.zip"):
        compare.main()


# UCR archive 2018, DataSummary, error of 1-NN with Euclidean distance.
@pytest.mark.parametrize(("name", "file", "error"), [("ecg5000", "ECG5000", 0.0751), ("forda", "FordA", 0.3348)])
def test_the_nearest_neighbour_errs_as_published(real_data, name, file, error):
    found = methods.nearest(data.SETS[name](real_data(f"ucr/{file}.npz")), {}, 0)
    assert 1 - found["accuracy"] / 100 == pytest.approx(error, abs=5e-5)  # four digits are given


def test_standardising_for_the_lstm_is_that_of_the_estimator(waves):
    standard = Standard.of(Sequences(waves.x_train, None))
    clf = QORNNClassifier(**TINY | {"max_epochs": 1}, random_state=0).fit(waves.x_train, waves.y_train)
    assert np.array_equal(clf.mean_, standard.mean)
    assert np.array_equal(clf.std_, standard.std)
