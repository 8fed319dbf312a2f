"""Grids that nothing has been rounded to yet, and those that 32 bits of a device leave."""

import pytest
import torch

import qornn
from qornn.errors import SettingsError
from qornn.model.entry import Entry
from qornn.model.steps import Steps


def test_where_all_was_zero_the_first_other_value_sets_the_step():
    steps = Steps(127, 3)
    steps.see(torch.tensor([127.0, 0.0, 0.0]))
    assert steps.step.tolist() == [1, 1, 1]
    assert steps.move() is None
    steps.see(torch.tensor([127.0, 0.01, 0.0]))
    assert steps.step.tolist() == [1, 2**-13, 1]  # at once, and no factor for who reads it
    assert steps.move() is None


def test_what_fell_silent_is_not_forgotten():
    steps = Steps(127, 1)
    steps.see(torch.tensor([1.0]))
    for _ in range(6000):  # float32 of the decayed maximum would be 0
        steps.see(torch.tensor([0.0]))
        steps.move()
    assert float(steps.peak) > 0
    silent = float(steps.step)
    steps.see(torch.tensor([1.0]))
    assert steps.move().tolist() == [0.5]
    assert float(steps.step) == 2 * silent


def test_a_silent_first_batch_decides_nothing_about_inputs():
    entry = Entry(8)
    assert not entry(torch.zeros(2, 5, 1)).any()
    assert not entry.started
    x = torch.randn(2, 5, 1, generator=torch.Generator().manual_seed(0))
    assert (entry(x) - x).abs().max() < 0.05


def test_a_network_learns_after_a_silent_first_batch():
    generator = torch.Generator().manual_seed(0)
    model = qornn.Stack.rotations(2, 2, generator=generator)
    x = torch.randn(8, 12, 2, generator=generator)
    model(torch.zeros_like(x))
    for _ in range(3):
        model(x)
    program = qornn.lower(model.eval(), x, quiet=True)
    assert program.run(program.input.clip(program.input.from_network(x.numpy()))).std(0).min() > 0


def test_steps_leave_room_for_all_inputs_at_their_largest():
    """Else a wide network of 16-bit states was refused when it had been trained: a sum could pass 32 bits."""
    generator = torch.Generator().manual_seed(0)
    wide = {"width": 192, "state_bits": 16, "lambda_bits": 12, "ring": (0.0, 0.99)}
    model = qornn.Stack.rotations(4, 3, layers=1, **wide, generator=generator)
    x = torch.randn(8, 20, 4, generator=generator)
    for _ in range(6):
        model(x)
    assert qornn.lower(model.eval(), x, quiet=True).accumulator_bits <= 32


@pytest.mark.parametrize("ring", [0.5, None, (1,), ("a", "b"), (0.1, 0.2, 0.3)])
def test_a_ring_that_is_not_two_radii_is_refused(ring):
    with pytest.raises(SettingsError, match="ring must be two radii"):
        qornn.Stack.rotations(3, 2, ring=ring)


@pytest.mark.parametrize("name", ["lambda_bits", "input_bits"])
def test_bits_are_whole_numbers(name):
    with pytest.raises(SettingsError, match=rf"{name} must be in .*, got 8\.0"):
        qornn.Stack.rotations(3, 2, **{name: 8.0})
