"""The C engine equals `simulate` on stacks, bit for bit: every kernel, layout and width, sequences and streams."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from stacks import make_stack, stacks

from grids import covering
from qornn.errors import SettingsError
from qornn.integer.engine import run
from qornn.integer.engine.library import library
from qornn.integer.inputs import Codes
from qornn.integer.layout import DEVICE, pairs
from qornn.integer.program import IntegerProgram
from qornn.integer.simulate import SaturationWarning, simulate

pytestmark = pytest.mark.skipif(library() is None, reason="installed without the native integer engine")
WIDTHS = (1, 3, 4, 5, 16, 17, 33)  # about the kernels' blocks of 4 and 16 rows
MEMORIES = [{"differences": True}, {"hold": True, "window": 2}, {"differences": True, "hold": True, "narrow": False}]
T = 37  # more than twice the steps that go through a layer at once


def data(program, B=3, T=T, seed=1):
    drawn = program.input.draw(np.random.default_rng(seed), B * T)
    return program.input.clip(drawn).reshape(B, T, *program.input.shape)


def assert_equal(program, lengths=None, B=3):
    x = data(program, B)
    states, y = simulate(program, x, lengths)
    hows = [{"layout": kind, "kernel": k} for kind in ("bytes", "packed") for k in run.available(program, kind)]
    assert {"layout": "packed", "kernel": "portable"} in hows
    for how in hows:
        np.testing.assert_array_equal(run.states(program, x, lengths, **how), states, err_msg=str(how))
        got = run.run(program, x, lengths, **how)
        assert got.dtype == y.dtype
        np.testing.assert_array_equal(got, y, err_msg=str(how))
    session, whole = program.session(), simulate(program, x[:1])[1][0]
    for sample in x[0]:
        answer = session.step(sample)
    np.testing.assert_array_equal(answer, whole[-1] if program.readout.every else whole)
    return states


@pytest.mark.slow
@pytest.mark.parametrize(("width", "pairs", "skip"), covering(WIDTHS, WIDTHS, [False, True], together=1))
def test_every_width(width, pairs, skip):
    shape = {"width": width, "pairs": pairs, "skip": skip, "channels": pairs % 4 + 1, "bits": 5}
    made = (make_stack(seed, **shape) for seed in range(30))
    program = next(p for p in made if simulate(p, data(p))[0].any())  # a single unit may be silent
    assert assert_equal(program).shape[2] == 2 * pairs


@pytest.mark.slow
@pytest.mark.parametrize("bits", range(2, 9))
def test_every_width_of_weights_and_states(bits):
    """With each, states of another width and λ of another."""
    shape = {"bits": bits, "state_bits": 2 * bits, "lambda_bits": 8 + bits % 5, "bits_V": 10 - bits}
    for skip in (False, True):
        assert_equal(make_stack(bits, width=6, pairs=5, skip=skip, input_bits=6 + bits // 2, **shape))


@pytest.mark.parametrize("steps", ["last", "all", "mean"])
@pytest.mark.parametrize("kind", [{"codes": True, "channels": 5}, {"window": 3}, {"narrow": False}, *MEMORIES])
def test_inputs_readouts_and_lengths(kind, steps):
    for seed, stem in ((1, True), (2, False)):
        program = make_stack(seed, stem=stem, skip=True, steps=steps, steps_max=8, **kind)
        assert_equal(program, lengths=[1, T, 16])
        assert_equal(program)


def test_floats_are_read_out_of_a_stack():
    for steps in ("last", "all"):
        assert_equal(make_stack(4, steps=steps, floats=True, relu=True), lengths=[17, 2, 33])


@pytest.mark.slow
@given(program=stacks())
def test_any_stack(program):
    assert_equal(program, lengths=[T, 5, 20])


@pytest.mark.parametrize("steps_max", [2, 6, 10])
def test_a_stream_halves_its_sums_for_ever(steps_max):
    """And a copy of it goes on from where it was."""
    program = make_stack(5, steps="mean", steps_max=steps_max)
    x = data(program, B=1, T=50)
    session, counts = program.session(), []
    for t in range(50):
        y = session.step(x[0, t])
        np.testing.assert_array_equal(y, simulate(program, x[:, : t + 1])[1][0])
        counts.append(session.count)
        if t == 30:
            fork, then = copy.deepcopy(session), (session.h, session.sums, session.count)
    assert max(counts) == steps_max
    assert counts[-1] == program.readout.counts(50)
    for found, want in zip((fork.h, fork.sums, fork.count), then, strict=True):
        np.testing.assert_array_equal(found, want)
    for t in range(31, 50):
        y = fork.step(x[0, t])
    np.testing.assert_array_equal(y, session.y)
    session.reset()
    assert (session.count, session.sums.any(), session.h.any()) == (0, False, False)


def test_a_stack_may_hold_layers_of_every_kind():
    """A paper's layer between mixes, one after rotations, and rotations last."""
    from engine_programs import build

    inner = build(3, n_h=9, n_i=4, activation="modrelu", requant="multiplier").layers[0]
    stack = make_stack(6, layers=1, width=4, pairs=3, steps="mean", steps_max=12)
    stem, rotations, mix = stack.layers
    for layers in ((stem, inner), (stem, rotations, mix, inner), (stem, rotations)):
        V = np.random.default_rng(0).integers(-8, 8, (3, layers[-1].output.n_i))
        readout = replace(stack.readout, V=V)
        program = IntegerProgram(input=stack.input, layers=layers, readout=readout)
        assert program.native
        assert_equal(program, lengths=[T, 3, 18])


