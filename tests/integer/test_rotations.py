"""The layer of rotations: its formula, what its sums can reach, where its states rest, and what is refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import R
from stacks import make_turns, samples, whole
from strategies import round_exactly

from qornn.errors import ProgramError
from qornn.integer.inputs import Codes
from qornn.integer.layers import Rotations
from qornn.integer.layout import DEVICE
from qornn.integer.matrices import Matrix
from qornn.integer.requant import LIMIT
from qornn.integer.state import Units


def rotations(turns, U, shift=None, bits=8, lambda_bits=8, weight_bits=8):
    """The layer of these integers, turns pair by pair."""
    U = np.array(U)
    shift = np.zeros(len(U), int) if shift is None else shift
    matrix = Matrix(integers=U, bits=weight_bits, alpha=1.0)
    return Rotations(turns=np.array(turns).T, U=matrix, shift=shift, bits=bits, lambda_bits=lambda_bits)


def run(layer, x, state=None):
    """The states after each of these inputs (T, n_in)."""
    state = np.zeros((1, layer.n_state), np.int64) if state is None else np.array([state])
    found = []
    for x_t in np.asarray(x):
        state, y = layer.step(state, np.asarray(x_t)[None])
        assert y is state
        found.append(state[0])
    return np.array(found)


@given(
    seed=st.integers(0, 2**32 - 1), pairs=st.integers(1, 4), n_in=st.integers(1, 4), bits=st.integers(2, 8),
    k_a=st.integers(4, 16), lambda_bits=st.integers(8, 12), log_x=st.integers(-6, 2),
)  # fmt: skip
def test_a_made_layer_is_the_rounded_recurrence(seed, pairs, n_in, bits, k_a, lambda_bits, log_x):
    """In fractions: z' = sat(R((λ z·2^σ + U x)/2^σ)) with real values of everything."""
    rng = np.random.default_rng(seed)
    turns, U = make_turns(rng, pairs, lambda_bits), whole(rng, bits, (2 * pairs, n_in))
    sigma = rng.integers(-4, 3, pairs)
    log_unit = rng.integers(-5, 4, 2 * pairs)
    source = samples(n_in, 6)
    layer, value = Rotations.made(
        source,
        turns=turns,
        U=U,
        bits=bits,
        unit=np.exp2(log_unit),
        step=np.exp2(sigma),
        source_step=2.0**log_x,
        state_bits=k_a,
        lambda_bits=lambda_bits,
    )
    assert value == layer.output.alpha / 2 ** (layer.output.bits - 1) == 2.0 ** (3 - k_a)
    top, one = 2 ** (k_a - 1) - 1, 2 ** (lambda_bits - 1)
    z = rng.integers(-top, top + 1, 2 * pairs)
    z[: pairs // 2] = top
    x = rng.integers(-32, 32, n_in)
    got = run(layer, [x], z)[0]
    for j in range(pairs):
        a, b = Fraction(int(turns[0, j]), one), Fraction(int(turns[1, j]), one)
        re, im = int(z[j]), int(z[pairs + j])
        for row, turned in ((j, a * re - b * im), (pairs + j, a * im + b * re)):
            drive = Fraction(2) ** int(log_unit[row] + log_x - sigma[j]) * int(U[row] @ x)
            want = min(max(round_exactly(turned + drive), -top), top)
            assert got[row] == want


@given(v=st.integers(-(2**31), 2**31), s=st.integers(0, 31))
def test_the_rule_of_rounding_is_that_of_the_package(v, s):
    from qornn.integer.layers.powers import rounded

    assert rounded(np.array([v]), np.array([s])).tolist() == [R(v, s)] == [round_exactly(Fraction(v, 2**s))]


def test_ties_go_away_from_zero_on_both_sides():
    """λ = 1/2 of odd states ends halfway."""
    layer = rotations([(64, 0)], [[0], [0]])
    assert run(layer, [[0]], [3, -3]).tolist() == [[2, -2]]
    assert run(layer, [[0]], [1, -1]).tolist() == [[1, -1]]


def test_the_first_half_of_the_state_is_real():
    """λ = i takes 1 to i, i to −1; λ = −i back."""
    layer = rotations([(0, 127), (0, -128)], np.zeros((4, 1), int), lambda_bits=8)
    assert run(layer, [[0]], [0, 100, 0, 0])[0].tolist() == [0, 0, 0, -100]  # the second pair: −i·100
    assert run(layer, [[0]], [100, 0, 0, 0])[0].tolist() == [0, 0, 99, 0]  # the first: 127/128 i·100


def test_an_integrator_counts_exactly_and_saturates():
    layer = rotations([(128, 0)], [[1], [-1]], shift=[7, 7])
    states = run(layer, np.ones((200, 1), int))
    assert states[:, 0].tolist() == [min(t, 127) for t in range(1, 201)]
    assert states[:, 1].tolist() == [max(-t, -127) for t in range(1, 201)]


def test_a_slow_state_stops_at_half_of_its_range_and_stays():
    """Dead zone: (1 − r)|z| < 1/2. Silence does not clear what λ = 127/128 holds."""
    layer = rotations([(127, 0)], [[0], [0]])
    states = run(layer, np.zeros((300, 1), int), [127, -127])
    assert states[-1].tolist() == [64, -64]
    assert np.flatnonzero(states[:, 0] == 64)[0] == 62
    wide = rotations([(127, 0)], [[0], [0]], bits=12)
    assert run(wide, np.zeros((3000, 1), int), [2047, 0])[-1].tolist() == [64, 0]  # 1/32 of its range


def test_a_slow_rotation_circles_for_ever():
    """r = 0.986 at 18 degrees, from where it saturates: the state neither grows nor comes to rest."""
    layer = rotations([(120, 39)], [[0], [0]])
    states = run(layer, np.zeros((4000, 1), int), [127, 0])
    size = np.hypot(states[-200:, 0], states[-200:, 1])
    assert size.min() > 13
    assert size.max() < 15
    assert (states[-1] != states[-2]).any()


@pytest.mark.parametrize("lambda_bits", [8, 10, 12])
@pytest.mark.parametrize("k_a", [4, 8, 16])
@pytest.mark.parametrize("e", [-3, 0, 5])
def test_the_bound_is_reached(k_a, e, lambda_bits):
    """By the largest states and inputs, whose signs follow the weights."""
    one, top = 2 ** (lambda_bits - 1), 2 ** (k_a - 1) - 1
    a, b = one // 2, -(one // 4)
    layer = rotations([(a, b)], [[-8, 3], [5, -8]], [e, e], k_a, lambda_bits, weight_bits=4)
    s = lambda_bits - 1 + max(-e, 0)
    x = [-128, 127]  # the input's ends: −8·−128 + 3·127, and with 128 in place of 127 the bound of each
    found = layer.bounds(samples(2))[0].tolist()
    turned = (a + abs(b)) * top * 2 ** max(-e, 0)
    assert found == [turned + 128 * total * 2 ** max(e, 0) + 2 ** (s - 1) for total in (11, 13)]
    met = turned + (8 * 128 + 3 * 127) * 2 ** max(e, 0) + 2 ** (s - 1)
    assert found[0] - met == 3 * 2 ** max(e, 0)  # samples reach −128, not 128
    codes = Codes(size=2)
    assert layer.bounds(codes)[0].tolist() == [turned + 8 * 2 ** max(e, 0) + 2 ** (s - 1)] * 2
    units = Units(n_i=2, bits=8)
    acc = a * top - b * top
    assert (
        acc * 2 ** max(-e, 0) + int(layer.U.integers[0] @ [-127, 127]) * 2 ** max(e, 0) + 2 ** (s - 1)
        == (layer.bounds(units)[0][0])
    )
    assert x[0] == units.top * -1 - 1


@pytest.mark.parametrize("bits", [4, 8])
def test_a_sum_just_past_32_bits_is_refused(bits):
    """The largest number of inputs that fits is found from the integers, one more is refused in words."""
    top = 2 ** (bits - 1)

    def layer(n):
        return rotations([(128, 0)], np.full((2, n), -top), [10, 10], 16, weight_bits=bits)

    each = top * 127 * 2**10
    most = (LIMIT - 1 - 128 * (2**15 - 1) - 64) // each
    layer(most).check(Units(n_i=most, bits=8))
    with pytest.raises(
        ProgramError, match=r"this layer can reach \d+, but the 32-bit accumulator holds at most 2147483"
    ):
        layer(most + 1).check(Units(n_i=most + 1, bits=8))
    last = LIMIT - 1 - 128 * (2**15 - 1) - 64
    assert int(layer(most).bounds(Units(n_i=most, bits=8))[0].max()) == LIMIT - 1 - last % each


def test_the_half_that_rounding_adds_counts():
    """e = −24: half alone is 2^30, and at −25 2^31."""
    layer = rotations([(0, 0)], [[1], [0]], [-24, 0])
    layer.check(Units(n_i=1, bits=8))
    with pytest.raises(ProgramError, match="can reach 2147483775, but"):
        replace(layer, shift=[-25, 0]).check(Units(n_i=1, bits=8))


def test_bounds_of_hostile_shifts_do_not_wrap():
    """2^31 times a sum of 2^37 is past int64, and must not come out small."""
    n = 2**15
    layer = rotations([(0, 0)], np.full((2, n), -128), [31, 31], 16)
    assert layer.bounds(Units(n_i=n, bits=16))[0][0] == (n * 128 * 32767 << 31) + 64
    with pytest.raises(ProgramError, match="the 32-bit accumulator holds at most"):
        layer.check(Units(n_i=n, bits=16))


TURNS = [[100], [20]]
GIVEN = {"turns": TURNS, "U": Matrix(integers=[[1], [2]], bits=4, alpha=1.0), "shift": [0, 0], "bits": 8}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"turns": [[127], [17]]}, r"unit disc, or states would grow: pair 0 has \(127 \+ 17i\)/128"),
        ({"turns": [[200], [0]]}, r"turns must lie in -128\.\.128, got 0\.\.200"),
        ({"turns": [[-128], [0]]}, r"turns must lie in -127\.\.128 and -128\.\.127"),
        ({"turns": [[0], [128]]}, r"turns must lie in -127\.\.128 and -128\.\.127"),
        ({"turns": np.zeros((2, 0), int)}, r"turns must have shape \(2, any\), got \(2, 0\)"),
        ({"turns": [[1, 2]]}, r"turns must have shape \(2, any\), got \(1, 2\)"),
        ({"turns": [[0.5], [0.5]]}, "turns must hold integers"),
        ({"bits": 3}, r"state bits must be a whole number in 4\.\.16, got 3"),
        ({"bits": 17}, r"state bits must be a whole number in 4\.\.16, got 17"),
        ({"lambda_bits": 7}, r"lambda_bits must be a whole number in 8\.\.12, got 7"),
        ({"lambda_bits": 13}, r"lambda_bits must be a whole number in 8\.\.12, got 13"),
        ({"U": Matrix(integers=[[1]], bits=4, alpha=1.0)}, "U must have 2 rows, two for each pair, got 1"),
        ({"U": None}, "U cannot be a NoneType"),
        ({"shift": [0]}, r"the shifts of U must have shape \(2\), got \(1,\)"),
        ({"shift": [0, 32]}, r"the shifts of U must lie in -31\.\.31, got 0\.\.32"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    Rotations(**GIVEN)
    with pytest.raises(ProgramError, match=message):
        Rotations(**{**GIVEN, **changes})


def test_the_disc_is_that_of_its_own_bits():
    assert Rotations(**{**GIVEN, "turns": [[2048], [0]], "lambda_bits": 12}).one == 2048
    with pytest.raises(ProgramError, match=r"\(2040 \+ 200i\)/2048"):
        Rotations(**{**GIVEN, "turns": [[2040], [200]], "lambda_bits": 12})


def test_another_width_is_refused_with_both():
    with pytest.raises(ProgramError, match="U reads 1 numbers, and is given 3"):
        Rotations(**GIVEN).check(Units(n_i=3, bits=8))


MADE = {
    "turns": TURNS,
    "U": np.array([[1], [2]]),
    "bits": 4,
    "unit": np.array([0.25, 0.5]),
    "step": np.array([2.0]),
    "source_step": 0.5,
    "state_bits": 8,
    "lambda_bits": 10,
}


def test_a_made_layer_says_its_shifts_and_scales():
    layer, value = Rotations.made(samples(1), **MADE)
    assert layer.shift.tolist() == [9 - 2 - 1 - 1, 9 - 1 - 1 - 1]
    assert layer.U.alpha.tolist() == [0.25 * 8, 0.5 * 8]
    assert value == 2.0**-5


def test_rows_of_zeros_have_no_scale():
    numbers = {**MADE, "U": np.array([[0], [2]]), "unit": np.array([0.0, 0.5])}
    layer, _ = Rotations.made(samples(1), **numbers)
    assert layer.shift.tolist() == [0, 6]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": np.array([0.25, 0.3])}, r"the units of U must be powers of two, got .*0\.3"),
        ({"unit": np.array([0.25, -0.5])}, "the units of U must be powers of two"),
        ({"unit": np.array([0.25, np.nan])}, "the units of U must be powers of two"),
        ({"unit": np.array([0.25, 0.0])}, "the units of U must be powers of two"),
        ({"step": np.array([3.0])}, "step must be powers of two"),
        ({"source_step": 1 / 255}, "source_step must be powers of two"),
        ({"step": np.array([1.0, 2.0])}, r"step must have shape \(1,\), got \(2,\)"),
    ],
)
def test_other_scales_than_powers_of_two_are_refused(changes, message):
    with pytest.raises(ProgramError, match=message):
        Rotations.made(samples(1), **{**MADE, **changes})


