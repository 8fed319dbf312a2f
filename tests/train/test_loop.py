import math

import pytest
import torch
from small_runs import small_model, small_task

import qornn
from qornn.errors import CheckpointError, DivergenceError, SettingsError
from qornn.maps import deviation
from qornn.model import OrthogonalRNN
from qornn.recipe import TrainSettings, resolve
from qornn.tasks import make_task
from qornn.train import Trainer, load, resume
from qornn.train import checkpoint as checkpoints
from qornn.train.run import default_folder, dry_run, start


@pytest.mark.slow
def test_it_learns():
    """A short copy task falls well below its naive baseline."""
    task = make_task("copy", T0=3, train_size=6400, validation_size=64, test_size=64)
    model = OrthogonalRNN(
        10, 64, 9, readout="all", activation="modrelu", bits=8, generator=torch.Generator().manual_seed(0)
    )
    result = Trainer(model, task, TrainSettings(lr=3e-3, steps=400, batch=64), quiet=True).run()
    assert result["converged"]
    assert result["value"] < 0.5 * task.naive_baseline


def test_a_model_of_one_s_own_trains():
    class Stacked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = qornn.OrthogonalRecurrence(10, 8, bits=4)
            self.second = qornn.OrthogonalRecurrence(8, 8, map="projunn")
            self.out = torch.nn.Linear(8, 9)

        def forward(self, x, lengths=None):
            states, last = self.second(self.first(x, lengths=lengths)[0], lengths=lengths)
            return self.out(states), last

    model = Stacked()
    result = Trainer(model, small_task(), TrainSettings(steps=5, batch=8), quiet=True).run()
    assert math.isfinite(result["value"])
    assert deviation(model.second.W_raw) < 1e-5


def test_training_is_a_function_of_the_seed():
    weights = []
    for seed in (0, 0, 1):
        model = small_model(map="projunn")
        Trainer(model, small_task(), TrainSettings(steps=4, batch=8, seed=seed), quiet=True).run()
        weights.append(model.recurrence.W_raw.detach())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_evaluation_consumes_no_training_randomness(tmp_path):
    weights = []
    for every in (1, 100):
        model = small_model(map="projunn")
        Trainer(model, small_task(), TrainSettings(steps=6, batch=8, eval_every=every), quiet=True).run()
        weights.append(model.recurrence.W_raw.detach())
    assert torch.equal(*weights)


def test_the_library_touches_no_global_randomness():
    before = torch.random.get_rng_state()
    Trainer(small_model(map="projunn"), small_task(), TrainSettings(steps=3, batch=8), quiet=True).run()
    assert torch.equal(before, torch.random.get_rng_state())


def test_projunn_is_projected_when_training_starts():
    model = small_model(map="projunn")
    model.recurrence.W_raw.data += 0.1
    Trainer(model, small_task(), TrainSettings(steps=1, batch=8), quiet=True)
    assert deviation(model.recurrence.W_raw) < 1e-5


def test_nan_stops_with_step_cause_and_last_good_checkpoint(tmp_path):
    model = small_model()
    settings = TrainSettings(steps=20, batch=8, checkpoint_every=2)
    trainer = Trainer(model, small_task(), settings, out=tmp_path, quiet=True)
    inner, seen = model.forward, []

    def poisoned(x, **options):
        seen.append(1)
        y, h = inner(x, **options)
        return (y * math.nan if len(seen) == 6 else y), h

    model.forward = poisoned
    with pytest.raises(DivergenceError, match=r"step 5: the loss is nan.*smaller train\.lr.*step-00000004"):
        trainer.run()
    assert checkpoints.load(checkpoints.files(tmp_path / "checkpoint")[-1]).step == 4
    assert all(p.isfinite().all() for p in model.parameters())  # stopped before it reached the weights


def test_exploding_states_stop_the_run():
    model = small_model(map="free", activation="identity")
    model.recurrence.W_raw.data *= 1e9
    with pytest.raises(DivergenceError, match="diverged at step 0"):
        Trainer(model, small_task(), TrainSettings(steps=3, batch=8), quiet=True).run()


def test_gradient_clipping_bounds_the_step():
    moved = []
    for clip in (0.0, 1e-3):
        model = small_model(map="free")
        before = model.V.detach().clone()
        settings = TrainSettings(steps=1, batch=8, clip=clip, optimizer="rmsprop")
        trainer = Trainer(model, small_task(), settings, quiet=True)
        trainer.optimizer = torch.optim.SGD([{"params": list(model.parameters()), "divider": 1.0}], lr=1.0)
        trainer.settings = settings
        trainer.run()
        moved.append((model.V - before).norm().item())
    assert moved[1] <= 1e-3 * settings.lr * 1.001 < moved[0]


