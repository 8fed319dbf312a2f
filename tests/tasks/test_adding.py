import numpy as np
import pytest
import torch

from qornn.errors import SettingsError
from qornn.tasks.adding import Adding


@pytest.mark.parametrize("T", [2, 3, 10, 11])
def test_one_marker_in_each_half_and_the_sum_of_the_marked(T):
    batch = Adding(T=T).batch("train", 0, 200)
    value, marker = batch.x.unbind(-1)
    assert ((marker == 0) | (marker == 1)).all()
    assert (marker[:, : T // 2].sum(1) == 1).all()
    assert (marker[:, T // 2 :].sum(1) == 1).all()
    # 1e-6: a sum of two float32 numbers below 1.
    assert torch.allclose((value * marker).sum(1), batch.target, atol=1e-6)


@pytest.mark.parametrize("T", [2, 3, 10, 11])
def test_every_position_can_be_marked(T):
    batch = Adding(T=T).batch("train", 0, 400)
    assert (batch.x[:, :, 1].sum(0) > 0).all()


def test_values_are_uniform():
    values = Adding(T=100).batch("train", 0, 300).x[:, :, 0]
    # 30 000 draws: the mean of a uniform number is known to 0.0017; five deviations.
    assert values.mean().item() == pytest.approx(0.5, abs=0.009)
    assert values.var().item() == pytest.approx(1 / 12, abs=0.003)


def test_answering_one_scores_the_baseline():
    task = Adding(T=2)
    batch = task.batch("test", 0, 2000)
    # 2000 sequences: the mean squared error has a deviation of 0.0042; five of them.
    assert task.metric(torch.ones(2000, 1), batch) == pytest.approx(task.naive_baseline, abs=0.021)
    assert task.naive_baseline == pytest.approx(0.167, abs=5e-4)  # appendix, adding task


def test_the_training_set_repeats_each_epoch_in_another_order():
    task = Adding(T=6, train_size=20)
    first, second = (
        torch.cat([task.batch("train", i, 5).x for i in epoch]).numpy() for epoch in (range(4), range(4, 8))
    )
    assert not np.array_equal(first, second)
    assert np.array_equal(np.unique(first, axis=0), np.unique(second, axis=0))


def test_seeds_give_different_test_sets():
    assert not torch.equal(Adding(T=6).batch("test", 0, 5, seed=0).x, Adding(T=6).batch("test", 0, 5, seed=1).x)


def test_two_markers_need_two_steps():
    with pytest.raises(SettingsError, match="T must be a whole number of at least 2, got 1"):
        Adding(T=1)


@pytest.mark.parametrize("setting", ["train_size", "validation_size", "test_size"])
def test_sizes_are_at_least_one(setting):
    with pytest.raises(SettingsError, match=f"{setting} must be a whole number of at least 1, got 0"):
        Adding(**{setting: 0})
