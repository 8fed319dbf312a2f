import math

import pytest
import torch

from qornn.tasks.base import Batch
from qornn.tasks.losses import accuracy, bits_per_character, cross_entropy, squared_error


def test_uniform_outputs_cost_the_logarithm_of_the_choices():
    batch = Batch(torch.zeros(2, 3), torch.tensor([[0, 1, 2], [3, 4, 5]]), torch.tensor([3, 1]))
    y = torch.zeros(2, 3, 8)
    assert cross_entropy(y, batch).item() == pytest.approx(math.log(8))
    assert bits_per_character(y, batch) == pytest.approx(3)


def test_padding_has_no_loss_and_no_gradient():
    batch = Batch(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.int64), torch.tensor([3, 1]))
    y = torch.zeros(2, 3, 4)
    y[1, 1:, 1] = 50  # badly wrong, but after the end
    y.requires_grad_()
    loss = cross_entropy(y, batch)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(4))
    assert y.grad is not None
    assert y.grad[1, 1:].abs().max() == 0
    assert y.grad[1, 0].abs().max() > 0


def test_the_mean_is_over_characters_not_over_sequences():
    batch = Batch(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.int64), torch.tensor([3, 1]))
    y = torch.zeros(2, 3, 2)
    y[1, 0, 1] = 100  # one of four characters costs 100
    assert cross_entropy(y, batch).item() == pytest.approx((3 * math.log(2) + 100) / 4)


def test_accuracy_is_in_percent():
    y = torch.eye(4)
    assert accuracy(y, Batch(torch.zeros(4), torch.tensor([0, 1, 2, 0]))) == 75.0


def test_squared_error_pairs_each_output_with_its_target():
    batch = Batch(torch.zeros(3, 1), torch.tensor([1.0, 2.0, 4.0]))
    # A (B, 1) output broadcast against (B,) targets would compare every pair.
    assert squared_error(torch.tensor([[1.0], [2.0], [3.0]]), batch).item() == pytest.approx(1 / 3)
