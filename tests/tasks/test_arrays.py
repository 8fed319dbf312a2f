import math

import numpy as np
import pytest
import torch

from qornn.errors import SettingsError
from qornn.tasks.arrays import Arrays, Sequences


def of_lengths(*lengths, channels=2):
    x = np.zeros((len(lengths), max(lengths), channels), np.float32)
    for row, length in enumerate(lengths):
        x[row, :length] = row + 1
    return Sequences(x, np.array(lengths))


def test_rows_are_padded_no_further_than_needed():
    part = of_lengths(5, 2, 3).rows([1, 2])
    assert part.x.shape == (2, 3, 2)
    assert part.lengths.tolist() == [2, 3]


def test_samples_leave_padding_out():
    samples = of_lengths(3, 1).samples()
    assert samples[:, 0].tolist() == [1, 1, 1, 2]


def test_an_epoch_shows_every_training_sequence_once():
    x = Sequences(np.arange(12, dtype=np.float32).reshape(12, 1, 1), None)
    task = Arrays(sequences={"train": x}, targets={"train": np.arange(12)}, classes=12)
    seen = [int(v) for index in range(3) for v in task.batch("train", index, 4, seed=3).x.flatten()]
    assert sorted(seen) == list(range(12))
    assert seen != list(range(12))
    assert task.size("validation") == 0


def test_baselines_are_those_of_one_guess():
    x = of_lengths(1, 1, 1, 1)
    classes = Arrays(sequences={"train": x}, targets={"train": np.array([0, 1, 2, 0])}, classes=3)
    assert classes.naive_baseline == math.log(3)
    values = Arrays(sequences={"train": x}, targets={"train": np.array([0, 2, 0, 2], np.float32)})
    assert values.naive_baseline == 1.0
    assert (classes.n_o, values.n_o) == (3, 1)


def test_class_weights_weigh_the_loss():
    x, target = of_lengths(1, 1), np.array([0, 1])
    task = Arrays(sequences={"train": x}, targets={"train": target}, classes=2, class_weight=np.array([3.0, 1.0]))
    y = torch.tensor([[2.0, 0.0], [2.0, 0.0]])
    batch = task.batch("train", 0, 2)
    each = torch.nn.functional.cross_entropy(y, batch.target, reduction="none")
    weight = torch.tensor([3.0, 1.0])[batch.target]
    assert float(task.loss(y, batch)) == pytest.approx(float((each * weight).sum() / 4), rel=1e-6)  # float32


def test_a_rare_class_weighs_the_same_however_the_batches_fall():
    x, target = of_lengths(1, 1, 1, 1), np.array([1, 0, 0, 0])
    task = Arrays(sequences={"train": x}, targets={"train": target}, classes=2, class_weight=np.array([2 / 3, 2.0]))
    y = torch.tensor([[2.0, 0.0]])
    whole = float(task.loss(y.expand(4, 2), task.batch("train", 0, 4)))
    halves = [float(task.loss(y.expand(2, 2), task.batch("train", i, 2))) for i in (0, 1)]
    assert sum(halves) / 2 == pytest.approx(whole, rel=1e-6)  # float32


def test_nothing_to_train_on_is_refused():
    with pytest.raises(SettingsError, match="nothing to train on"):
        Arrays(sequences={}, targets={})


def test_as_many_targets_as_sequences():
    with pytest.raises(SettingsError, match="2 train sequences have 3 targets"):
        Arrays(sequences={"train": of_lengths(1, 2)}, targets={"train": np.zeros(3, int)}, classes=2)


