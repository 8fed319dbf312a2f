"""W that is not stored: exactly orthogonal, the same as its written-out matrix, and bounded as it is proved."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from single import changed, input_sums, preactivation, single
from strategies import random_input
from structured_programs import FORMS, KINDS, make_program, make_W, matrices, signs, structured_programs, written_dense

from qornn.errors import ProgramError
from qornn.integer.activations import Identity, ModReLU
from qornn.integer.factors import make_multiplier
from qornn.integer.inputs import Codes
from qornn.integer.matrices import MATRICES, Cycle, Delay, Hadamard, Matrix
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.rounding import round_half_away
from qornn.integer.simulate import simulate
from qornn.integer.state import State

rng = np.random.default_rng(0)


@given(matrices())
def test_written_out_it_is_exactly_orthogonal(W):
    """Integers with W Wᵀ = N·I, and alpha = 1/√N."""
    integers = W.written_out()
    N = int(integers[0] @ integers[0])
    assert (integers @ integers.T == N * np.eye(W.n_h, dtype=int)).all()
    assert float(W.alpha) == pytest.approx(N**-0.5, rel=1e-15)  # one rounding of a float64


@given(matrices(), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_the_product_is_that_of_the_written_out_matrix(W, seed, B):
    rng = np.random.default_rng(seed)
    h = rng.integers(-(2**15), 2**15, (B, W.n_h))
    before = h.copy()
    got = W.product(h)
    assert got.dtype == np.int64
    assert (got == h @ W.written_out().T).all()
    assert (h == before).all()  # the state is not written over


@pytest.mark.parametrize("kind", KINDS)
def test_the_matrices_are_the_ones_meant(kind):
    """Entry by entry from the definitions, without the fast products."""
    W = make_W(kind, np.random.default_rng(5))
    n, want = W.n_h, np.zeros((W.n_h, W.n_h), int)
    if kind.startswith("hadamard"):
        m = W.block
        S = np.array([[(-1) ** bin(i & j).count("1") for j in range(m)] for i in range(m)])
        for j in range(n):  # unit j is place j % m of block j // m, which P sends to row (place)·(n/m) + block
            for place in range(m):
                row = place * (n // m) + j // m if m < n else place
                want[row, j] = W.signs[row] * S[place, j % m]
    elif kind == "cycle":
        for i in range(1, n):
            want[i, i - 1] = 1
        want[0, n - 1] = -1
    else:
        m = len(W.signs)
        heads, ends = W.driven, np.append(W.driven[1:], n) - 1
        for i in range(n):
            if i in heads:
                line = heads.tolist().index(i)
                for other in range(m):
                    want[i, ends[other]] = W.signs[line] * (-1) ** bin(line & other).count("1")
            else:
                want[i, i - 1] = int(m**0.5)
        assert len(set(np.diff(np.append(heads, n)))) == m  # lengths all differ
    assert (W.written_out() == want).all()


@given(matrices())
def test_row_sums_are_those_of_the_rows(W):
    true = np.abs(W.written_out()).sum(1)
    assert (true == W.row_sums()).all()


@given(structured_programs(), st.integers(0, 99))
def test_a_dense_program_of_the_written_out_matrix_does_the_same(program, seed):
    x = random_input(program, seed, T=12)
    states, y = simulate(program, x)
    dense_states, dense_y = simulate(written_dense(program), x)
    assert (states == dense_states).all()
    assert (y == dense_y).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", ["identity", "biased"])
def test_the_law_is_the_float64_network_rounded(kind, activation):
    """h' = round(W h + U x + b) in units of the state, W a float64 matrix: thresholds round exactly."""
    for seed in range(5):
        W = make_W(kind, np.random.default_rng(seed))
        e = seed - 2
        program = make_program(W, "thresholds", activation, seed=seed, k_a=10, e=e)
        x = random_input(program, seed, T=20)
        drive = input_sums(program, x) * 2.0**e
        W_q = W.written_out() * float(W.alpha)
        scale = float(W.alpha) / 2.0**program.requant.shift_W
        b = 0 if program.bias is None else program.bias * scale
        h = np.zeros((len(x), W.n_h))
        states, _ = simulate(program, x)
        for t in range(x.shape[1]):
            z = h @ W_q.T + drive[:, t] * float(W.alpha) + b
            h = np.clip(round_half_away(np.round(z, 9)), -program.state.top, program.state.top)  # ties, not 1e-15 below
            assert (states[:, t] == h).all()
        assert np.unique(states).size > 5


