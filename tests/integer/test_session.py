"""Sessions of the native engine: one step after another gives what a run gives."""

import copy
import timeit

import numpy as np
import pytest
from engine_programs import build, data, native

from qornn.errors import SettingsError
from qornn.integer.simulate import SaturationWarning, simulate


@native
@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("steps", ["last", "all"])
def test_session_goes_step_by_step_as_a_run_does(codes, steps):
    program = build(12, codes=codes, steps=steps)
    x = data(program, B=1)
    states, _ = simulate(program, x)
    session = program.session()
    for _ in range(2):  # twice: reset gives back the zero state
        for t in range(x.shape[1]):
            y = session.step(x[0, t])
            np.testing.assert_array_equal(session.h, states[0, t])
            np.testing.assert_array_equal(y, program.readout.outputs(states[0, t]))
        session.reset()
        assert not session.h.any()


@native
def test_a_session_keeps_nothing_of_what_it_gave_or_took():
    program = build(12, n_i=20)
    x = data(program, B=1)[0]
    session = program.session()
    first = session.step(x[0])
    kept = first.copy()
    fork = copy.deepcopy(session)
    second = session.step(x[1])
    assert not (second == kept).all()
    np.testing.assert_array_equal(first, kept)
    session.step(x[2])  # the copy has a state of its own
    np.testing.assert_array_equal(fork.step(x[1].tolist()), second)
    with pytest.warns(SaturationWarning, match="1 of 20"):
        clipped = program.session().step(np.where(np.arange(20) == 3, 300, x[0]), saturate=True)
    want = program.run(np.where(np.arange(20) == 3, 255, x[0])[None, None])[0]
    np.testing.assert_array_equal(clipped, want)


@native
@pytest.mark.parametrize("n_i", [2, 20])
def test_a_session_refuses_what_a_run_refuses(n_i):
    session, codes = build(15, n_i=n_i).session(), build(15, n_i=n_i, codes=True).session()
    good = np.zeros(n_i, int)
    for bad, words in (
        (good[:-1], "raw samples"),
        (good.astype(float), "from_floats"),
        (np.where(good == 0, -257, 0), "saturate=True"),
        (np.where(good == 0, 2**16, 0), "saturate=True"),
        ([[1], [2, 3]], "ragged"),
    ):
        with pytest.raises(SettingsError, match=words):
            session.step(bad)
    for bad, words in (
        (-1, "codes must lie"),
        (n_i, "codes must lie"),
        (2**16, "codes"),
        (1.0, "codes"),
        ([1], "codes"),
    ):
        with pytest.raises(SettingsError, match=words):
            codes.step(bad)
    assert not session.h.any()
    assert not codes.h.any()


@native
def test_a_step_costs_little_more_than_the_engine():
    """22 µs once; 3 on the machine this was written on."""
    program = build(12, n_h=8)
    session, x = program.session(), data(program, B=1)[0, 0]
    best = min(timeit.repeat(lambda: session.step(x), number=200, repeat=15)) / 200
    slow = min(timeit.repeat(lambda: program.accept(x[None, None]), number=200, repeat=15)) / 200
    assert best < slow  # checking a whole batch alone takes longer, on any machine
