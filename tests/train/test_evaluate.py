import math

import pytest
import torch

from qornn.model import OrthogonalRNN
from qornn.quant import Uniform
from qornn.tasks import make_task
from qornn.tasks.copy import Copy
from qornn.train.evaluate import diagnostics, evaluate, quantized


def task():
    return make_task("copy", T0=3, train_size=32, validation_size=20, test_size=21)


def model(**options):
    options = {"readout": "all", "generator": torch.Generator().manual_seed(0)} | options
    return OrthogonalRNN(10, 12, 9, **options)


def test_the_metric_does_not_depend_on_the_batch():
    network = model(bits=4)
    found = [evaluate(network, task(), "test", batch) for batch in (1, 4, 21, 100)]
    assert found == pytest.approx([found[0]] * 4, rel=1e-5)


def test_an_empty_split_gives_nan():
    class NothingHeldOut(Copy):
        def size(self, split):
            return 0 if split == "validation" else super().size(split)

    assert math.isnan(evaluate(model(), NothingHeldOut(T0=3), "validation", 8))


def test_diagnostics_of_a_known_matrix():
    network = model(map="free", activation="identity")
    network.recurrence.W_raw.data = torch.diag(torch.tensor([2.0] + [1.0] * 11))
    found = diagnostics(network, next(task().batches("test", 4)))
    assert found["orthogonality"] == pytest.approx(3.0)
    assert (found["sigma_min"], found["sigma_max"]) == pytest.approx((1.0, 2.0))
    assert found["saturation"] == 0.0
    batch = next(task().batches("test", 4))
    states, _ = network.recurrence(batch.x)
    assert found["max_h"] == pytest.approx(states.abs().max().item())


def test_saturation_counts_the_weights_the_grid_cuts_off():
    network = model(map="free", bits=2)
    W = torch.zeros(12, 12)
    W[0, 0], W[1, 1], W[2, 2] = 1.0, -1.0, 0.9  # levels −1, −1/2, 0, 1/2: both positive ones are out of reach
    network.recurrence.W_raw.data = W
    assert diagnostics(network, next(task().batches("test", 2)))["saturation"] == pytest.approx(2 / 144)


def test_quantizers_are_put_back():
    network = model(bits=8, quantizer="identity-offset", scale="row")
    trained = network.recurrence.W_q()
    with quantized(network, None):
        assert torch.equal(network.recurrence.W_q(), network.recurrence.W())
    with quantized(network, 2):
        assert network.recurrence.q_W.scale == "row"
        assert len((network.recurrence.W_q()[0] - torch.eye(12)[0]).unique()) <= 4
    assert torch.equal(network.recurrence.W_q(), trained)
    rough = model(bits_U=8, quantizer=Uniform(4, scale="row", fit="mse"))
    with quantized(rough, 3):
        assert (rough.recurrence.q_W.fit, rough.recurrence.q_U.scale) == ("mse", "row")
        assert (rough.recurrence.q_W.bits, rough.recurrence.q_U.bits) == (3, 3)
    assert (rough.recurrence.q_W.bits, rough.recurrence.q_U.bits) == (4, 8)
    full = model()
    with quantized(full, 3):
        assert full.recurrence.bits == 3
    assert full.recurrence.bits is None
