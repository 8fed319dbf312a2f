"""The smoother's properties, and alarms of generated C: every answer that of Python, every alarm counted once."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qornn
from qornn import QORNNClassifier

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
SOURCE = Path(__file__).parents[2] / "examples" / "keywords" / "smoother.c"
KEYWORDS, NONE = 10, -1
SETTINGS = st.tuples(st.integers(1, 16), st.integers(1, 16), st.integers(0, 5)).filter(lambda s: s[1] <= s[0])
ANSWERS = st.lists(st.sampled_from([0, 1, 9, 10, 11]), max_size=60)


@pytest.fixture(scope="module")
def smoother(tmp_path_factory):
    """What the C reports for a list of answers; a reset after `reset_at` of them."""
    library = tmp_path_factory.mktemp("smoother") / "smoother.so"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *strict, str(SOURCE), "-o", str(library)], check=True)
    c = ctypes.CDLL(str(library))

    def reports(answers, window, need, quiet, reset_at=None):
        state = ctypes.create_string_buffer(64)
        assert c.smoother_init(state, KEYWORDS, window, need, quiet) == 0
        found = []
        for i, answer in enumerate(answers):
            if i == reset_at:
                c.smoother_reset(state)
            found.append(c.smoother_step(state, answer))
        return found

    reports.library = c
    return reports


def by_hand(answers, window, need, quiet):
    """The same in Python, from the sentences of smoother.h."""
    kept, wait, found = [], 0, []
    for answer in answers:
        found.append(NONE)
        if wait:
            wait -= 1
            continue
        kept = [*kept, answer][-window:]
        if answer < KEYWORDS and kept.count(answer) >= need:
            found[-1], kept, wait = answer, [], quiet
    return found


@given(answers=ANSWERS, settings=SETTINGS)
def test_it_reports_what_its_description_says(smoother, answers, settings):
    assert smoother(answers, *settings) == by_hand(answers, *settings)


@given(answers=ANSWERS, settings=SETTINGS)
def test_unknown_and_silence_are_never_reported(smoother, answers, settings):
    assert all(found < KEYWORDS for found in smoother(answers, *settings))


@given(answers=ANSWERS, settings=SETTINGS)
def test_alarms_are_apart(smoother, answers, settings):
    at = [i for i, found in enumerate(smoother(answers, *settings)) if found != NONE]
    assert all(gap >= settings[1] + settings[2] for gap in np.diff(at))


def test_one_stray_answer_is_no_alarm_and_a_majority_is_one(smoother):
    assert smoother([11, 3, 11, 11, 11], 4, 2, 3) == [NONE] * 5
    assert smoother([11, 3, 10, 3, 3, 3], 4, 2, 3) == [NONE, NONE, NONE, 3, NONE, NONE]


def test_a_reset_forgets_votes_and_quiet(smoother):
    assert smoother([3, 3], 4, 2, 3) == [NONE, 3]
    assert smoother([3, 3], 4, 2, 3, reset_at=1) == [NONE, NONE]
    assert smoother([3, 3, 4, 4], 4, 2, 3, reset_at=2) == [NONE, 3, NONE, 4]


def test_settings_that_cannot_work_are_refused(smoother):
    state = ctypes.create_string_buffer(64)
    for window, need in ((3, 0), (3, 4), (17, 2)):
        assert smoother.library.smoother_init(state, KEYWORDS, window, need, 0) == -1
        assert smoother.library.smoother_step(state, 0) == NONE


def test_an_alarm_counts_once_and_only_for_its_word_in_time(keywords):
    command = np.array([-1, 3, -1, 3, 5])
    frames, late = keywords.stream.FRAMES, keywords.stream.LATE

    def matched(*alarms):
        return keywords.stream.matched(np.array(alarms).reshape(-1, 2), command)

    assert matched() == (0, 0)
    assert matched((frames, 3)) == (1, 0)
    assert matched((2 * frames + late - 1, 3)) == (1, 0)
    assert matched((2 * frames + late, 3)) == (0, 1)  # too late for clip 1, and clip 3 is not there yet
    assert matched((frames, 5)) == (0, 1)
    assert matched((frames, 3), (frames + 20, 3)) == (1, 1)
    assert matched((frames, 3), (3 * frames, 3), (4 * frames, 5)) == (3, 0)
    assert matched((0, 7)) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 2])
def test_every_answer_in_c_is_that_of_python(keywords, made_clips, tmp_path, window):
    """Also with two frames per step, where the 49th frame of a clip fills no step."""
    x, y = made_clips(480, 0)
    clf = QORNNClassifier(map="rotations", width=8, layers=1, window=window, max_epochs=12, lr=1e-2, random_state=0)
    program = clf.fit(x, y).to_program()
    executable = keywords.stream.build(program, tmp_path / "c")
    stream = keywords.stream.Joined(x[:120], np.where(y[:120] < 10, y[:120], -1))
    answers = keywords.stream.by_program(program, stream)
    found = keywords.stream.streamed(executable, stream, answers, (4, 2, 3))
    assert found["differences"] == 0
    answers[7] = (answers[7] + 1) % 12
    assert keywords.stream.streamed(executable, stream, answers, (4, 2, 3))["differences"] == 1
    assert found["frames"] == 120 * 49
    assert found["hours"] == round(120 * 49 * 0.02 / 3600, 3)
    assert found["missed_percent"] < 30
    lines, _ = keywords.stream.run(executable, x[:120].reshape(-1, 10), (4, 2, 3))
    np.testing.assert_array_equal(lines[:, 0], np.arange(48, 120 * 49, 7))
    assert lines[:, 2].tolist() == by_hand(lines[:, 1].tolist(), 4, 2, 3)
    if shutil.which("nm"):
        assert keywords.stream.allocators(tmp_path / "c") == []
        with (tmp_path / "c" / "smoother.c").open("a") as file:
            file.write("#include <stdlib.h>\nvoid *more(void);\nvoid *more(void) { return malloc(3); }\n")
        assert keywords.stream.allocators(tmp_path / "c") == ["malloc"]


def test_a_program_of_other_inputs_is_refused(keywords, tmp_path):
    with pytest.raises(Exception, match="train it with"):
        keywords.stream.build(qornn.load("zoo:digits-k4"), tmp_path / "c")