def in_place(h):
    """The transform as a device does it, over its own input; the state and every value that stood in memory."""
    h, seen, apart = h.copy(), [np.abs(h).max()], 1
    while apart < len(h):
        for start in range(0, len(h), 2 * apart):
            for i in range(start, start + apart):
                h[i], h[i + apart] = h[i] + h[i + apart], h[i] - h[i + apart]
        seen.append(np.abs(h).max())
        apart *= 2
    return h, seen


@pytest.mark.parametrize(("n", "row"), [(2, 1), (16, 5), (64, 63), (128, 77)])
def test_the_bound_of_the_transform_is_reached_and_never_passed(n, row):
    """One code saturates all states along a row of W, the next adds the largest input: n·top·2^s + input + bias."""
    W = Hadamard(signs=signs(np.random.default_rng(n), n), block=n)
    along = W.written_out()[row]
    U = np.stack([7 * along, np.full(n, 7)], 1)
    state, bias = State(bits=8, alpha=1.0), np.full(n, 33)
    program = single(
        W=W,
        U=Matrix(integers=U, bits=4, alpha=1.0),
        state=state,
        input=Codes(size=2),
        activation=Identity(bias=bias),
        requant=make_multiplier(Fraction(float(W.alpha)) / 2, shift_W=1, shift_U=12),
        readout=FloatReadout(V=np.ones((1, n)), b_o=np.zeros(1), scale=1.0),
    )
    bound = program.accumulator_bound
    assert bound == (n * state.top << 1) + (7 << 12) + 33
    states, _ = simulate(program, np.array([[0]]))
    h = states[0, 0].astype(np.int64)
    assert (h == state.top * along).all()
    z = preactivation(program, h[None], input_sums(program, np.array([1])))
    assert np.abs(z).max() == z[0, row] == bound
    for state_of in (h, -h, *rng.choice([-state.top, state.top], (20, n))):
        made, seen = in_place(state_of)
        assert (made * W.signs == W.product(state_of[None])[0]).all()
        assert all(value <= state.top << stage for stage, value in enumerate(seen))  # a bit more a stage
        assert max(seen) <= n * state.top <= bound
    assert max(in_place(h)[1]) == n * state.top


def test_the_cycle_rounds_nothing():
    """Without saturation the states are sums of ±U x, whatever the number of steps: also after coming round."""
    W = Cycle(units=7)
    program = make_program(W, k_a=16, e=2)
    x = random_input(program, 0, T=60)
    drive, h = input_sums(program, x) << 2, np.zeros((len(x), 7), int)
    states, _ = simulate(program, x)
    for t in range(60):
        h = np.concatenate([-h[:, -1:], h[:, :-1]], 1) + drive[:, t]
        assert (states[:, t] == h).all()
    assert np.abs(states).max() < program.state.top


def test_a_linear_bias_is_added_before_the_sign_and_modrelus_after():
    program = make_program(Cycle(units=4), e=0, codes=True)
    bias = np.array([5, -5, 0, 1])
    U = np.array([[-3, 0, 0], [3, 0, 0], [-3, 0, 0], [-1, 0, 0]])
    program = changed(program, U=replace(program.U, integers=U))
    got = {
        kind: simulate(changed(program, activation=kind(bias=bias)), np.array([[0]]))[0][0, 0].tolist()
        for kind in (Identity, ModReLU)
    }
    assert got[Identity] == [2, -2, -3, 0]
    assert got[ModReLU] == [-8, 0, -3, -2]


