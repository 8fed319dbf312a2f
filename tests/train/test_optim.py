from itertools import pairwise

import pytest
import torch

from qornn.errors import SettingsError
from qornn.maps import deviation
from qornn.model import OrthogonalRNN, Stack
from qornn.recipe import TrainSettings
from qornn.train.optim import (
    learning_rate,
    make_optimizer,
    recurrences,
    set_learning_rate,
    step_and_retract,
    total_steps,
)


def test_learning_rate_follows_the_recipe():
    s = TrainSettings(lr=1.0, lr_factor=0.5, lr_every=2)
    assert [learning_rate(step, 10, s) for step in (0, 19, 20, 39, 40)] == [1, 1, 0.5, 0.5, 0.25]
    warm = TrainSettings(lr=1.0, warmup=4)
    assert [learning_rate(step, 10, warm) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]


def test_a_fraction_of_the_training_goes_through_the_whole_schedule():
    whole = TrainSettings(lr=1.0, lr_factor=0.5, lr_every=2, epochs=8)
    tenth = TrainSettings(lr=1.0, lr_factor=0.5, lr_every=2, epochs=8, fraction=0.1)
    assert (total_steps(100, whole), total_steps(100, tenth)) == (800, 80)
    assert [learning_rate(s, 100, tenth) for s in range(80)] == [learning_rate(10 * s, 100, whole) for s in range(80)]
    with pytest.raises(SettingsError, match="fraction"):
        TrainSettings(fraction=1.5)


def test_the_divider_scales_the_finished_update_of_w_alone():
    moved = {}
    for divider in (1.0, 32.0):
        model = OrthogonalRNN(2, 6, 3, map="free", generator=torch.Generator().manual_seed(0)).double()
        optimizer = make_optimizer(model, TrainSettings(optimizer="rmsprop", divider=divider))
        set_learning_rate(optimizer, 1e-3)
        before = {k: v.clone() for k, v in model.state_dict().items()}
        for p in model.parameters():
            p.grad = torch.full_like(p, 0.3)
        step_and_retract(optimizer, recurrences(model), torch.Generator())
        moved[divider] = {k: v - before[k] for k, v in model.state_dict().items()}
    # RMSprop's first step: −lr·g/(√(0.01 g²) + 1e-8) = −10 lr, to 1e-7.
    assert torch.allclose(moved[1.0]["V"], torch.full((3, 6), -1e-2, dtype=torch.float64), rtol=1e-6)
    assert torch.equal(moved[1.0]["V"], moved[32.0]["V"])
    assert torch.allclose(moved[1.0]["recurrence.W_raw"] / 32, moved[32.0]["recurrence.W_raw"])


def test_u_has_a_divider_of_its_own():
    model = OrthogonalRNN(2, 8, 3, map="hadamard", generator=torch.Generator().manual_seed(0))
    optimizer = make_optimizer(model, TrainSettings(divider_U=0.25))
    set_learning_rate(optimizer, 1e-3)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert rates[id(model.recurrence.U_raw)] == pytest.approx(4e-3)
    assert rates[id(model.V)] == rates[id(model.recurrence.b)] == 1e-3


def test_projunn_is_retracted_and_bjorck_is_not():
    for map_, stays in (("projunn", True), ("bjorck", False)):
        model = OrthogonalRNN(1, 10, 2, map=map_, generator=torch.Generator().manual_seed(0))
        optimizer = make_optimizer(model, TrainSettings())
        set_learning_rate(optimizer, 0.05)
        for _ in range(3):
            model(torch.rand(4, 6, 1, generator=torch.Generator().manual_seed(1)))[0].square().sum().backward()
            step_and_retract(optimizer, recurrences(model), torch.Generator().manual_seed(2))
        assert bool(deviation(model.recurrence.W_raw) < 1e-5) is stays


def test_one_cycle_rises_over_a_tenth_and_falls_to_nothing():
    s = TrainSettings(lr=1.0, schedule="one-cycle", steps=100)
    rates = [learning_rate(step, 10, s) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * (i + 1) for i in range(10)])
    assert rates[10] == 1.0
    assert rates[55] == pytest.approx(0.5)  # half of the cosine
    assert all(a > b for a, b in pairwise(rates[10:]))
    assert rates[-1] < 1e-3
    by_epochs = TrainSettings(lr=1.0, schedule="one-cycle", epochs=10)
    assert [learning_rate(step, 10, by_epochs) for step in range(100)] == rates
    assert learning_rate(0, 1, TrainSettings(lr=1.0, schedule="one-cycle", steps=1)) == 1.0


def test_lambda_learns_slowly_and_only_matrices_decay():
    model = Stack.rotations(3, 2, width=4, pairs=5, skip=True, generator=torch.Generator().manual_seed(0))
    optimizer = make_optimizer(model, TrainSettings(optimizer="adamw", decay=0.01))
    set_learning_rate(optimizer, 1e-3)
    groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    assert len(groups) == len(list(model.parameters()))
    for name, parameter in model.named_parameters():
        group = groups[id(parameter)]
        assert group["lr"] == (2.5e-4 if name.endswith(("nu", "phi")) else 1e-3), name
        assert group["weight_decay"] == (0.01 if parameter.ndim == 2 else 0.0), name
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    step_and_retract(optimizer, [], torch.Generator())
    for name, parameter in model.named_parameters():
        factor = 1 - 1e-3 * 0.01 if parameter.ndim == 2 else 1.0
        assert torch.allclose(parameter, factor * before[name], rtol=1e-7, atol=0), name


def test_unknown_optimizer():
    with pytest.raises(SettingsError, match="Did you mean 'adam'"):
        make_optimizer(OrthogonalRNN(1, 3, 2), TrainSettings(optimizer="adamm"))
