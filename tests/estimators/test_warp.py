"""Time that runs faster and slower."""

import numpy as np
import pytest

from qornn.estimators.warp import warped
from qornn.tasks.arrays import Sequences


def ramp(n, t):
    return Sequences(np.tile(np.arange(t, dtype=np.float64)[None, :, None], (n, 1, 1)), None)


def test_a_ramp_shows_the_time_at_which_each_sample_is_read():
    found = warped(ramp(200, 101), 0.03, np.random.default_rng(0)).x[:, :, 0]
    moved = found - np.arange(101)
    assert found.min() >= 0
    assert found.max() <= 100
    assert np.abs(moved[:, 50]).mean() == pytest.approx(0.03 * 101 * np.sqrt(2 / np.pi) / np.sqrt(2), rel=0.25)
    assert np.diff(found, axis=1).min() > -1e-9  # time never runs backwards at this deviation
    assert len(np.unique(moved[:, 60].round(6))) > 150  # each sequence in its own way


def test_the_same_draws_give_the_same_copies():
    first, second = (warped(ramp(3, 20), 0.05, np.random.default_rng(7)).x for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_every_sequence_is_warped_within_its_length():
    x = np.zeros((3, 9, 2))
    lengths = np.array([9, 4, 1])
    for row, length in enumerate(lengths):
        x[row, :length] = np.arange(1, length + 1)[:, None]
    found = warped(Sequences(x, lengths), 0.2, np.random.default_rng(0))
    assert found.lengths is lengths
    for row, length in enumerate(lengths):
        assert (found.x[row, length:] == 0).all()
        assert found.x[row, :length].min() >= 1
        assert found.x[row, :length].max() <= length
    assert (found.x[0] != x[0]).any()
    assert (found.x[2] == x[2]).all()


def test_whole_numbers_stay_whole():
    x = Sequences(ramp(2, 50).x.astype(np.int16), None)
    found = warped(x, 0.05, np.random.default_rng(0)).x
    assert found.dtype == np.int16
    assert (found != x.x).any()


def test_a_missing_sample_takes_no_neighbour_with_it():
    x = ramp(20, 100).x
    x[:, 3::10] = np.nan
    found = warped(Sequences(x, None), 0.03, np.random.default_rng(0)).x
    assert 0.08 < np.isnan(found).mean() < 0.12
