"""A readout of the mean: Σh and T, halved at steps_max, what they can reach, and what is refused."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from single import changed
from stacks import make_stack, stacks
from strategies import paper, random_input, random_net

from qornn.errors import ProgramError, SettingsError
from qornn.integer.mean import add, count, most_steps
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.requant import LIMIT
from qornn.integer.simulate import simulate


def readout(V, bias, steps_max, **more):
    return IntReadout(V=V, bits=8, bias=bias, scale=0.5, steps="mean", steps_max=steps_max, **more)


def of_one_layer(readout):
    """A program of one recurrent layer of 3 units, with states of either sign."""
    net = random_net(
        3, n_i=2, n_h=3, n_o=2, k=4, k_U=4, k_a=8, e=1, m=0, alphas=(0.7, 1.3, 1.0), activation="modrelu", codes=False
    )
    return changed(paper(net), readout=readout)


@pytest.mark.parametrize("steps_max", [2, 4, 6, 30])
def test_the_count_after_n_steps_is_that_of_counting(steps_max):
    T, found = np.zeros(1, np.int64), [0]
    for _ in range(5 * steps_max):
        _, T = add(np.zeros((1, 1), np.int64), T, np.zeros((1, 1), np.int64), steps_max)
        found.append(int(T[0]))
    assert count(np.arange(5 * steps_max + 1), steps_max).tolist() == found
    assert max(found) == steps_max


def test_sums_are_halved_with_the_count():
    """At T = 4: (Σ + 1) >> 1, also of a negative sum."""
    sums, T = np.array([[7, -7, 8, -8]]), np.array([4])
    sums, T = add(sums, T, np.array([[1, 1, 1, 1]]), 4)
    assert sums.tolist() == [[4 + 1, -3 + 1, 4 + 1, -4 + 1]]  # (−8 + 1) >> 1 is −4
    assert T.tolist() == [3]


@given(top=st.integers(1, 40), half=st.integers(1, 9), sign=st.sampled_from([1, -1]))
def test_no_sum_passes_its_bound(top, half, sign):
    """|Σh| ≤ top·T + 1 at every T, for ever."""
    sums, T = np.zeros((1, 1), np.int64), np.zeros(1, np.int64)
    for _ in range(20 * half):
        sums, T = add(sums, T, np.full((1, 1), sign * top), 2 * half)
        assert abs(int(sums[0, 0])) <= top * int(T[0]) + 1


@given(seed=st.integers(0, 2**32 - 1))
def test_outputs_are_sums_and_values_their_mean(seed):
    rng = np.random.default_rng(seed)
    V, bias, T = rng.integers(-128, 128, (2, 5)), rng.integers(-999, 999, 2), int(rng.integers(1, 40))
    h = rng.integers(-100, 100, (3, T, 5))
    part = readout(V, bias, 40)
    held = part.start(3)
    for t in range(T):
        held = part.take(held, h[:, t])
    y = part.outputs(*held)
    assert y.dtype == np.int32
    assert (y == h.sum(1) @ V.T + T * bias).all()
    values = part.values(y, part.counts(T))
    assert values.dtype == np.float32
    assert np.array_equal(values, ((h.sum(1) @ V.T + T * bias) * 0.5 / T).astype(np.float32))


def test_every_sequence_divides_by_its_own_length():
    """Beyond steps_max too: each row is that of the sequence alone."""
    program = make_stack(5, steps_max=6)
    x = random_stack_input(program, 1, B=4, T=20)
    lengths = np.array([3, 6, 7, 20])
    y = simulate(program, x, lengths)[1]
    values = program.readout.values(y, program.readout.counts(lengths))
    for row, length in enumerate(lengths):
        alone = simulate(program, x[[row], :length])[1]
        assert (alone[0] == y[row]).all()
        assert (program.readout.values(alone, program.readout.counts(length))[0] == values[row]).all()
    assert program.readout.counts(lengths).tolist() == [3, 6, 4, 5]


def test_relu_comes_before_the_sum():
    part = readout([[1, 1]], [0], 8, relu=True)
    held = part.start(1)
    for h in ([[-5, 3]], [[4, -2]]):
        held = part.take(held, np.array(h))
    assert held[0].tolist() == [[4, 3]]
    assert part.outputs(*held).tolist() == [[7]]


def random_stack_input(program, seed, B=3, T=9):
    rng = np.random.default_rng(seed)
    raw = program.input.clip(program.input.draw(rng, B * T))
    return raw.reshape(B, T, *program.input.shape)


@given(program=stacks(), seed=st.integers(0, 9))
def test_a_stream_gives_the_law_s_answers_at_every_step(program, seed):
    """Σh, T and outputs, also past steps_max, after a reset, and in a copy made in the middle."""
    x = random_stack_input(program, seed, B=1, T=23)
    session = program.session()
    first = session.y
    for _ in range(2):
        for t in range(23):
            if t == 11:
                session = pickle.loads(pickle.dumps(session)) if seed % 2 else copy.deepcopy(session)
            y = session.step(x[0, t])
            assert (y == session.y).all()
            if t in (0, 10, 11, 22):
                states, want = simulate(program, x[:, : t + 1])
                want = want[:, -1] if program.readout.every else want
                assert (y == want[0]).all()
                where = sum(part.n_state for part in program.keepers[: 1 + program.shown])
                assert (session.h[where : where + program.n_shown] == states[0, -1]).all()
                steps = program.readout.counts(t + 1)
                assert session.count == steps
                assert np.array_equal(session.values, program.readout.values(want, steps)[0])
        session.reset()
        assert (session.y == first).all()
        assert not session.h.any()
        assert not session.sums.any()
    assert session.sums.dtype == np.int32


def test_before_the_first_step_a_mean_is_of_nothing():
    session = make_stack(1).session()
    assert session.count == 0
    assert session.y.tolist() == [0, 0, 0]
    assert session.values.tolist() == [0, 0, 0]


def test_a_recurrent_layer_has_a_mean_too():
    """The sum is that of its states, which may be negative."""
    program = of_one_layer(readout([[3, -2, 1], [1, 1, 1]], [5, -5], 100))
    x = random_input(program, 4, B=3, T=30)
    states, y = simulate(program, x)
    assert (states < 0).any()
    assert (y == states.astype(np.int64).sum(1) @ program.readout.V.T.astype(int) + 30 * program.readout.bias).all()
    assert (program.run(x) == y).all()


@pytest.mark.parametrize("top", [1, 7, 127])
def test_the_largest_number_of_steps_is_proved(top):
    V, bias = np.array([[100, -100], [1, 0]]), np.array([-7, 2**20])
    most = most_steps(V, bias, top)
    fits = lambda T: max(200 * (top * T + 1) + 7 * T, (top * T + 1) + T * 2**20) < LIMIT  # noqa: E731
    assert most % 2 == 0
    assert fits(most)
    assert not fits(most + 2)
    assert most_steps(np.zeros((1, 1), int), [0], top) == (LIMIT - 2) // top // 2 * 2  # the sum itself
    assert most_steps([[1]], [2**31 - 1], top) == 0


def test_the_bound_is_reached():
    """At T = steps_max, by outputs whose signs follow V; the sum has room for what rounding adds."""
    part = readout([[100, -100]], [-7], 6)
    sums, outputs = part.bounds(127)
    assert sums.tolist() == [127 * 6 + 1]
    assert outputs.tolist() == [200 * (127 * 6 + 1) + 7 * 6]
    held = part.start(1)
    for _ in range(6):
        held = part.take(held, np.array([[-127, 127]]))
    assert part.outputs(*held).tolist() == [[-(200 * 127 * 6 + 7 * 6)]]


def test_one_step_more_than_is_proved_is_refused_with_the_way_out():
    program = make_stack(2, steps="mean")
    most = most_steps(program.readout.V, program.readout.bias, 127)
    assert program.readout.steps_max == min(most, 2**20)
    replace(program, readout=replace(program.readout, steps_max=most))
    message = f"a sum of the readout can reach .*; use a steps_max of at most {most}, not {most + 2}"
    with pytest.raises(ProgramError, match=message):
        replace(program, readout=replace(program.readout, steps_max=most + 2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps_max": 5}, "steps_max of a mean must be even, so that T can be halved, got 5"),
        ({"steps_max": 0}, r"steps_max of a mean must be a whole number in 2\.\."),
        ({"steps_max": None}, r"steps_max of a mean must be a whole number in 2\.\..*got None"),
        ({"steps": "last"}, "steps_max is only for the readout of a mean, got 4"),
        ({"mix": True}, "mix transforms the last state before it is read out; this program reads out the mean of all"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    part = readout([[1, 1]], [0], 4)
    with pytest.raises(ProgramError, match=message):
        replace(part, **changes)


def test_floats_have_no_mean():
    with pytest.raises(ProgramError, match=r"a mean must be read out in integers.*IntReadout"):
        FloatReadout(V=np.ones((1, 2)), b_o=[0.0], scale=1.0, steps="mean")


def test_values_of_a_mean_need_the_steps():
    part = readout([[1, 1]], [0], 4)
    with pytest.raises(SettingsError, match=r"values\(y, readout\.counts\(steps\)\)"):
        part.values(np.zeros((1, 1), np.int32))
