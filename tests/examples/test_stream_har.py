"""Generated C fed sample by sample gives every answer that Python gives."""

import shutil

import data
import numpy as np
import pytest
import stream_har
from compare import SETTINGS
from methods import fitted

import qornn
from qornn.errors import QornnError, SettingsError
from qornn.integer.program import IntegerProgram

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
TINY = {"map": "bjorck", "n_hidden": 12, "window": 4, "max_epochs": 5}


@pytest.fixture(scope="module")
def clf(waves):
    return fitted(waves, TINY, 0)[0]


@pytest.fixture(scope="module")
def recordings(waves):
    x = waves.x_test.reshape(-1, 6)
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
        assert found["right_percent"] > 90
    # now, two buffers of 12 states (16 for whole words of weights) and the inputs of a step
    assert found["state_bytes"] == 4 + 2 * 2 * 16 + 2 * 24
    assert found["window_bytes"] == 2 * 24


def test_both_classes_are_among_the_answers(clf, recordings, built):
    answers, _ = stream_har.run(built[1], recordings[0].x, 32)
    assert set(answers) == {0, 1}


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
    with (tmp_path / "out" / "har.c").open("a") as file:
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
    assert found["instructions_per_step"] > 12 * (12 + 24) / 2  # a few instructions a weight


def test_only_test_users_are_streamed(recordings):
    with pytest.raises(SettingsError, match="user 1 is not in the test set; choose from 2"):
        stream_har.of_user(recordings, 1)


@pytest.mark.slow
def test_a_whole_recording_of_a_person(real_data, tmp_path):
    """Little training: what counts here is that C and Python agree on true signals."""
    root = real_data("har/hapt.npz")
    clf, _ = fitted(data.har(root), SETTINGS["har"] | {"max_epochs": 1, "n_hidden": 24}, 0)
    found = stream_har.stream(clf, stream_har.of_user(data.har_recordings(root), 2)[:1], tmp_path / "out", reset=128)
    assert found["samples"] > 10_000
    assert found["differences"] == 0
