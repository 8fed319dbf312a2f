"""Building the input part of a program."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import ProgramError, SettingsError
from qornn.integer.inputs import Codes, Samples, make_samples


def test_a_whole_offset_stays_lossless():
    """x = (raw − 33)/79: x_i is raw − 33 itself, however it is scaled."""
    samples = make_samples(0, 255, 1 / 79, 33, channels=1)
    raw = np.arange(256)[:, None]
    assert samples.bits == 9
    assert np.array_equal(samples.integers(raw), raw - 33)
    assert np.array_equal(samples.from_floats((raw - 33) / 79), raw)
    np.testing.assert_allclose(samples.integers(raw) * samples.alpha / 2**8, (raw - 33) / 79)


def windowed(window, channels=2, **more):
    """Samples whose channels differ in everything."""
    which = np.arange(channels)
    given = {"offset": 5 * which - 3, "multiplier": 3 + which, "shift": which, "scale": 0.5}
    return Samples(**{"bits": 8, "alpha": 2.0, "low": -50, "high": 60, "window": window, **given, **more})


def test_a_window_holds_its_samples_one_after_another():
    """x_i of w samples at once are those of each alone, and so are raw ones of floats."""
    one, three = windowed(1), windowed(3)
    assert (one.n_i, three.n_i, three.channels, three.shape) == (2, 6, 2, (6,))
    raw = np.random.default_rng(0).integers(-50, 61, (4, 6))
    assert (three.integers(raw).reshape(4, 3, 2) == one.integers(raw.reshape(4, 3, 2))).all()
    x = np.random.default_rng(1).normal(size=(4, 6))
    for name in ("from_floats", "from_network"):
        assert (getattr(three, name)(x).reshape(4, 3, 2) == getattr(one, name)(x.reshape(4, 3, 2))).all()
    scaled = {"raw_scale": np.array([0.5, 2.0])}
    got = windowed(3, **scaled).from_floats(x)
    assert (got.reshape(4, 3, 2) == windowed(1, **scaled).from_floats(x.reshape(4, 3, 2))).all()


def test_a_window_costs_a_device_nothing():
    assert windowed(7).stored_bytes == windowed(1).stored_bytes == 18
    U = np.array([[1, -2, 3, -4, 5, -6]])
    ends = np.abs(windowed(1).integers(np.array([[-50, -50], [60, 60]]))).max(0)
    assert windowed(3).sum_bound(U).tolist() == [9 * ends[0] + 12 * ends[1]]


@pytest.mark.parametrize("window", [0, -1, 1.5, True, 2**20])
def test_windows_that_cannot_be_are_refused(window):
    with pytest.raises(ProgramError, match="samples of a window must be a whole number in 1"):
        windowed(window)


def test_all_steps_of_a_window_are_wanted():
    with pytest.raises(SettingsError, match=r"raw samples \(B, T, 6\); got shape \(1, 2, 4\)"):
        windowed(3).accept(np.zeros((1, 2, 4), int))


NARROW = {"low": -(2**15), "high": 2**15 - 1, "offset": [0], "scale": None}


@pytest.mark.parametrize(
    ("multiplier", "shift", "offset", "narrow"),
    [
        (2**16, 0, 0, True),  # −2^31 is the last that fits
        (2**16 + 1, 0, 0, False),
        (2**16, 1, 0, True),
        (2**16, 16, 0, True),
        (2**16, 17, 0, False),  # (2^15 − 1)·2^16 + 2^16 is 2^31
        (1, 31, 0, True),
        (1, 32, 0, False),
        (1, 0, 2**30, True),
        (2, 0, 2**30, False),
        (2, 0, -(2**30), False),
    ],
)
def test_narrow_is_what_32_bits_hold(multiplier, shift, offset, narrow):
    part = windowed(1, 1, **{**NARROW, "multiplier": [multiplier], "shift": [shift], "offset": [offset]})
    assert part.narrow == narrow


@given(
    seed=st.integers(0, 2**32 - 1), bits=st.integers(2, 16), window=st.integers(1, 3), log_alpha=st.integers(-2, 8),
)  # fmt: skip
def test_narrow_samples_round_nearly_as_wide_ones(seed, bits, window, log_alpha):
    """A multiplier of at least 15 bits: x_i differ by one at most, of two of them by a 2^-14th of their range."""
    rng = np.random.default_rng(seed)
    low, high = sorted(rng.integers(-(2**15), 2**15, 2).tolist())
    mean, std = rng.uniform(low, high, 2), np.exp2(rng.uniform(2, 14, 2))
    given = {"channels": 2, "bits": bits, "alpha": 2.0**log_alpha, "mean": mean, "std": std, "window": window}
    wide, narrow = make_samples(low, high, 1.0, **given), make_samples(low, high, 1.0, narrow=True, **given)
    assert narrow.narrow
    assert narrow.window == window
    raw = rng.integers(low, high + 1, (200, 2 * window))
    apart = np.abs(wide.integers(raw) - narrow.integers(raw))
    assert apart.max() <= max(1, 2 ** (bits - 14))


def test_what_no_narrow_multiplier_holds_is_refused():
    with pytest.raises(SettingsError, match="too large for 32-bit products; change input_bits"):
        make_samples(-(2**15), 2**15 - 1, 1.0, channels=1, bits=16, alpha=1e-9, narrow=True)


def test_ranges_are_where_samples_do_not_saturate():
    how = {"mean": np.array([1.0, -2.0]), "std": np.array([0.5, 3.0]), "bits": 8, "alpha": 4.0}
    samples = make_samples(-(2**15), 2**15 - 1, 2.0**-8, channels=2, window=3, **how)
    assert (samples.channels, samples.window, samples.hold) == (2, 3, False)
    low, high = samples.ranges.T  # in the network's own units, as `from_floats` takes them here
    for ends, past, want in ((low, 1.1 * low, -128), (high, 1.1 * high, 127)):
        inside, outside = (
            samples.integers(samples.clip(samples.from_floats(np.tile(x, 3)[None, None]))) for x in (0.95 * ends, past)
        )
        assert (outside == want).all()
        assert (inside != want).all()


def test_codes_are_one_number_at_a_time():
    codes = Codes(size=10)
    assert (codes.channels, codes.window, codes.hold, codes.ranges.tolist()) == (1, 1, False, [[0, 9]])