def test_the_grid_of_a_layer_before_must_be_the_trained_one():
    Rotations.made(Units(n_i=1, bits=8, alpha=64.0), **MADE)
    with pytest.raises(ProgramError, match=r"had steps of 0\.5 in training, and the layer before gives steps of 0\.25"):
        Rotations.made(Units(n_i=1, bits=8, alpha=32.0), **MADE)


def test_what_a_device_holds():
    """λ as −â, so that a byte holds λ = 1; two bytes per number where it has more bits."""
    layer = rotations([(128, 0), (-127, 0), (0, -128)], np.ones((6, 5), int), weight_bits=3)
    found = layer.fields(samples(5), DEVICE)
    assert found["turns"].tolist() == [[-128, 127, 0], [0, 0, -128]]
    assert found["turns"].dtype == found["shift"].dtype == np.int8
    assert layer.stored_bytes == -(-6 * 5 * 3 // 8) + 6 + 6
    fine = replace(layer, lambda_bits=9)
    assert fine.stored_bytes == layer.stored_bytes + 6
    assert fine.fields(samples(5), DEVICE)["turns_wide"].dtype == np.int16
    assert (layer.parameters, layer.state_bits, layer.weight_bits, layer.n_state) == (36, 8, 3, 6)
    assert layer.work(samples(5)) == {"per step": 12 + 30}
    assert layer.work(Codes(size=5)) == {"per step": 12}
    assert "3 rotations of 8 bits" in layer.describe()


def test_codes_read_a_column():
    layer = rotations([(0, 0)], [[1, 2, 3], [4, 5, 6]], shift=[7, 7], weight_bits=4)
    assert run(layer, [2, 0, 1]).tolist() == [[3, 6], [1, 4], [2, 5]]
