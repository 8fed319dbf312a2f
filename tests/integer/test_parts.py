from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import round_exactly

from qornn.errors import ProgramError, SettingsError
from qornn.integer.activations import ModReLU
from qornn.integer.inputs import Codes, Samples
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.state import State

RAW = {"bits": 9, "alpha": 256 / 255, "low": 0, "high": 255, "offset": [0], "multiplier": [1], "shift": [0]}


def test_the_largest_state_and_its_step():
    state = State(bits=12, alpha=4.0)
    assert state.top == 2047
    assert state.step == 4 / 2048


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64])
def test_numpy_numbers_become_plain_ones(kind):
    """2 ** uint8(11) would be 0."""
    state, samples = State(bits=kind(12), alpha=np.float32(1.5)), Samples(**{**RAW, "bits": kind(9), "high": kind(99)})
    assert state.top == 2047
    assert samples.integers(np.array([99])).tolist() == [99]
    assert all(type(n) is int for n in (state.bits, samples.bits, samples.high, Codes(size=kind(9)).size))
    assert type(state.alpha) is float


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: State(bits=3, alpha=1.0), r"activation_bits must be a whole number in 4\.\.16, got 3"),
        (lambda: State(bits=17, alpha=1.0), r"activation_bits must be a whole number in 4\.\.16, got 17"),
        (lambda: State(bits=12.0, alpha=1.0), r"activation_bits must be a whole number in 4\.\.16, got 12.0"),
        (lambda: State(bits=12, alpha=0.0), "alpha_h must be positive and finite, got 0.0"),
        (lambda: State(bits=12, alpha=-1.0), "alpha_h must be positive and finite, got -1.0"),
        (lambda: State(bits=12, alpha=float("nan")), "alpha_h must be positive and finite, got nan"),
        (lambda: State(bits=12, alpha=float("inf")), "alpha_h must be positive and finite, got inf"),
        (lambda: State(bits=12, alpha=10**400), "alpha_h must be positive and finite, got 1000"),
        (lambda: State(bits=12, alpha="1"), "alpha_h must be positive and finite, got '1'"),
        (lambda: Codes(size=0), r"number of codes must be a whole number in 1\.\.32767, got 0"),
        (lambda: Codes(size=2**15), r"number of codes must be a whole number in 1\.\.32767"),
        (lambda: Samples(**{**RAW, "bits": 17}), r"input_bits must be a whole number in 2\.\.16, got 17"),
        (lambda: Samples(**{**RAW, "alpha": 0.0}), "alpha_i must be positive"),
        (lambda: Samples(**{**RAW, "low": -(2**15) - 1}), "input low must be a whole number"),
        (lambda: Samples(**{**RAW, "high": 2**15}), "input high must be a whole number"),
        (lambda: Samples(**{**RAW, "low": 256}), r"input high must be a whole number in 256\.\.32767, got 255"),
        (lambda: Samples(**{**RAW, "offset": [0.0]}), "input offset must hold integers, got float64"),
        (lambda: Samples(**{**RAW, "offset": [2**30 + 1]}), "input offset must lie in"),
        (lambda: Samples(**{**RAW, "multiplier": [-1]}), r"input multiplier must lie in 0\.\.2147483647, got -1"),
        (lambda: Samples(**{**RAW, "multiplier": [1, 1]}), r"input multiplier must have shape \(1\), got \(2,\)"),
        (lambda: Samples(**{**RAW, "shift": [62]}), r"input shift must lie in 0\.\.61, got 62\.\.62"),
        (lambda: Samples(**{**RAW, "scale": -1.0}), "input scale must be positive"),
        (lambda: ModReLU(bias=[0.5]), "bias must hold integers, got float64"),
        (lambda: ModReLU(bias=[2**62 + 1]), "bias must lie in"),
        (lambda: ModReLU(bias=np.zeros((2, 2), int)), r"bias must have shape \(any\), got \(2, 2\)"),
        (lambda: FloatReadout(V=[[np.nan]], b_o=[0.0], scale=1.0), "V must be finite, got NaN or infinity"),
        (lambda: FloatReadout(V=[[1e300]], b_o=[0.0], scale=1.0), "V must be finite, got NaN or infinity"),
        (lambda: FloatReadout(V=[[1.0]], b_o=[np.inf], scale=1.0), "b_o must be finite"),
        (lambda: FloatReadout(V=[[1.0]], b_o=[0.0, 0.0], scale=1.0), r"b_o must have shape \(1\), got \(2,\)"),
        (lambda: FloatReadout(V=[1.0], b_o=[0.0], scale=1.0), r"V must be \(n_o, n_h\), got shape \(1,\)"),
        (lambda: FloatReadout(V=np.zeros((0, 2)), b_o=[], scale=1.0), r"V must be \(n_o, n_h\), got shape \(0, 2\)"),
        (lambda: FloatReadout(V=[[1.0]], b_o=[0.0], scale=0.0), "readout scale must be positive"),
        (lambda: FloatReadout(V=[[1.0]], b_o=[0.0], scale=1e300), r"readout scale \(as float32\) must be positive"),
        (lambda: FloatReadout(V=[[1.0]], b_o=[0.0], scale=1e-60), r"readout scale \(as float32\) must be positive"),
        (
            lambda: FloatReadout(V=[[1.0]], b_o=[0.0], scale=1.0, relu=1),
            "the readout's relu must be True or False, got 1",
        ),
        (lambda: IntReadout(V=[[128]], bias=[0], scale=1.0), r"V must lie in -128\.\.127, got 128\.\.128"),
        (lambda: IntReadout(V=[[1.0]], bias=[0], scale=1.0), "V must hold integers"),
        (lambda: IntReadout(V=[[1]], bias=[2**31], scale=1.0), "b_o must lie in"),
        (lambda: IntReadout(V=[[1]], bias=[0, 0], scale=1.0), r"b_o must have shape \(1\), got \(2,\)"),
        (lambda: IntReadout(V=[[1]], bias=[0], scale=float("nan")), "readout scale must be positive"),
    ],
)
def test_bad_parts_are_refused_in_words(make, message):
    with pytest.raises(ProgramError, match=message):
        make()


