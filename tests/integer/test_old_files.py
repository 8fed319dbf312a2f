"""Program files written by qornn 0.1, one of each kind: they open, and give the states and outputs they gave then."""

from pathlib import Path

import numpy as np
import pytest

from qornn.integer.simulate import simulate
from qornn.integer.storage import load

FILES = Path(__file__).parent / "files"
LENGTHS = [12, 7, 1]
OLD = sorted(path.stem for path in FILES.glob("*.qornn") if not path.stem.startswith("retired"))


@pytest.fixture(scope="module")
def answers():
    """Inputs, and the states and outputs that qornn 0.1 made of them."""
    with np.load(FILES / "answers.npz") as found:
        return dict(found)


def test_every_old_file_has_answers(answers):
    assert sorted({key.split(".")[0] for key in answers}) == OLD


@pytest.mark.parametrize("name", OLD)
def test_an_old_file_gives_the_states_and_outputs_it_gave(name, answers):
    program = load(FILES / f"{name}.qornn")
    x, states, y = (answers[f"{name}.{what}"] for what in ("x", "states", "y"))
    found = simulate(program, x, LENGTHS)
    for got, wanted in ((found[0], states), (found[1], y), (program.run(x, LENGTHS), y)):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", OLD)
def test_a_session_of_an_old_file_takes_the_steps_it_took(name, answers):
    program = load(FILES / f"{name}.qornn")
    session = program.session()
    for x_t, h in zip(answers[f"{name}.x"][0], answers[f"{name}.states"][0], strict=True):
        session.step(x_t)
        np.testing.assert_array_equal(session.h, h)


@pytest.mark.parametrize("name", ["dense-per-row-relu-normalised", "dense-raw-scale-mix"])
def test_an_old_file_makes_the_raw_samples_it_made(name, answers):
    program = load(FILES / f"{name}.qornn")
    np.testing.assert_array_equal(program.input.from_floats(answers[f"{name}.floats"]), answers[f"{name}.raw"])
