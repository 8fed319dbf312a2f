"""A readout of the transformed last state: its law, what it can reach, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_files import put, sealed, split
from single import changed
from strategies import random_input, same
from structured_programs import make_program

from qornn.errors import ProgramError
from qornn.integer.matrices import Cycle
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.requant import LIMIT
from qornn.integer.simulate import simulate
from qornn.integer.state import State
from qornn.integer.storage import load, save


def sylvester(n):
    """By the definition, S_2n = [[S, S], [S, −S]], entry by entry."""
    S = np.ones((1, 1), object)
    while len(S) < n:
        S = np.block([[S, S], [S, -S]])
    return S


def with_readout(readout, k_a=9):
    program = make_program(Cycle(units=readout.V.shape[1]))
    return changed(program, readout=readout, state=State(bits=k_a, alpha=1.0))


@pytest.mark.parametrize("dtype", [np.int16, np.int64])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("n", [2, 4, 64, 512])
def test_outputs_are_those_of_the_matrix_written_out(n, relu, dtype):
    """Also of 16-bit states, whose transform has more bits."""
    rng = np.random.default_rng(n)
    h = rng.choice([-127, 127, 5], (3, n)).astype(dtype)
    h[0] = 127
    seen = h.astype(object) @ sylvester(n)
    assert (np.abs(seen) > 2**15).any() == (n == 512)
    seen = np.maximum(seen, 0) if relu else seen
    V, bias = rng.integers(-8, 8, (5, n)), rng.integers(-100, 100, 5)
    y = IntReadout(V=V, bits=4, bias=bias, scale=1.0, relu=relu, mix=True).outputs(h)
    assert y.dtype == np.int32
    assert (y == seen @ V.T.astype(object) + bias).all()
    V, b_o = rng.normal(size=(5, n)).astype(np.float32), rng.normal(size=5).astype(np.float32)
    total = np.zeros((3, 5), np.float32)
    for j in range(n):
        total = total + seen[:, j, None].astype(np.float32) * V[:, j]
    y = FloatReadout(V=V, b_o=b_o, scale=0.25, relu=relu, mix=True).outputs(h)
    assert (y == total * np.float32(0.25) + b_o).all()


@pytest.mark.parametrize("k_a", [8, 12])
@pytest.mark.parametrize("n", [16, 64])
def test_the_bound_is_reached(n, k_a):
    """By V with one weight and a row of S as the state, and by V flat and a state whose transform is flat (bent)."""
    top, root, S = 2 ** (k_a - 1) - 1, math.isqrt(n), sylvester(n).astype(int)
    bent = np.ones(1, int)
    while len(bent) < n:
        bent = np.kron(bent, [1, 1, 1, -1])
    V = np.zeros((2, n), int)
    V[0, 3] = 7
    V[1] = -(S @ bent) // root
    readout = IntReadout(V=V, bits=4, bias=[11, -13], scale=1.0, mix=True)
    program = with_readout(readout, k_a)
    transformed, outputs = program.readout.bounds(program.state.top)
    assert transformed.tolist() == [n * top]
    assert outputs.tolist() == [7 * n * top + 11, root * n * top + 13]
    assert readout.outputs(top * S[3])[0] == 7 * n * top + 11
    assert readout.outputs(top * bent)[1] == -(root * n * top + 13)


@given(
    seed=st.integers(0, 2**32 - 1), log_n=st.integers(1, 8), bits=st.integers(2, 8), k_a=st.integers(4, 12),
    relu=st.booleans(),
)  # fmt: skip
def test_no_partial_sum_passes_the_bound(seed, log_n, bits, k_a, relu):
    """States of ±top that follow V: S h then has V's signs, which is as bad as it gets."""
    rng, n, top = np.random.default_rng(seed), 2**log_n, 2 ** (k_a - 1) - 1
    V = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (2, n))
    V[1] = np.where(rng.random(n) < 0.9, 0, V[1])
    readout = IntReadout(V=V, bits=bits, bias=rng.integers(-99, 99, 2), scale=1.0, relu=relu, mix=True)
    bounds = readout.bounds(with_readout(readout, k_a).state.top)[-1]
    S = sylvester(n).astype(np.int64)
    for row, bound in zip(V, bounds - np.abs(readout.bias), strict=True):
        h = top * np.where(S @ row < 0, -1, 1)
        seen = np.maximum(S @ h, 0) if relu else S @ h
        assert np.abs(np.cumsum(row * seen)).max() <= bound
        exact = n * top * np.sqrt(float((row**2).sum()))
        assert exact * (1 - 1e-12) <= bound <= exact + 1 + exact * 1e-12  # float64's own error
        assert bound <= np.abs(row).sum() * n * top


def test_a_bound_past_32_bits_is_refused():
    readout = IntReadout(V=np.full((1, 1024), -8), bits=4, bias=[0], scale=1.0, mix=True)  # ‖V‖₂ = 8·32
    largest = 8 * 32 * 1024 * (2**13 - 1)
    assert with_readout(readout, 14).accumulator_bound == largest < LIMIT
    assert with_readout(replace(readout, bias=[1 - LIMIT + largest]), 14).accumulator_bits == 32
    for wrong, k_a in ((replace(readout, bias=[LIMIT - largest]), 14), (readout, 15)):
        with pytest.raises(ProgramError, match="the 32-bit accumulator holds at most"):
            with_readout(wrong, k_a)


@pytest.mark.parametrize("bits_V", [None, 4])
def test_what_cannot_be_is_refused(bits_V):
    with pytest.raises(ProgramError, match="this program reads out every step"):
        make_program(Cycle(units=8), bits_V=bits_V, mix=True, steps="all")
    with pytest.raises(ProgramError, match="n_h of a readout with mix must be a power of 2, got 12"):
        make_program(Cycle(units=12), bits_V=bits_V, mix=True)
    with pytest.raises(ProgramError, match="the readout's mix must be True or False, got 1"):
        replace(make_program(Cycle(units=8), bits_V=bits_V).readout, mix=1)


@pytest.mark.parametrize("bits_V", [None, 3, 8])
def test_on_disk(tmp_path, bits_V):
    program = make_program(Cycle(units=16), bits_V=bits_V, mix=True)
    save(program, tmp_path / "net.qornn")
    assert same(load(tmp_path / "net.qornn"), program)
    x = random_input(program, 0)
    assert (simulate(load(tmp_path / "net.qornn"), x)[1] == simulate(program, x)[1]).all()
    _, facts, tensors = split((tmp_path / "net.qornn").read_bytes())
    assert facts["readout"].pop("mix") is True  # a file from before says nothing of it
    (tmp_path / "old.qornn").write_bytes(sealed(facts, tensors))
    assert same(load(tmp_path / "old.qornn"), changed(program, readout=replace(program.readout, mix=False)))
    put("readout", "mix", value="yes")(facts, tensors)
    (tmp_path / "edited.qornn").write_bytes(sealed(facts, tensors))
    with pytest.raises(ProgramError, match="the readout's mix must be True or False"):
        load(tmp_path / "edited.qornn")
