"""Calibration: how the sizes of states are counted."""

import pytest
import torch

from qornn import OrthogonalRNN, calibrate
from qornn.lowering.calibrate import BINS

SMALL, LARGE = 2**24 + 2**20, 2**20  # states of two sizes; the first are more than float32 counts one by one


@pytest.mark.slow
def test_states_are_counted_exactly_with_any_number_of_threads():
    model = OrthogonalRNN(n_i=1, n_h=8, n_o=2, activation="relu", generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.recurrence.U_raw.fill_(1.0)  # after one step from zero the states are the input, eight times
    x = torch.full(((SMALL + LARGE) // 8, 1, 1), 0.25)
    x[: LARGE // 8] = 1.0
    one, two = (_seen(model, x, threads) for threads in (1, 2))
    found = {index * one.layers[0].top / BINS: int(count) for index, count in enumerate(one.layers[0].counts) if count}
    assert found == {0.25: SMALL, (BINS - 1) * one.layers[0].top / BINS: LARGE}
    assert (one.layers[0].counts == two.layers[0].counts).all()
    share = 100 * (SMALL - 1) / (SMALL + LARGE)  # with only two states missing this would be the larger size
    assert one.percentile(share) == two.percentile(share) == 0.25 + one.layers[0].top / BINS


def _seen(model, x, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return calibrate(model, x, batch=len(x), sequences=None, quiet=True)
    finally:
        torch.set_num_threads(before)
