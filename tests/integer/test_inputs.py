"""Building the input part of a program."""

import numpy as np

from qornn.integer.inputs import make_samples


def test_a_whole_offset_stays_lossless():
    """x = (raw − 33)/79: x_i is raw − 33 itself, however it is scaled."""
    samples = make_samples(0, 255, 1 / 79, 33, channels=1)
    raw = np.arange(256)[:, None]
    assert samples.bits == 9
    assert np.array_equal(samples.integers(raw), raw - 33)
    assert np.array_equal(samples.from_floats((raw - 33) / 79), raw)
    np.testing.assert_allclose(samples.integers(raw) * samples.alpha / 2**8, (raw - 33) / 79)
