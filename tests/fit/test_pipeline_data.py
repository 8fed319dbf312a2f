"""A fit to other data than classes of equal length: values, windows, groups."""

import json

import numpy as np
import pytest
from fit_waves import asked, waves

import qornn
from qornn.errors import SettingsError
from qornn.fit import width
from qornn.fit.pipeline import fit


def test_a_window_that_the_shortest_test_sequence_fills(tmp_path):
    (x, f), (x_test, f_test) = waves(60, 0), waves(20, 1)
    y, y_test = (np.where(v < 1.5, 0, 1) for v in (f, f_test))
    x, x_test = np.tile(x, (1, 10, 1)), np.tile(x_test, (1, 10, 1))  # 160 steps
    lengths = np.full(20, 160)
    lengths[7] = 64  # 32 steps of two samples
    np.savez(tmp_path / "w.npz", x_train=x, y_train=y, x_test=x_test, y_test=y_test, lengths_test=lengths)
    quick = {"estimator": {"max_epochs": 2, "n_hidden": 64}}
    figures = fit(asked(tmp_path / "w.npz", tmp_path / "out", **quick))
    assert figures["window"] == 2
    assert qornn.load(tmp_path / "out" / "model.qornn").n_i == 2
    assert "A step takes 2 samples" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    with pytest.raises(SettingsError, match="sequence 7 has 64 samples, less than one step of window=65"):
        fit(asked(tmp_path / "w.npz", tmp_path / "other", estimator={"window": 65}))
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_values_are_learned_in_their_own_units(tmp_path):
    x, f = waves(160, 0, channels=2)
    x[:, :, 1] = 3  # constant
    lengths = np.where(np.arange(160) % 2, 16, 14)
    np.savez(tmp_path / "v.npz", x=x, y=100 + 10 * f, lengths=lengths)
    figures = fit(asked(tmp_path / "v.npz", tmp_path / "out", estimator={"max_epochs": 40}))
    assert (figures["task"], figures["metric"]) == ("regress", "R2")
    assert figures["value"] > 0.5 > 0 >= figures["baseline"]
    assert figures["split"] == {"test": "at random, 32 of 160 sequences", "choice": None, "validation": None}
    assert (figures["classes"], figures["latency"]) == ([], None)
    assert any("channel 1 is constant" in note for note in figures["notes"])
    assert any("32 of 160 sequences, drawn with seed 0, are held out" in note for note in figures["notes"])
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "mean absolute error" in html
    assert "14 to 16" in html


def test_class_weight_is_for_classes(tmp_path):
    x, f = waves(20, 0)
    np.savez(tmp_path / "v.npz", x=x, y=f)
    with pytest.raises(SettingsError, match="--class-weight is for classes"):
        fit(asked(tmp_path / "v.npz", tmp_path / "out", estimator={"class_weight": "balanced"}))
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """A rare class and twelve people, fitted by group with balanced accuracy."""
    x, f = waves(360, 0)
    folder = tmp_path_factory.mktemp("grouped")
    y, people = np.where(f < 1, "slow", "fast"), np.arange(360) % 12
    np.savez(folder / "d.npz", x=x, y=y, groups=people)
    return folder / "out", fit(asked(folder / "d.npz", folder / "out", bits=(3, 4), metric="balanced"))


def test_every_part_is_held_out_by_group_and_said_so(grouped):
    out, figures = grouped
    assert figures["split"] == {
        "test": "by group, 2 of 12 groups",
        "choice": "by group, 2 of 10 groups",
        "validation": "by group, 1 of 8 groups",
    }
    html = (out / "report.html").read_text(encoding="utf-8")
    assert all(how in html for how in figures["split"].values())


def test_balanced_accuracy_is_measured_and_chooses(grouped):
    out, figures = grouped
    assert (figures["metric"], figures["baseline"]) == ("balanced accuracy", 50.0)
    recalls = [c["recall"] for c in figures["classes"]]
    assert figures["value"] == pytest.approx(np.mean(recalls))
    assert [c["class"] for c in figures["classes"]] == ["fast", "slow"]
    assert sum(c["test"] for c in figures["classes"]) == figures["test"] == 60
    assert json.loads((out / "fit.json").read_text())["facts"]["metric"] == "balanced accuracy"
    html = (out / "report.html").read_text(encoding="utf-8")
    assert "recall" in html
    assert "precision" in html
    assert "Balanced accuracy" in html


def test_another_metric_is_another_fit(grouped):
    out, _ = grouped
    with pytest.raises(SettingsError, match="metric balanced accuracy, now accuracy"):
        fit(asked(out.parent / "d.npz", out))


def test_the_latency_is_in_the_figures_and_the_report(grouped):
    out, figures = grouped
    latency = figures["latency"]
    assert latency["sequences"] == 60
    assert 1 <= latency["median"] <= latency["p90"] <= 16
    html = (out / "report.html").read_text(encoding="utf-8")
    assert "Warm-up latency" in html
    assert f"{latency['right']} of 60" in html


def test_a_rerun_says_the_same_split_and_latency(grouped, monkeypatch):
    out, figures = grouped
    monkeypatch.setattr(width, "train", None)
    again = fit(asked(out.parent / "d.npz", out, bits=(3, 4), metric="balanced"))
    assert {**again, "seconds": 0} == {**figures, "seconds": 0}
