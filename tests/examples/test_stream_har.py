"""Generated C fed sample by sample gives every answer that Python gives."""

import shutil

import data
import numpy as np
import pytest
import stream_har
from measure_stacks import prepared
from methods import fitted

import qornn
from qornn.errors import QornnError, SettingsError
from qornn.integer.program import IntegerProgram

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
TINY = {"width": 8, "layers": 1, "skip": False, "differences": True, "window": 4, "max_epochs": 8}


@pytest.fixture(scope="module")
def clf(waves):
    return fitted(waves, TINY, 0)[0]


@pytest.fixture(scope="module")
def recordings(waves):
    x = waves.x_test.reshape(-1, 6).copy()
    x[500, 2] = -32768  # as a sensor at its limit gives it
    return [data.Recording(user=2, x=x[:1001], label=np.repeat(waves.y_test, 32)[:1001])]


@pytest.fixture(scope="module")
def built(clf, tmp_path_factory):
    out = tmp_path_factory.mktemp("stream") / "out"
    return out, stream_har.build(clf.to_program(), out)


# 32: as in training; 30: no whole number of windows; 0: one sequence for ever.
@pytest.mark.slow
@pytest.mark.parametrize("reset", [32, 30, 0])
def test_every_answer_in_c_is_that_of_python(clf, recordings, tmp_path, monkeypatch, reset):
    monkeypatch.setattr(stream_har, "on_device", lambda out: {})
    found = stream_har.stream(clf, recordings, tmp_path / "out", reset=reset)
    assert found["samples"] == 1001
    assert found["differences"] == 0
    assert found["window"] == 4
    if reset == 32:  # sequences as it has learned them
        assert found["accuracy"] > 90
        assert 4 <= found["warm_up"]["median"] <= 32
        assert found["warm_up"]["median_seconds"] == found["warm_up"]["median"] / 50
    # sums of 8 outputs and their count; outputs of both mixes, states of the rotations, inputs, last raw samples
    assert found["state_bytes"] == 4 * (8 + 1) + 2 * (8 + 8 + 2 * 8 + 2 * 24 + 6)
    assert found["window_bytes"] == 2 * 24


def test_both_classes_are_among_the_answers(clf, recordings, built):
    answers, _ = stream_har.run(built[1], recordings[0].x, 32)
    assert set(answers) == {0, 1}


# Sequences of 8 samples, 4 per step; the labels 1 and 2 are the answers 0 and 1.
@pytest.mark.parametrize(
    ("labels", "answers", "expected"),
    [
        ([1] * 8, [1, 1, 1, 0, 0, 0, 0, 0], [4]),  # the answer before the first step does not count
        ([1] * 8, [0, 0, 0, 1, 1, 1, 1, 0], [8]),
        ([2] * 8, [1, 1, 1, 1, 1, 1, 1, 0], [None]),  # it ends wrong
        ([1] * 7 + [2], [0] * 8, []),  # two activities
        ([5] * 8, [0] * 8, []),  # none that the network knows
        ([1] * 15, [0] * 15, [4]),  # the second sequence is cut short
    ],
)
def test_warm_up_ends_where_the_answer_stays_right(clf, labels, answers, expected):
    recording = data.Recording(user=2, x=np.zeros((len(labels), 6), np.int16), label=np.array(labels))
    assert stream_har.warm_ups(clf.to_program(), recording, np.array(answers), 8) == expected


def test_latency_is_of_the_sequences_that_end_right():
    found = stream_har.latency([4, 8, None, 12])
    assert (found["median"], found["median_seconds"]) == (8, 0.16)
    assert (found["right"], found["sequences"], found["accuracy"]) == (3, 4, 75.0)
    assert stream_har.latency([])["median_seconds"] is None


@pytest.mark.slow
def test_a_wrong_answer_is_counted(clf, recordings, tmp_path, monkeypatch):
    true = stream_har.run

    def one_wrong(*arguments):
        answers, sizes = true(*arguments)
        answers[500] = 1 - answers[500]
        return answers, sizes

    monkeypatch.setattr(stream_har, "run", one_wrong)
    monkeypatch.setattr(stream_har, "on_device", lambda out: {})
    found = stream_har.stream(clf, recordings, tmp_path / "out", reset=32)
    assert found["differences"] == 2  # against the session, and against the estimator


def test_sizes_do_not_depend_on_the_length_of_the_signal(recordings, built):
    short, long = (stream_har.run(built[1], np.tile(recordings[0].x, (n, 1)), 0)[1] for n in (1, 20))
    assert long.pop("samples") == 20 * short.pop("samples")
    assert short == long


@pytest.mark.slow
def test_the_model_takes_nothing_from_outside_and_malloc_would_be_seen(clf, tmp_path):
    if shutil.which("nm") is None:
        pytest.skip("there is no nm")
    stream_har.build(clf.to_program(), tmp_path / "out")
    assert not stream_har.ALLOCATORS & set(stream_har.external_symbols(tmp_path / "out"))
    with (tmp_path / "out" / "src" / "har" / "har.c").open("a") as file:
        file.write("\n#include <stdlib.h>\nvoid *har_more(void);\nvoid *har_more(void) { return malloc(har_N_I); }\n")
    assert "malloc" in stream_har.external_symbols(tmp_path / "out")


def test_a_sample_that_is_none_stops_the_stream(built):
    for x in (np.full((3, 6), 40000), np.ones((3, 5), np.int16)):
        with pytest.raises(QornnError, match="status 1"):
            stream_har.run(built[1], x, 0)


@pytest.mark.slow
def test_a_program_from_a_file_streams_too(clf, recordings, tmp_path, monkeypatch):
    monkeypatch.setattr(stream_har, "on_device", lambda out: {})
    clf.to_program().save(tmp_path / "net.qornn")
    program = qornn.load(tmp_path / "net.qornn")
    assert isinstance(program, IntegerProgram)
    assert stream_har.stream(program, recordings, tmp_path / "out", reset=32)["differences"] == 0


def test_a_program_of_other_inputs_is_refused(recordings, tmp_path):
    with pytest.raises(SettingsError, match="6 channels"):
        stream_har.stream(qornn.load("zoo:digits-k4"), recordings, tmp_path / "out", reset=32)


@pytest.mark.slow
def test_the_steps_are_exact_on_an_emulated_device(built):
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    found = stream_har.on_device(built[0])
    assert found["exact"]
    assert found["instructions_per_step"] > 8 * (48 + 32) / 2  # a few instructions per weight


def test_only_test_users_are_streamed(recordings):
    assert stream_har.of_user(recordings, None) == stream_har.of_user(recordings, 2) == recordings
    with pytest.raises(SettingsError, match="user 1 is not in the test set; choose from 2"):
        stream_har.of_user(recordings, 1)


@pytest.mark.slow
def test_a_whole_recording_of_a_person(real_data, tmp_path):
    """Little training: what counts here is that C and Python agree on true signals."""
    root = real_data("har/hapt.npz")
    settings = stream_har.SETTINGS | {"max_epochs": 1, "turned": 0}
    clf, _ = fitted(*prepared(data.har(root), settings, 0), 0)
    found = stream_har.stream(clf, stream_har.of_user(data.har_recordings(root), 2)[:1], tmp_path / "out", reset=128)
    assert found["samples"] > 10_000
    assert found["differences"] == 0
