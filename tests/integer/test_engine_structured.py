"""The native engine on a W that is not stored: every kind, form and activation, bit for bit as `simulate`."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import random_input
from structured_programs import make_program, make_W, written_dense

sys.path.append(str(Path(__file__).parents[1] / "verify"))
from c_structured import FORMS, KINDS, structured

from qornn.integer.engine import run as engine
from qornn.integer.engine.library import library
from qornn.integer.simulate import simulate
from qornn.structure import transform

pytestmark = pytest.mark.skipif(library() is None, reason="installed without the native engine")
ACTIVATIONS = [("identity", True), ("identity", False), ("relu", False), ("modrelu", True)]


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda pair: pair[0] + ("+bias" if pair[1] else ""))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_states_and_outputs_are_those_of_the_law(kind, form, activation):
    seed = FORMS.index(form) + 10 * KINDS.index(kind)
    parts = {"n_i": 1 + seed % 3, "k_U": 2 + seed % 7, "codes": seed % 4 == 1, "integer": seed % 5 > 0}
    program = structured(kind, form, activation[0], bias=activation[1], seed=seed, bits_V=2 + seed % 7, **parts)
    x = random_input(program, seed, T=40)
    lengths = np.array([40, 1, 17])
    states, y = simulate(program, x, lengths)
    assert activation[0] == "relu" or len(np.unique(states)) > 5
    for layout in ("packed", "bytes"):
        assert (engine.states(program, x, lengths, layout=layout) == states).all()
        assert (engine.run(program, x, lengths, layout=layout) == y).all()


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("hadamard", {"n_h": 2}),
        ("hadamard", {"n_h": 1024, "k_a": 12}),
        ("hadamard-block", {"n_h": 6, "block": 2}),
        ("hadamard-block", {"n_h": 512, "block": 256}),
        ("cycle", {"n_h": 2}),
        ("cycle", {"n_h": 129}),
        ("delay", {"n_h": 10}),
        ("delay", {"n_h": 300, "lines": 16}),
    ],
)
def test_small_and_large(kind, parts):
    program = structured(kind, **parts)
    x = random_input(program, 0, T=20)
    states, y = simulate(program, x)
    assert (engine.states(program, x) == states).all()
    assert (engine.run(program, x) == y).all()


@given(
    kind=st.sampled_from(KINDS),
    form=st.sampled_from(FORMS),
    activation=st.sampled_from(ACTIVATIONS),
    seed=st.integers(0, 2**20),
    gain=st.floats(0.5, 2),
    k_a=st.integers(4, 12),
    shifts=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_any_program(kind, form, activation, seed, gain, k_a, shifts):
    program = structured(
        kind, form, activation[0], bias=activation[1], seed=seed, gain=gain, k_a=k_a, shifts=shifts, n_i=2
    )
    x = random_input(program, seed, T=12)
    assert (engine.states(program, x) == simulate(program, x)[0]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_is_the_sequence_step_by_step(kind):
    program = structured(kind)
    x = random_input(program, 3, B=1, T=25)
    session = program.session()
    for x_t in x[0]:
        y = session.step(x_t)
    states, want = simulate(program, x)
    assert (session.h == states[0, -1]).all()
    assert (y == want[0]).all()


MIXED = [("cycle", n) for n in (2, 4, 64, 512)] + [("hadamard", 32), ("hadamard-block", 16)]


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize(("kind", "n_h"), MIXED)
def test_a_mixed_readout_is_that_of_the_law(kind, n_h, integer, relu):
    program = structured(kind, "multiplier", n_h=n_h, integer=integer, relu=relu, mix=True, bits_V=5, k_a=8)
    x, lengths = random_input(program, n_h, T=30), np.array([30, 1, 17])
    states, y = simulate(program, x, lengths)
    assert (transform(states[0].astype(int)) < 0).any()
    for layout in ("packed", "bytes"):
        assert (engine.run(program, x, lengths, layout=layout) == y).all()
    session = program.session()
    for x_t in x[0]:
        last = session.step(x_t)
    assert (last == y[0]).all()


@pytest.mark.parametrize("bits_V", [None, 4])
def test_a_mixed_readout_of_a_stored_W(bits_V):
    program = written_dense(make_program(make_W("hadamard", np.random.default_rng(0)), bits_V=bits_V, mix=True))
    x = random_input(program, 0, T=10)
    for kernel in engine.available(program, "bytes"):
        assert (engine.run(program, x, kernel=kernel) == simulate(program, x)[1]).all()


def test_a_program_without_a_stored_W_runs_in_c():
    for kind in KINDS:
        program = structured(kind)
        assert engine.runs_native(program)
        assert engine.in_use(program) == "native (portable)"
        assert engine.available(program, "bytes") == ["portable"]
