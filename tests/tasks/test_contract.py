"""What every task promises, checked for each entry of TASKS."""

import dataclasses

import pytest
import torch

from qornn.errors import SettingsError
from qornn.tasks import SPLITS, TASKS


@pytest.fixture(params=TASKS)
def task(request, small_task):
    return small_task(request.param)


def same(a, b):
    """Whether two batches are equal bit for bit."""
    pairs = [(a.x, b.x), (a.target, b.target)] + ([] if a.lengths is None else [(a.lengths, b.lengths)])
    return all(torch.equal(p, q) for p, q in pairs)


def sequences(batches):
    """Each sequence as bytes, input and target together."""
    return [
        x.numpy().tobytes() + target.numpy().tobytes()
        for batch in batches
        for x, target in zip(batch.x, batch.target, strict=True)
    ]


def outputs(task, batch, *, fill=0.0):
    """Constant network outputs of the right shape."""
    steps = (batch.x.shape[1],) if task.readout == "all" else ()
    return torch.full((len(batch.x), *steps, task.n_o), fill, requires_grad=True)


def test_the_name_is_the_key_and_defaults_build():
    for name, kind in TASKS.items():
        assert kind.name == name
        assert dataclasses.is_dataclass(kind())


@pytest.mark.parametrize("split", SPLITS)
def test_shapes_and_types(task, split):
    batch = task.batch(split, 0, 8)
    if task.one_hot:
        assert batch.x.dtype == torch.int64
        assert batch.x.ndim == 2
        assert 0 <= batch.x.min() <= batch.x.max() < task.n_i
    else:
        assert batch.x.dtype == torch.float32
        assert batch.x.ndim == 3
        assert batch.x.shape[2] == task.n_i
        assert 0 <= batch.x.min() <= batch.x.max() <= 1
    assert batch.target.shape == (batch.x.shape[:2] if task.readout == "all" else batch.x.shape[:1])
    if task.n_o == 1:
        assert batch.target.dtype == torch.float32
    else:
        assert batch.target.dtype == torch.int64
        assert 0 <= batch.target.min() <= batch.target.max() < task.n_o
    assert len(batch.x) == 8
    assert batch.x.is_contiguous()
    assert batch.target.is_contiguous()


@pytest.mark.parametrize("split", SPLITS)
def test_a_batch_is_a_function_of_seed_and_index_alone(task, split, small_task):
    forwards = [task.batch(split, i, 4, seed=3) for i in (0, 1, 2)]
    other = small_task(task.name)
    backwards = [other.batch(split, i, 4, seed=3) for i in (2, 1, 0)]
    assert all(same(a, b) for a, b in zip(forwards, reversed(backwards), strict=True))
    assert not same(forwards[0], forwards[1])


def test_seeds_give_different_training_batches(task):
    assert not same(task.batch("train", 0, 8, seed=0), task.batch("train", 0, 8, seed=1))


def test_epochs_are_shuffled_differently(task):
    steps = task.steps_per_epoch(8)
    assert not same(task.batch("train", 0, 8), task.batch("train", steps, 8))


def test_batches_start_anywhere(task):
    stream = task.batches("train", 8, seed=2, start=5)
    assert same(next(stream), task.batch("train", 5, 8, seed=2))
    assert same(next(stream), task.batch("train", 6, 8, seed=2))


@pytest.mark.parametrize("split", ["validation", "test"])
def test_one_pass_covers_the_split_once_whatever_the_batch_size(task, split):
    small, large = (sequences(task.batches(split, batch)) for batch in (4, 7))
    assert len(small) == task.size(split)
    assert small == large


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_batch_past_the_end_is_refused(task, split):
    with pytest.raises(SettingsError, match=f"{split} batch 999 does not exist"):
        task.batch(split, 999, 8)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "ptb"])  # whose splits are texts that may repeat
def test_splits_share_no_sequence(name, small_task):
    task = small_task(name)
    epoch = [task.batch("train", i, 8) for i in range(task.steps_per_epoch(8))]
    train, validation, test = (
        set(sequences(b)) for b in (epoch, task.batches("validation", 8), task.batches("test", 8))
    )
    assert not train & validation
    assert not train & test
    assert not validation & test


@pytest.mark.parametrize("fill", [0.0, 1e4])
def test_loss_is_finite_and_differentiable(task, fill):
    batch = task.batch("train", 0, 8)
    y = outputs(task, batch, fill=fill)
    loss = task.loss(y, batch)
    loss.backward()
    assert loss.ndim == 0
    assert loss.isfinite()
    assert y.grad is not None
    assert y.grad.isfinite().all()
    assert y.grad.abs().sum() > 0


def test_rows_share_out_the_loss(task):
    batch = task.batch("train", 0, 8)
    torch.manual_seed(0)
    y = torch.randn_like(outputs(task, batch))
    parts = [(batch.rows(0, 3), y[:3]), (batch.rows(3, 8), y[3:])]
    assert sum(part.weight for part, _ in parts) == batch.weight
    mean = sum(part.weight * task.loss(rows, part) for part, rows in parts) / batch.weight
    # 1e-5: the same float32 sum in another order.
    assert torch.isclose(mean, task.loss(y, batch), rtol=1e-5)


@pytest.mark.parametrize("bad", [{"batch": 0}, {"batch": 2.5}, {"index": -1}, {"seed": -1}, {"split": "tests"}])
def test_impossible_batches_are_refused(task, bad):
    arguments = {"split": "train", "index": 0, "batch": 4, "seed": 0} | bad
    with pytest.raises(SettingsError, match=next(iter(bad))):
        task.batch(**arguments)


def test_unknown_split_has_no_size(task):
    with pytest.raises(SettingsError, match="Did you mean 'test'"):
        task.size("tests")


def test_settings_are_frozen(task):
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.T = 3


def test_the_baseline_itself_is_not_convergence(task):
    assert not task.converged(task.naive_baseline)
    assert task.converged(100.0 if task.higher_is_better else 0.0)
    assert not task.converged(float("nan"))
