"""Keyword networks: a tiny training end to end on made-up clips, and what the record says of it."""

import json

import numpy as np
import pytest

import qornn

TINY = {"layers": 1, "width": 8, "lr": 1e-2, "max_epochs": 6}


@pytest.fixture(scope="module")
def made(keywords, made_clips):
    """Splits of made-up clips; one test label is wrong."""

    def clips(n, seed):
        x, y = made_clips(n, seed)
        return keywords.data.Clips(x=x, y=y, source=np.arange(n).astype(str))

    data = keywords.data.Data(train=clips(960, 0), val=clips(120, 1), test=clips(240, 2), labels=keywords.data.LABELS)
    data.test.y[5] = 0
    return data


@pytest.fixture
def record(keywords, tmp_path, monkeypatch):
    monkeypatch.setattr(keywords.train, "RECORD", tmp_path / "keywords.json")
    return tmp_path / "keywords.json"


@pytest.mark.slow
def test_a_tiny_network_is_trained_measured_and_kept(keywords, made, record, tmp_path):
    tests = {"accuracy": made.test, "mlperf": made.val}
    found = keywords.train.measured(made, TINY, [0, 1, 2], tests, tmp_path / "kept" / "tiny.qornn")
    runs = found["runs"]
    assert [run["seed"] for run in runs] == [0, 1, 2]
    assert found["accuracy"] == sorted(run["accuracy"] for run in runs)[1]
    assert 90 < found["accuracy"] < 100  # the wrong label: 100 % would mean that nothing was measured
    assert found["mlperf"] == found["validation"]  # the same clips here
    assert found["settings"]["width"] == 8
    program = qornn.load(tmp_path / "kept" / "tiny.qornn")
    assert program.true_bytes == runs[0]["bytes"] == found["bytes"]
    answers = program.run(made.test.x.astype(np.int64)).argmax(1)  # int8 features are what the C reads
    assert runs[0]["accuracy"] == pytest.approx(100 * np.mean(answers == made.test.y), abs=1e-3)
    assert runs[0]["recall"]["silence"] == pytest.approx(100 * np.mean(answers[made.test.y == 11] == 11), abs=1e-3)
    if "not_measured" not in runs[0]:
        assert runs[0]["exact"]
        assert runs[0]["instructions_per_sample"] == runs[0]["instructions_per_step"]  # a frame per step


def test_without_test_sets_none_is_looked_at(keywords, made, monkeypatch):
    monkeypatch.setattr(keywords.train, "on_device", lambda clf: {})
    looked = []
    monkeypatch.setattr(keywords.train, "percent", lambda clf, clips: looked.append(len(clips.y)) or 50.0)
    found = keywords.train.measured(made, TINY | {"max_epochs": 1}, [0], {}, None)
    assert looked == [120, 10]  # validation, and its silence
    assert "accuracy" not in found


def test_settings_in_the_record_are_not_tried_again(keywords, made, record, monkeypatch):
    tried = []

    def trained(data, settings, seed):
        tried.append(settings["width"])
        return None, {"validation": 90.0}

    monkeypatch.setattr(keywords.train, "trained", trained)
    monkeypatch.setattr(keywords.train, "TRIED", {"small": [{"width": 4}, {"width": 8}]})
    keywords.train.validate("small", made)
    monkeypatch.setattr(keywords.train, "TRIED", {"small": [{"width": 8}, {"width": 16}]})
    keywords.train.validate("small", made)
    assert tried == [4, 8, 16]
    assert [entry["settings"]["width"] for entry in json.loads(record.read_text())["small"]["tried"]] == tried


def test_recording_one_network_keeps_the_others(keywords, record):
    for name in ("stream", "large", "small"):
        keywords.train.renew(name, {"of": name})
    keywords.train.renew("large", {"of": "large again"})
    assert list(keywords.train.recorded()) == ["small", "large", "stream"]
    assert keywords.train.recorded()["large"] == {"of": "large again"}
    assert keywords.train.recorded()["small"] == {"of": "small"}