def test_arrays_are_copies_closed_to_writing():
    V = np.ones((1, 2), np.float32)
    readout, samples = FloatReadout(V=V, b_o=[0.0], scale=1.0), Samples(**RAW)
    V[0, 0] = np.nan
    assert readout.V.tolist() == [[1.0, 1.0]]
    integer = IntReadout(V=[[1]], bias=[0], scale=1.0)
    arrays = [readout.V, readout.b_o, integer.V, integer.bias, samples.offset, samples.multiplier, samples.shift]
    for array in [*arrays, ModReLU(bias=[1]).bias]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_pixels_are_their_own_integers():
    samples = Samples(**RAW)
    assert samples.plain
    assert samples.integers(np.arange(256)[:, None]).ravel().tolist() == list(range(256))
    assert not Samples(**{**RAW, "bits": 8}).plain  # 255 would be clamped
    for name in ("offset", "shift"):
        assert not Samples(**{**RAW, name: [1]}).plain


@given(
    st.integers(2, 16),
    st.integers(-(2**30), 2**30),
    st.integers(0, 2**31 - 1),
    st.integers(0, 61),
    st.lists(st.integers(-(2**15), 2**15 - 1), min_size=1, max_size=9),
)
def test_normalised_samples_are_rounded_exactly_and_clamped(bits, offset, multiplier, shift, raw):
    samples = Samples(
        bits=bits,
        alpha=1.0,
        low=-(2**15),
        high=2**15 - 1,
        offset=[offset],
        multiplier=[multiplier],
        shift=[shift],
    )
    top = 2 ** (bits - 1)
    half = Fraction(1, 2) if shift else 0
    want = [int((Fraction((v - offset) * multiplier, 2**shift) + half) // 1) for v in raw]  # ties go up
    assert samples.integers(np.array(raw)[:, None]).ravel().tolist() == [max(-top, min(top - 1, v)) for v in want]


@given(st.integers(0, 2**32 - 1))
def test_the_bound_of_the_input_sum_is_reached_and_never_passed(seed):
    rng = np.random.default_rng(seed)
    low, high = sorted(rng.integers(-9, 10, 2).tolist())
    U, one = rng.integers(-8, 8, (2, 2)), np.ones(2, int)
    samples = Samples(bits=5, alpha=1.0, low=low, high=high, offset=one, multiplier=one * 3, shift=one)
    grid = np.stack(np.meshgrid(*[np.arange(low, high + 1)] * 2), -1).reshape(-1, 2)
    x = samples.integers(grid)
    assert samples.sum_bound(U).tolist() == (np.abs(U) @ np.abs(x).max(0)).tolist()
    assert (np.abs(x @ U.T).max(0) <= samples.sum_bound(U)).all()
    assert Codes(size=2).sum_bound(U).tolist() == np.abs(U).max(1).tolist()


def test_floats_become_raw_samples():
    plain = {"offset": [0], "multiplier": [1], "shift": [0]}
    samples = replace(Samples(**RAW), alpha=0.25 * 2 ** (Samples(**RAW).bits - 1), scale=0.25, **plain)
    assert samples.gain().tolist() == [4.0]
    assert samples.from_floats(np.array([[0.0], [0.125], [-0.125], [0.37], [1e300], [-1e300]])).ravel().tolist() == [
        0,
        1,  # a tie
        -1,
        1,
        2**31,  # past int16, for `accept` to see
        -(2**31),
    ]
    assert Codes(size=3).from_floats([[1, 2]]).tolist() == [[1, 2]]


@given(st.integers(-1000, 1000), st.integers(1, 2**20), st.integers(0, 20), st.integers(-3000, 3000))
def test_a_raw_sample_comes_back_from_its_float(offset, multiplier, shift, raw):
    """x = (raw − offset)·multiplier/2^shift input units, exactly: from_floats undoes it."""
    part = Samples(
        bits=8, alpha=2.0, low=-3000, high=3000, offset=[offset], multiplier=[multiplier], shift=[shift], scale=1.0
    )
    x = (raw - offset) * multiplier / 2**shift * (2.0 / 2**7)
    assert part.from_floats(np.array([[x]])).item() == raw


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_floats_that_are_no_numbers_are_refused(bad):
    with pytest.raises(SettingsError, match="x holds NaN or infinity; fill or drop missing values first"):
        Samples(**RAW, scale=0.25).from_floats(np.array([0.0, bad]))
    with pytest.raises(SettingsError, match="no scale for floats; feed it raw integers"):
        Samples(**RAW).from_floats(np.array([0.0]))


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_float_readout_is_a_sum_in_order(seed, relu):
    """Products and sums in float32, j = 0…n_h−1, none fused: another order gives other bits."""
    rng = np.random.default_rng(seed)
    V, b_o = rng.normal(size=(3, 50)).astype(np.float32), rng.normal(size=3).astype(np.float32)
    h, scale = rng.integers(-2047, 2048, (2, 50)), float(rng.uniform(0.001, 1))
    readout = FloatReadout(V=V, b_o=b_o, scale=scale, relu=relu)
    y = readout.outputs(h)
    for b, o in np.ndindex(2, 3):
        total = np.float32(0)
        for j in range(50):
            seen = max(int(h[b, j]), 0) if relu else int(h[b, j])
            total = np.float32(total + np.float32(np.float32(seen) * V[o, j]))
        assert y[b, o] == np.float32(np.float32(total * np.float32(scale)) + b_o[o])
    assert y.dtype == np.float32
    assert readout.values(y) is y


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([np.int16, np.int64]))
def test_the_integer_readout_is_exact(seed, relu, dtype):
    rng = np.random.default_rng(seed)
    V, bias = rng.integers(-128, 128, (3, 5)), rng.integers(-(2**20), 2**20, 3)
    h = rng.integers(-32767, 32768, (2, 4, 5)).astype(dtype)
    readout = IntReadout(V=V, bias=bias, scale=0.5, relu=relu)
    y = readout.outputs(h)
    assert y.dtype == np.int32
    assert y.tolist() == (np.where(relu & (h < 0), 0, h.astype(int)) @ V.T + bias).tolist()
    assert readout.values(y).tolist() == (y / 2).astype(np.float32).tolist()


def test_scales_are_stored_as_what_they_are_used_as():
    assert FloatReadout(V=[[1.0]], b_o=[0.0], scale=0.1).scale == float(np.float32(0.1)) != 0.1
    assert IntReadout(V=[[1]], bias=[0], scale=0.1).scale == 0.1
    assert round_exactly(Fraction(-1, 2)) == -1