def test_penalty_enters_the_gradient_but_not_the_reported_loss():
    moved = {}
    for strength in (0.0, 10.0):
        model = OrthogonalRNN(
            10, 8, 9, readout="all", map="penalty", strength=strength, generator=torch.Generator().manual_seed(0)
        )
        model.recurrence.W_raw.data *= 1.5
        trainer = Trainer(model, small_task(), TrainSettings(steps=1, batch=8), quiet=True)
        batch = next(small_task().batches("train", 8))
        loss, norm, _ = trainer._one_step(model, batch, False)
        moved[strength] = (loss, norm)
    assert moved[0.0][0] == moved[10.0][0]
    assert moved[10.0][1] > 2 * moved[0.0][1]


@pytest.mark.parametrize("readout", ["last", "all"])
def test_the_state_penalty_pulls_on_the_last_state_and_is_no_part_of_the_loss(readout):
    task = small_task() if readout == "all" else make_task("digits")
    n_i, batch = task.n_i, next(task.batches("train", 8))
    losses, gradients = [], []
    for strength in (0.0, 0.5):
        generator = torch.Generator().manual_seed(0)
        model = OrthogonalRNN(n_i, 8, task.n_o, readout=readout, map="free", generator=generator)
        trainer = Trainer(model, task, TrainSettings(steps=1, batch=8, state_penalty=strength), quiet=True)
        losses.append(trainer._one_step(model, batch, False)[0])
        gradients.append(model.recurrence.W_raw.grad.clone())
    other = OrthogonalRNN(n_i, 8, task.n_o, readout=readout, map="free", generator=generator.manual_seed(0))
    y, h = other(batch.x)
    (task.loss(y, batch) + 0.5 * h.square().mean()).backward()
    torch.testing.assert_close(gradients[1], other.recurrence.W_raw.grad)
    assert losses[0] == losses[1]
    assert not torch.allclose(gradients[0], gradients[1])


def test_a_run_already_there_is_not_overwritten(tiny, tmp_path):
    recipe = resolve("copy", bits=4, settings=[*tiny, "train.steps=1"])
    start(recipe, tmp_path, quiet=True)
    before = (tmp_path / "model.safetensors").read_bytes()
    with pytest.raises(SettingsError, match="already holds a run; continue it with `qornn resume"):
        start(recipe, tmp_path, quiet=True)
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_a_trainer_makes_its_folder_and_refuses_a_used_one(tmp_path):
    folder, settings = tmp_path / "new" / "run", TrainSettings(steps=2, batch=8)
    Trainer(small_model(), small_task(), settings, out=folder, quiet=True).run()
    before = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(SettingsError, match="already holds a run"):
        Trainer(small_model(), small_task(), settings, out=folder, quiet=True).run()
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_weights_that_no_map_accepts_stop_the_run_as_divergence(tmp_path):
    settings = TrainSettings(steps=9, batch=8, lr=1e30, checkpoint_every=1)
    with pytest.raises(DivergenceError, match=r"diverged at step \d+: .*Last good checkpoint: .*step-0000000\d"):
        Trainer(small_model(), small_task(), settings, out=tmp_path, quiet=True).run()


def test_denormals_are_flushed_only_while_training():
    def small():
        return bool(torch.tensor(1e-38) / 100 > 0)

    assert small()
    Trainer(small_model(), small_task(), TrainSettings(steps=1, batch=8), quiet=True).run()
    assert small()


def test_load_gives_the_trained_network(tiny, tmp_path):
    run = start(resolve("copy", bits=4, settings=[*tiny, "train.steps=2"]), tmp_path, quiet=True)
    again = qornn.load(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), again.model.parameters(), strict=True))
    assert again.recipe == run.recipe
    assert again.task().T0 == 5


def test_folders_that_are_no_runs_are_refused(tmp_path):
    for function in (load, resume):
        with pytest.raises(CheckpointError, match="is not a run folder"):
            function(tmp_path)
    (tmp_path / "recipe.toml").write_text(resolve("copy").to_toml())
    with pytest.raises(CheckpointError, match="holds no trained weights yet"):
        load(tmp_path)


def test_dry_run_estimates_and_writes_nothing(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    figures = dry_run(resolve("copy", bits=4, settings=[*tiny, "train.steps=1000"]))
    assert figures["steps"] == 1000
    assert figures["estimated_seconds"] == pytest.approx(1000 * figures["seconds_per_step"])
    assert figures["peak_memory_bytes"] > 50e6
    assert not list(tmp_path.iterdir())


def test_default_folders_do_not_collide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = resolve("copy", bits=4)
    first = default_folder(recipe)
    assert str(first) == "runs/copy-bjorck-k4-s0"
    first.mkdir(parents=True)
    (first / "recipe.toml").touch()
    assert str(default_folder(recipe)) == "runs/copy-bjorck-k4-s0-2"


@pytest.mark.parametrize("device", ["gpu", "cuda:zz"])
def test_unknown_device(device):
    with pytest.raises(SettingsError, match=f"unknown device '{device}'"):
        Trainer(small_model(), small_task(), device=device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_device_that_is_not_there():
    with pytest.raises(SettingsError, match="device 'cuda' is not available here; choose cpu"):
        Trainer(small_model(), small_task(), device="cuda")
