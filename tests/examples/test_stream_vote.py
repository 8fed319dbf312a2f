"""The leaky vote says what its header promises, and the streaming example gives the answers of Python."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn import export

sys.path.append(str(Path(__file__).parents[1] / "integer"))
from stacks import make_stack

STREAM = Path(__file__).parents[2] / "examples" / "stream"
NONE, FULL = -1, 65535
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
settings = st.tuples(st.integers(1, 32), st.integers(0, 8), st.integers(32768, FULL))


@pytest.fixture(scope="module")
def vote(tmp_path_factory):
    """Decisions after each of some answers, in C; and whether the settings fit."""
    folder = tmp_path_factory.mktemp("vote")
    source = '#include "vote.h"\n'
    source += "int init(vote *v, int n, int leak, int enough) {"
    source += " return vote_init(v, n, (uint8_t)leak, (uint16_t)enough); }\n"
    source += "int step(vote *v, int answer) { return vote_step(v, answer); }\n"
    (folder / "vote.c").write_text(source)
    command = ["gcc", *STRICT, "-shared", "-fPIC", f"-I{STREAM}", "vote.c", "-o", "vote.so"]
    subprocess.run(command, cwd=folder, check=True)
    c = ctypes.CDLL(str(folder / "vote.so"))

    def decisions(answers, classes, leak, enough):
        state = ctypes.create_string_buffer(256)
        fits = c.init(state, classes, leak, enough)
        return fits, [c.step(state, answer) for answer in answers]

    return decisions


def by_hand(answers, classes, leak, enough):
    shares, decided, found = [0] * classes, NONE, []
    for answer in answers:
        shares = [s + ((FULL - s) >> leak) if i == answer else s - (s >> leak) for i, s in enumerate(shares)]
        assert sum(s > FULL // 2 for s in shares) <= 1
        decided = next((i for i, s in enumerate(shares) if s >= enough), decided)
        found.append(decided)
    return found


@given(answers=st.lists(st.integers(-1, 33), max_size=60), settings=settings)
def test_it_decides_what_its_description_says(vote, answers, settings):
    assert vote(answers, *settings) == (0, by_hand(answers, *settings))


def test_a_stray_answer_changes_nothing_and_a_lasting_one_does(vote):
    _, found = vote([2] * 12 + [1] + [2] * 5 + [1] * 12, 3, 3, 40000)
    assert found[0] == NONE
    assert found[11:18] == [2] * 7
    assert found[18] == 2
    assert found[-1] == 1


@pytest.mark.parametrize("settings", [(0, 3, 40000), (33, 3, 40000), (3, 9, 40000), (3, 3, 32767)])
def test_settings_that_do_not_fit_decide_nothing(vote, settings):
    assert vote([0] * 20, *settings) == (-1, [NONE] * 20)


@pytest.mark.slow
def test_the_stream_gives_the_answers_of_python_and_allocates_nothing(tmp_path):
    program = make_stack(7, bits=4, width=6, pairs=5, channels=2, window=2, n_o=3)
    out = export.c(program, tmp_path / "net_c", name="net", vector_steps=1)
    sources = [STREAM / "stream.c", out / "net.c", *sorted(out.glob("qornn_*.c"))]
    command = ["gcc", *STRICT, f"-I{out}", *map(str, sources), "-o", str(tmp_path / "stream")]
    subprocess.run(command, check=True)
    samples = program.input.draw(np.random.default_rng(1), 300).astype(np.int16)
    said = subprocess.run([tmp_path / "stream"], input=samples.tobytes(), capture_output=True, check=True).stdout
    answers, decisions = np.array(said.split(), int).reshape(-1, 2).T
    session = program.session()
    raw = program.input.clip(samples).reshape(len(samples), *program.input.shape)
    assert list(answers) == [int(session.step(x).argmax()) for x in raw]
    assert list(decisions) == by_hand(answers, 3, 3, 40000)
    undefined = subprocess.check_output(["nm", "-u", str(tmp_path / "stream")], text=True)
    assert not {"malloc", "calloc", "realloc", "free"} & {word.split("@")[0] for word in undefined.split()}
