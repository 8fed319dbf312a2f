import math

import pytest
import torch

from qornn.errors import SettingsError
from qornn.tasks.copy import Copy


def test_a_sequence_is_laid_out_as_in_the_paper():
    batch = Copy(T0=4).batch("train", 0, 3)
    x, target = batch.x, batch.target
    assert x.shape == target.shape == (3, 24)
    assert 1 <= x[:, :10].min() <= x[:, :10].max() <= 8
    assert (x[:, 10:14] == 0).all()
    assert (x[:, 14] == 9).all()  # position T0 + 11, counted from 1
    assert (x[:, 15:] == 0).all()
    assert (target[:, :14] == 0).all()
    assert torch.equal(target[:, 14:], x[:, :10])


def test_the_blanks_grow_in_training_alone():
    task = Copy(T0=100, grow=50)
    lengths = [task.batch("train", index, 2).x.shape[1] - 20 for index in (0, 24, 48, 49, 50, 999)]
    assert lengths == [2, 50, 98, 100, 100, 100]
    assert task.batch("validation", 0, 2).x.shape == task.batch("test", 0, 2).x.shape == (2, 120)
    short = task.batch("train", 4, 3)  # ten blanks
    assert torch.equal(short.target[:, -10:], short.x[:, :10])
    assert (short.x[:, 20] == 9).all()
    whole = Copy(T0=100)
    assert torch.equal(short.x[:, :10], whole.batch("train", 4, 3).x[:, :10])  # the same draws


def test_symbols_are_uniform():
    counts = torch.bincount(Copy(T0=1).batch("train", 0, 4000).x[:, :10].flatten(), minlength=10)
    assert counts[0] == counts[9] == 0
    # 40 000 draws: the expected 5000 has a deviation of 66; five of them.
    assert (counts[1:9] - 5000).abs().max() < 330


def test_baseline_is_the_papers():
    assert Copy().naive_baseline == pytest.approx(2.04e-2, rel=1e-3)  # appendix, T0 = 1000
    assert Copy(T0=2000).naive_baseline == pytest.approx(10 * math.log(8) / 2020)


def test_guessing_the_symbols_scores_the_baseline():
    task = Copy(T0=50)
    batch = task.batch("test", 0, 20)
    y = torch.full((20, 70, 9), -1e4)
    y[:, :60, 0] = 0
    y[:, 60:, 1:] = 0
    assert task.metric(y, batch) == pytest.approx(task.naive_baseline, rel=1e-6)


def test_seeds_give_different_test_sets():
    assert not torch.equal(Copy(T0=1).batch("test", 0, 9, seed=0).x, Copy(T0=1).batch("test", 0, 9, seed=1).x)


def test_an_epoch_never_holds_more_than_its_size():
    task = Copy(T0=1, train_size=5)
    assert task.steps_per_epoch(8) == 1
    assert len(task.batch("train", 0, 8).x) == 5


@pytest.mark.parametrize("setting", ["T0", "train_size", "validation_size", "test_size"])
def test_settings_are_at_least_one(setting):
    with pytest.raises(SettingsError, match=f"{setting} must be a whole number of at least 1, got 0"):
        Copy(**{setting: 0})
