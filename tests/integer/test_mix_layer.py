"""The layer that mixes: its formula with and without a skip, what its sums can reach, and what is refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import R
from stacks import samples, whole
from strategies import round_exactly

from qornn.errors import ProgramError
from qornn.integer.inputs import Codes
from qornn.integer.layers import Mix
from qornn.integer.layout import DEVICE
from qornn.integer.matrices import Matrix
from qornn.integer.requant import LIMIT
from qornn.integer.state import Units

NONE = np.zeros((1, 0), np.int64)  # its state


def mix(C, bias, shift, S=None, apart=None, bits=4):
    matrix = lambda rows: None if rows is None else Matrix(integers=np.array(rows), bits=bits, alpha=1.0)  # noqa: E731
    return Mix(C=matrix(C), bias=bias, shift=shift, S=matrix(S), apart=apart)


def outputs(layer, x, skip=None):
    state, y = layer.step(NONE, np.asarray(x)[None], None if skip is None else np.asarray(skip)[None])
    assert state is NONE
    return y[0].tolist()


@given(
    seed=st.integers(0, 2**32 - 1), d=st.integers(1, 4), n_in=st.integers(1, 4), bits=st.integers(2, 8),
    k_a=st.integers(4, 16), log_x=st.integers(-6, 2), skip=st.booleans(), sigma=st.integers(-6, 3),
)  # fmt: skip
def test_a_made_layer_is_the_rounded_relu(seed, d, n_in, bits, k_a, log_x, skip, sigma):
    """In fractions: y = min(R(relu(C n + S x + c)/2^σ), 127) with real values of everything."""
    rng = np.random.default_rng(seed)
    before = samples(3, 6)
    source = Units(n_i=n_in, bits=k_a, alpha=4.0, skip=before)
    C, S = whole(rng, bits, (d, n_in)), whole(rng, bits, (d, 3))
    log_C, log_S = rng.integers(-5, 4, d), rng.integers(-5, 4, d)
    f, g = log_C + 3 - k_a, log_S + log_x
    u = np.minimum(f, g) if skip else f
    bias = rng.integers(-1000, 1000, d)
    beside = {"S": S, "unit_S": np.exp2(log_S), "skip_step": 2.0**log_x} if skip else {}
    layer, value = Mix.made(
        source,
        C=C,
        bits=bits,
        unit=np.exp2(log_C),
        source_step=2.0 ** (3 - k_a),
        bias=bias,
        step=2.0**sigma,
        **beside,
    )
    assert value == 2.0**sigma
    top = 2 ** (k_a - 1) - 1
    n, x = rng.integers(-top, top + 1, n_in), rng.integers(-32, 32, 3)
    got = outputs(layer, n, x if skip else None)
    for row in range(d):
        real = int(C[row] @ n) * Fraction(2) ** int(f[row]) + int(bias[row]) * Fraction(2) ** int(u[row])
        real += int(S[row] @ x) * Fraction(2) ** int(g[row]) if skip else 0
        assert got[row] == min(round_exactly(max(real, 0) / Fraction(2) ** sigma), 127)


def test_sums_are_rounded_away_from_zero_and_saturate():
    layer = mix([[1]] * 4, [0, 0, 0, 0], [1, 2, 0, -3])
    assert outputs(layer, [5]) == [3, 1, 5, 40]
    assert outputs(layer, [6]) == [3, 2, 6, 48]
    assert outputs(layer, [-6]) == [0, 0, 0, 0]
    assert outputs(layer, [300]) == [127, 75, 127, 127]


def test_the_bias_is_added_before_the_relu():
    layer = mix([[1], [1]], [-4, 4], [0, 0])
    assert outputs(layer, [3]) == [0, 7]
    assert outputs(layer, [-3]) == [0, 1]


@pytest.mark.parametrize("apart", [-3, 0, 3])
def test_the_coarser_of_both_sums_is_shifted(apart):
    layer = mix([[2]], [1], [0], [[3]], [apart])
    assert outputs(layer, [2], [1]) == [(4 << max(apart, 0)) + (3 << max(-apart, 0)) + 1]


def test_codes_read_a_column_in_either_place():
    layer = mix([[1, 2, 3]], [0], [0], [[4, 5]], [0])
    state, y = layer.step(np.zeros((2, 0), int), np.array([2, 0]), np.array([0, 1]))
    assert state.shape == (2, 0)
    assert y.tolist() == [[3 + 4], [1 + 5]]


@pytest.mark.parametrize("t", [-4, 0, 5])
@pytest.mark.parametrize("apart", [-2, 3])
def test_the_bound_is_reached(t, apart):
    """By inputs whose signs follow the weights."""
    layer = mix([[-8, 7]], [100], [t], [[5]], [apart])
    source = Units(n_i=2, bits=10, skip=Units(n_i=1, bits=8))
    acc = 511 * 15 * 2 ** max(apart, 0) + 127 * 5 * 2 ** max(-apart, 0) + 100
    half = 2 ** (t - 1) if t > 0 else 0
    assert layer.bounds(source)[0].tolist() == [acc * 2 ** max(-t, 0) + half]
    assert outputs(layer, [-511, 511], [127]) == [min(R(acc * 2 ** max(-t, 0), max(t, 0)), 127)]


def test_a_sum_just_past_32_bits_is_refused():
    source = Units(n_i=1, bits=8)
    exact = LIMIT - 1 - 7 * 127
    mix([[7]], [exact], [0]).check(source)
    mix([[7]], [-exact], [0]).check(source)
    for bias in (exact + 1, -exact - 1):
        with pytest.raises(ProgramError, match=r"can reach 2147483648, but the 32-bit .*1 inputs of 8 bits"):
            mix([[7]], [bias], [0]).check(source)
    mix([[7]], [exact - 2**20], [21]).check(source)  # and half of 2^21
    with pytest.raises(ProgramError, match="can reach 2147483648, but"):
        mix([[7]], [exact - 2**20 + 1], [21]).check(source)
    mix([[7]], [2**20 - 7 * 127 - 1], [-11]).check(source)  # shifted to the left
    with pytest.raises(ProgramError, match="can reach 2147483648, but"):
        mix([[7]], [2**20 - 7 * 127], [-11]).check(source)


def test_bounds_of_hostile_shifts_do_not_wrap():
    layer = mix([[7]], [2**31 - 1], [-31], [[7]], [31])
    source = Units(n_i=1, bits=16, skip=Units(n_i=1, bits=16))
    with pytest.raises(ProgramError, match="the 32-bit accumulator holds at most"):
        layer.check(source)
    assert layer.bounds(source)[0][0] == ((7 * 32767 << 31) + 7 * 32767 + 2**31 - 1) << 31


GIVEN = {"C": [[1], [2]], "bias": [0, 0], "shift": [0, 0]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bias": [0]}, r"the bias of a mix must have shape \(2\), got \(1,\)"),
        ({"bias": [0, 2**31]}, "the bias of a mix must lie in"),
        ({"shift": [0, 0, 0]}, r"the shifts of a mix must have shape \(2\), got \(3,\)"),
        ({"shift": [0, -32]}, r"the shifts of a mix must lie in -31\.\.31, got -32\.\.0"),
        ({"S": [[1], [1]]}, "a mix with a skip needs S and apart, and a mix without a skip has neither"),
        ({"apart": [0, 0]}, "a mix with a skip needs S and apart, and a mix without a skip has neither"),
        ({"S": [[1]], "apart": [0, 0]}, "S must have a row for each of the 2 of C, got 1"),
        ({"S": [[1], [1]], "apart": [0, 99]}, r"the shifts between C and S must lie in -31\.\.31"),
        ({"C": None}, "C cannot be a NoneType"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    with pytest.raises(ProgramError, match=message):
        mix(**{**GIVEN, **changes})


def test_a_wrong_skip_is_refused_with_both_widths():
    layer = mix(**GIVEN, S=[[1, 2], [3, 4]], apart=[0, 0])
    source = Units(n_i=1, bits=8, skip=Units(n_i=2, bits=8))
    layer.check(source)
    with pytest.raises(ProgramError, match="S reads 2 numbers, and is given 5"):
        layer.check(replace(source, skip=Units(n_i=5, bits=8)))
    with pytest.raises(ProgramError, match="input of the layer before, but this is the first layer"):
        layer.check(samples(1))
    with pytest.raises(ProgramError, match="C reads 1 numbers, and is given 4"):
        layer.check(replace(source, n_i=4))


MADE = {
    "C": np.array([[1], [2]]),
    "bits": 4,
    "unit": np.array([0.25, 0.5]),
    "source_step": 2.0**-5,
    "bias": np.array([1, 2]),
    "step": 0.125,
    "S": np.array([[1], [2]]),
    "unit_S": np.array([1.0, 0.5]),
    "skip_step": 2.0**-8,
}
SOURCE = Units(n_i=1, bits=8, alpha=4.0, skip=Units(n_i=1, bits=8, alpha=0.5))


def test_a_made_layer_says_its_shifts_and_scales():
    layer, value = Mix.made(SOURCE, **MADE)
    assert (value, layer.apart.tolist(), layer.shift.tolist()) == (0.125, [-7 + 8, -6 + 9], [-3 + 8, -3 + 9])
    assert layer.C.alpha.tolist() == [2.0, 4.0]
    assert layer.S.alpha.tolist() == [8.0, 4.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": np.array([0.25, 0.3])}, "the units of C must be powers of two"),
        ({"unit_S": np.array([0.25, 0.0])}, "the units of S must be powers of two"),
        ({"unit_S": None}, "the units of S must have shape"),
        ({"step": 0.1}, "step must be powers of two"),
        ({"source_step": 2.0**-4}, r"the inputs of a mix had steps of 0\.0625 in training, and .* steps of 0\.03125"),
        ({"skip_step": 2.0**-4}, r"the skip of a mix had steps of 0\.0625 in training, and .* steps of 0\.00390625"),
    ],
)
def test_other_scales_than_the_trained_ones_are_refused(changes, message):
    with pytest.raises(ProgramError, match=message):
        Mix.made(SOURCE, **{**MADE, **changes})


def test_what_a_device_holds():
    """Biases on 16 bits where all fit; a byte for each shift."""
    C, d = np.ones((3, 5), int), 3
    layer = mix(C, [0, 2**15 - 1, -(2**15)], [0, 0, 0], bits=3)
    assert layer.stored_bytes == -(-15 * 3 // 8) + d + 2 * d
    assert layer.fields(samples(5), DEVICE)["bias"].dtype == np.int16
    wide = replace(layer, bias=[0, 2**15, 0])
    assert wide.stored_bytes == layer.stored_bytes + 2 * d
    assert wide.fields(samples(5), DEVICE)["bias_wide"].dtype == np.int32
    skip = replace(layer, S=Matrix(integers=np.ones((3, 7), int), bits=4, alpha=1.0), apart=[0, 0, 0])
    assert skip.stored_bytes == layer.stored_bytes + -(-21 * 4 // 8) + d
    assert (skip.weight_bits, skip.parameters, skip.n_state, skip.state_bits) == (4, 15 + 21, 0, 0)
    source = Units(n_i=5, bits=8, skip=Codes(size=7))
    assert skip.work(source) == {"per step": 15}
    assert skip.work(replace(source, skip=samples(7))) == {"per step": 15 + 21}
    found = skip.fields(source, DEVICE)
    assert found["n_skip"] == 7
    assert {"S_packed", "C_planes", "apart"} <= found.keys()
    assert "a mix of 3 outputs and a skip" in skip.describe()
