"""Weights averaged over the last part of a training: which steps count, and that resuming repeats every bit."""

import pytest
import torch

from qornn.errors import CheckpointError, SettingsError
from qornn.maps import deviation
from qornn.model import OrthogonalRNN
from qornn.recipe import TrainSettings
from qornn.tasks import make_task
from qornn.train import Trainer
from qornn.train import checkpoint as checkpoints


def trainer(out=None, **settings):
    task = make_task("copy", T0=4, train_size=64, validation_size=16, test_size=16)
    options = {"readout": "all", "activation": "modrelu", "generator": torch.Generator().manual_seed(0)}
    model = OrthogonalRNN(10, 16, 9, map=settings.pop("map", "bjorck"), bits=4, **options)
    settings = {"steps": 10, "batch": 8, "lr": 1e-2, **settings}
    return Trainer(model, task, TrainSettings(**settings), out=out, quiet=True)


def weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def test_the_network_keeps_the_mean_of_the_last_steps(monkeypatch):
    seen = []
    made = trainer(average=0.3)
    add = made.average.add_
    monkeypatch.setattr(made.average, "add_", lambda model, step: (seen.append(weights(model)), add(model, step)))
    made.run()
    assert len(seen) == 10
    for name, parameter in made.model.named_parameters():
        wanted = torch.stack([w[name] for w in seen[-3:]]).mean(0)
        assert torch.allclose(parameter, wanted, rtol=0, atol=1e-6)  # a running mean rounds at every step
        assert not torch.equal(parameter, seen[-1][name])


def test_by_default_the_last_weights_are_kept():
    plain, none = trainer(), trainer(average=0.0)
    plain.run(), none.run()
    assert not plain.average.mean
    assert all(torch.equal(a, b) for a, b in zip(plain.model.parameters(), none.model.parameters(), strict=True))


def test_a_mean_of_orthogonal_matrices_is_made_orthogonal():
    made = trainer(average=0.5, map="projunn")
    made.run()
    assert deviation(made.model.recurrence.W_raw) < 1e-5


@pytest.mark.parametrize("step", [4, 8, 10])  # before the mean begins, in the middle, and when all is trained
def test_resuming_repeats_every_bit(step, tmp_path):
    settings = {"average": 0.5, "checkpoint_every": 1, "checkpoint_seconds": 1e9}
    whole, again = trainer(tmp_path, **settings), trainer(tmp_path / "again", **settings)
    kept = {}
    save = whole.save
    whole.save = lambda *a: (save(*a), kept.update({whole.step: _newest(tmp_path).read_bytes()}))
    whole.run()
    path = tmp_path / "copy.safetensors"
    path.write_bytes(kept[step])
    again.restore(path)
    again.run()
    assert all(torch.equal(a, b) for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True))


def test_a_checkpoint_that_lost_its_mean_is_refused(tmp_path):
    trainer(tmp_path).run()
    made = trainer(average=0.5)
    made.recipe = trainer(tmp_path / "x").recipe
    with pytest.raises(CheckpointError, match="does not hold the mean"):
        made.restore(_newest(tmp_path))


def test_a_share_is_at_most_all():
    with pytest.raises(SettingsError, match=r"train\.average must lie in \[0, 1\], got 1.5"):
        TrainSettings(average=1.5)


def _newest(folder):
    return checkpoints.files(folder / "checkpoint")[-1]