@pytest.mark.parametrize("kernel", ["portable", "avx2", "vnni"])
def test_what_c_refuses_is_refused_in_words(kernel):
    """x of 16 bits goes to C unseen: what C finds is said by Python, as ever."""
    program = make_stack(8, channels=2, input_bits=4)
    top = program.input.high
    assert top < 2**15 - 1
    x = data(program).astype(np.int16)
    x[1, 30, 1] = top + 1
    with pytest.raises(SettingsError, match="1 of 222 outside"):
        run.run(program, x, kernel=kernel)
    with pytest.warns(SaturationWarning, match="1 of 222"):
        y = run.run(program, x, kernel=kernel, saturate=True)
    np.testing.assert_array_equal(y, simulate(program, x.clip(program.input.low, top))[1])
    codes = make_stack(8, codes=True, channels=3)
    assert isinstance(codes.input, Codes)
    with pytest.raises(SettingsError, match="codes must lie"):
        run.run(codes, np.array([[0, 1, 2, 3]], np.int16), kernel=kernel)


def test_threads_share_the_sequences():
    program = make_stack(9, skip=True)
    x = data(program, B=7)
    for lengths in (None, np.arange(7) + 12):
        np.testing.assert_array_equal(program.run(x, lengths, threads=3), simulate(program, x, lengths)[1])


def test_pairs_lie_as_they_are_multiplied():
    W = np.arange(3 * 5).reshape(3, 5)
    (band,) = pairs(W)
    assert band.shape == (3, 16, 2)
    for row in range(3):
        np.testing.assert_array_equal(band[:, row].reshape(-1)[:5], W[row])
    assert not band[:, 3:].any()
    assert not band[2, :, 1].any()


def test_buffers_have_room_for_a_skip_of_more_bits():
    """S reads what the layer before was given, in groups of its own width."""
    program = make_stack(3, skip=True, bits=4, width=4, pairs=4, channels=2)
    stem, rotations, mix, *rest = program.layers
    wide = replace(mix, S=replace(mix.S, bits=7))
    program = replace(program, layers=(stem, rotations, wide, *rest))
    assert program.rooms(DEVICE)[:3] == [8, 32, 8]  # a group of 7 bits is 32 numbers
    assert_equal(program)