@pytest.mark.parametrize("classes", [3, None])
def test_mixup_adds_up_two_sequences_and_their_targets_by_the_same_shares(classes):
    x = np.zeros((6, 4, 2), np.float32)
    y = np.array([0, 0, 1, 1, 2, 2]) if classes else np.linspace(0, 5, 6, dtype=np.float32)
    x[:] = (np.eye(3, dtype=np.float32)[y] @ [1, 10, 100] if classes else y)[:, None, None]
    given = {"train": Sequences(x, None), "validation": Sequences(x, None)}
    task = Arrays(sequences=given, targets={"train": y, "validation": y}, classes=classes, mixup=1.0)
    batch = task.batch("train", 0, 6, seed=1)
    again = task.batch("train", 0, 6, seed=1)
    assert torch.equal(batch.x, again.x)
    assert not torch.equal(batch.x, task.batch("train", 1, 6, seed=1).x)
    value = batch.target @ torch.tensor([1.0, 10, 100]) if classes else batch.target
    assert torch.allclose(batch.x, value[:, None, None].expand_as(batch.x), rtol=1e-5)  # float32
    assert len(set(batch.x[:, 0, 0].tolist())) == 6  # no sequence as it was
    whole = task.batch("validation", 0, 6, seed=1)
    assert whole.target.tolist() == y.tolist()
    assert torch.isfinite(task.loss(torch.zeros(6, task.n_o), batch))


def test_the_loss_of_a_mixture_is_the_mixture_of_losses():
    x, y = Sequences(np.zeros((4, 2, 1), np.float32), None), np.array([0, 1, 1, 0])
    out = torch.tensor([[0.5, -1.0], [2.0, 0.1], [0.0, 0.3], [1.0, 1.5]])
    for weight in (None, np.array([1.0, 3.0])):
        task = Arrays(sequences={"train": x}, targets={"train": y}, classes=2, mixup=0.4, class_weight=weight)
        batch = task.batch("train", 0, 4, seed=0)
        each = -torch.log_softmax(out, 1) * (1.0 if weight is None else torch.tensor(weight / 2.0, dtype=torch.float32))
        assert float(task.loss(out, batch)) == pytest.approx(float((batch.target * each).sum(1).mean()), rel=1e-5)


def test_sequences_of_different_lengths_are_not_mixed():
    task = Arrays(
        sequences={"train": of_lengths(3, 1, 2)}, targets={"train": np.array([0, 1, 0])}, classes=2, mixup=1.0
    )
    assert sorted(task.batch("train", 0, 3, seed=0).x.amax((1, 2)).tolist()) == [1, 2, 3]


def test_half_of_the_training_sequences_are_copies_of_themselves():
    x = np.arange(40, dtype=np.float32)[:, None, None].repeat(3, 1)
    copies = Sequences(np.concatenate([x + 100, x + 200]), None)
    y = np.arange(40) % 2
    both = {"train": Sequences(x, None), "validation": Sequences(x, None)}
    task = Arrays(sequences=both, targets={"train": y, "validation": y}, classes=2, copies=copies)
    batch = task.batch("train", 0, 40, seed=1)
    assert torch.equal(batch.x, task.batch("train", 0, 40, seed=1).x)
    assert sorted((batch.x[:, 0, 0] % 100).tolist()) == list(range(40))
    assert torch.equal(batch.x[:, 0, 0].long() % 2, batch.target)  # every copy keeps its target
    kinds = [int((batch.x[:, 0, 0] // 100 == kind).sum()) for kind in range(3)]
    assert kinds[0] in range(10, 31)
    assert min(kinds) > 0
    assert task.batch("validation", 0, 40).x.max() < 100
    with pytest.raises(SettingsError, match="41 copies of 40 training sequences; copy all of them equally often"):
        Arrays(sequences=both, targets={"train": y, "validation": y}, copies=copies.rows(range(41)))


def test_copies_of_sequences_of_different_lengths_end_where_they_end():
    given = of_lengths(3, 1, 2)
    task = Arrays(
        sequences={"train": given},
        targets={"train": np.array([0, 1, 0])},
        classes=2,
        copies=Sequences(given.x + 10.0, given.lengths),
    )
    for index in range(5):
        batch = task.batch("train", index, 2, seed=0)
        for x, length in zip(batch.x, batch.lengths, strict=True):
            assert [3, 1, 2][int(x[0, 0] % 10) - 1] == length
            assert (x[:length] == x[0]).all()