def test_a_linear_bias_counts_in_the_bounds():
    program = make_program(Cycle(units=4), k_a=9)
    bound = program.accumulator_bound
    biased = changed(program, activation=Identity(bias=[1000, -2000, 0, 0]))
    assert bound < biased.accumulator_bound <= bound + 2000
    with pytest.raises(ProgramError, match="the 32-bit accumulator holds at most"):
        changed(program, activation=Identity(bias=[0, 0, 0, 2**31]))
    wide = make_program(Cycle(units=4), "per-row")
    with pytest.raises(ProgramError, match=r"row 3: its 64-bit sum can reach .* past 2\^62"):
        changed(wide, activation=Identity(bias=[0, 0, 0, 2**62]))
    with pytest.raises(ProgramError, match=r"the bias must be \(4,\)"):
        changed(program, activation=Identity(bias=[1, 2, 3]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_true_bytes_by_hand(kind, form):
    W = make_W(kind, np.random.default_rng(3))
    program = make_program(W, form, "biased", bits_V=3)
    n, rows = W.n_h, len(W.driven) if kind == "delay" else W.n_h
    signs = {"cycle": 0, "delay": -(-rows // 8)}.get(kind, -(-n // 8))
    U, V, bias = -(-rows * 3 * 4 // 8), -(-3 * n * 3 // 8) + 12, rows * (8 if form == "per-row" else 4)
    assert program.true_bytes == signs + U + V + bias + program.requant.stored_bytes


@pytest.mark.parametrize("bits", range(2, 9))
def test_the_integers_of_v_have_their_bits(bits):
    top = 2 ** (bits - 1)
    made = IntReadout(V=[[-top, top - 1, 0]], bias=[0], scale=1.0, bits=bits)
    assert made.stored_bytes == -(-3 * bits // 8) + 4
    for V in ([[-top - 1, 0]], [[0, top]]):
        with pytest.raises(ProgramError, match=f"V must lie in {-top}..{top - 1}"):
            IntReadout(V=V, bias=[0], scale=1.0, bits=bits)


@pytest.mark.parametrize("bits", [1, 9, 4.0, True])
def test_v_has_two_to_eight_bits(bits):
    with pytest.raises(ProgramError, match=r"bits of V must be a whole number in 2\.\.8"):
        IntReadout(V=[[0]], bias=[0], scale=1.0, bits=bits)


def test_inputs_reach_only_the_heads_of_delay_lines():
    W = Delay(units=14, signs=[1, -1, 1, 1])
    program = make_program(W, "multiplier", "biased")
    assert W.driven.tolist() == [0, 2, 5, 9]
    U = program.U.integers.copy()
    U[3, 1] = 1
    with pytest.raises(ProgramError, match="inputs reach only the first unit of each delay line; row 3 of U must be 0"):
        changed(program, U=replace(program.U, integers=U))
    bias = program.bias.copy()
    bias[13] = -1
    with pytest.raises(ProgramError, match="row 13 of the bias must be 0"):
        changed(program, activation=Identity(bias=bias))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hadamard(signs=[1] * 12, block=12), "must be a power of 2, got 12; the nearest: 8 or 16"),
        (lambda: Hadamard(signs=[1] * 12, block=8), "multiple of block=8, got 12; take 8 or 16"),
        (lambda: Hadamard(signs=[1] * 8, block=16), r"block of W must be a whole number in 2\.\.8, got 16"),
        (lambda: Hadamard(signs=[1] * 8, block=True), "block of W must be a whole number"),
        (lambda: Hadamard(signs=[1, 0], block=2), r"the signs of W are \+1 and −1, got 0"),
        (lambda: Hadamard(signs=[1, 2], block=2), r"signs of W must lie in -1\.\.1"),
        (lambda: Hadamard(signs=[1.0, 1.0], block=2), "signs of W must hold integers"),
        (lambda: Cycle(units=1), r"units of W must be a whole number in 2\.\.65536, got 1"),
        (lambda: Cycle(units=10**9), "units of W must be a whole number"),
        (lambda: Delay(units=40, signs=[1] * 8), "must be a power of 4, got 8; the nearest: 4 or 16"),
        (lambda: Delay(units=9, signs=[1] * 4), "need n_h of at least 10, got 9"),
        (lambda: Delay(units=40, signs=[1, 1, 0, 1]), "the signs of W"),
    ],
)
def test_bad_structure_is_refused_in_words(make, message):
    with pytest.raises(ProgramError, match=message):
        make()


def test_every_structured_kind_is_tested_here():
    assert {make_W(kind, np.random.default_rng(0)).kind for kind in KINDS} == set(MATRICES) - {"dense"}


@pytest.mark.parametrize("kind", KINDS)
def test_any_w_can_be_asked_the_same_things(kind):
    W = make_W(kind, np.random.default_rng(2), small=True)
    assert (W.bits, W.identity, W.alpha.shape) == (1, False, ())
    dense = written_dense(make_program(W)).W
    assert (dense.written_out() == W.written_out()).all()
    assert dense.driven is None
