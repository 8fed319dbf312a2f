import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from qornn.integer.rounding import round_half_away
from qornn.quant.base import round_half_away as torch_round_half_away

BELOW_HALF = 0.49999999999999994  # floor(|x| + 0.5) makes 1 of it


def agree(x):
    x = np.asarray(x, np.float64)
    return round_half_away(x).tolist() == torch_round_half_away(torch.from_numpy(x)).long().tolist()


def test_ties_go_away_from_zero_and_what_is_just_below_does_not():
    x = [0.5, -0.5, 1.5, -1.5, 2.5, -2.5, BELOW_HALF, -BELOW_HALF, 1.4999999999999998, 0.0, -0.0, 4503599627370495.5]
    assert round_half_away(np.array(x)).tolist() == [1, -1, 2, -2, 3, -3, 0, 0, 1, 0, 0, 4503599627370496]
    assert agree(x)


@given(st.lists(st.floats(-(2.0**52), 2.0**52), min_size=1, max_size=50))
def test_numpy_and_torch_round_alike(x):
    assert agree(x)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=50))
def test_numpy_and_torch_round_alike_at_and_beside_every_tie(whole):
    ties = np.array(whole) + 0.5
    x = np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])
    assert agree(x)


@given(st.floats(-(2.0**31), 2.0**31, width=32))
def test_float32_rounds_as_the_float64_it_is(x):
    assert round_half_away(np.float32(x)) == int(torch_round_half_away(torch.tensor(x, dtype=torch.float32)))


@given(st.floats(-(2.0**40), 2.0**40))
def test_the_result_is_an_int64_at_most_a_half_away(x):
    got = round_half_away(x)
    assert got.dtype == np.int64
    assert abs(int(got) - x) <= 0.5
    assert abs(int(got)) >= abs(x) or abs(int(got) - x) < 0.5  # a tie went away from zero
