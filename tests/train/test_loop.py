import math
import os
import re
import signal

import pytest
import torch

import qornn
from qornn.errors import CheckpointError, DivergenceError, SettingsError
from qornn.maps import deviation
from qornn.model import OrthogonalRNN
from qornn.recipe import TrainSettings, resolve
from qornn.tasks import make_task
from qornn.tasks.copy import Copy
from qornn.train import Interrupted, Trainer, load, resume
from qornn.train import checkpoint as checkpoints
from qornn.train.log import read_metrics
from qornn.train.run import default_folder, dry_run, start


def small_task():
    return make_task("copy", T0=4, train_size=64, validation_size=16, test_size=16)


def small_model(**options):
    options = {"readout": "all", "activation": "modrelu", "generator": torch.Generator().manual_seed(0)} | options
    return OrthogonalRNN(10, 16, 9, **options)


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


def test_resume_takes_the_threads_of_the_checkpoint(tiny, tmp_path):
    start(resolve("copy", bits=4, settings=[*tiny, "train.steps=2"]), tmp_path, quiet=True)
    (tmp_path / "model.safetensors").unlink()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        resume(tmp_path, quiet=True)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(threads)


@pytest.mark.slow
def test_resume_refuses_another_optimizer(tiny, tmp_path):
    start(resolve("copy", bits=4, settings=[*tiny, "train.steps=2"]), tmp_path, quiet=True)
    (tmp_path / "model.safetensors").unlink()
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace('"adam"', '"rmsprop"'))
    with pytest.raises(CheckpointError, match="made with the optimizer adam, the recipe says rmsprop"):
        resume(tmp_path, quiet=True)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "split", "steps"), [(signal.SIGINT, "validation", 3), (signal.SIGTERM, "test", 6)])
def test_a_polite_kill_stops_an_evaluation_and_resuming_repeats_it(number, split, steps, tiny, tmp_path, monkeypatch):
    settings = [*tiny, "train.steps=6", "train.eval_every=3", "train.log_every=2"]
    settings += [f"task.{part}_size=160" for part in ("validation", "test")]
    recipe = resolve("copy", bits=4, settings=settings)
    whole = start(recipe, tmp_path / "whole", quiet=True)
    asked, original = [], Copy.batch

    def batch(self, part, index, size, **options):
        if part == split:
            asked.append(index)
            if len(asked) == 2:
                os.kill(os.getpid(), number)
        return original(self, part, index, size, **options)

    monkeypatch.setattr(Copy, "batch", batch)
    with pytest.raises(Interrupted, match=rf"interrupted at step {steps} of 6, saved; `qornn resume .*cut` continues"):
        start(recipe, tmp_path / "cut", quiet=True)
    assert len(asked) <= 3  # of 20
    assert not (tmp_path / "cut" / "model.safetensors").exists()
    monkeypatch.undo()
    again = resume(tmp_path / "cut", quiet=True)
    assert (again.folder / "model.safetensors").read_bytes() == (whole.folder / "model.safetensors").read_bytes()
    lines = [read_metrics(run.folder / "metrics.jsonl") for run in (whole, again)]
    for line in [*lines[0], *lines[1]]:
        line.pop("seconds", None)
    assert lines[0] == lines[1]  # the validation that was stopped is there, once


def cut_short(folder, tiny, *more):
    """A run killed before its end."""
    start(resolve("copy", bits=4, settings=[*tiny, "train.steps=2", *more]), folder, quiet=True)
    (folder / "model.safetensors").unlink()
    return checkpoints.files(folder / "checkpoint")[-1]


EDITS = [
    ("seed = 0", "seed = 1", "another training: it was made with the seed 0, the recipe says 1"),
    ("bits = 4", "bits = 8", "another model: it was made with the bits 4, the recipe says 8"),
    ("steps = 2", "steps = 9", "another training: it was made with the steps 2, the recipe says 9"),
    ("T0 = 5", "T0 = 6", "another task: it was made with the T0 5, the recipe says 6"),
    ("test_size = 16\n", "", "another task: it was made with the test_size 16, the recipe says None"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "message"), EDITS)
@pytest.mark.parametrize("finished", [False, True])
def test_a_run_whose_recipe_was_edited_is_refused(finished, before, after, message, tiny, tmp_path):
    if finished:
        start(resolve("copy", bits=4, settings=[*tiny, "train.steps=2"]), tmp_path, quiet=True)
    else:
        cut_short(tmp_path, tiny)
    recipe = tmp_path / "recipe.toml"
    assert recipe.read_text().count(f"\n{before}") == 1
    recipe.write_text(recipe.read_text().replace(f"\n{before}", f"\n{after}"))
    for function in (resume, load):
        with pytest.raises(CheckpointError, match=f"belongs to {message}; set .* back in recipe.toml") as caught:
            function(tmp_path)
        assert str(tmp_path) in str(caught.value)


@pytest.mark.slow
def test_what_changes_no_weight_may_be_edited(tiny, tmp_path):
    cut_short(tmp_path, tiny)
    recipe = tmp_path / "recipe.toml"
    for name in ("log_every", "eval_every", "checkpoint_every"):
        recipe.write_text(re.sub(rf"\n{name} = \d+", f"\n{name} = 3", recipe.read_text()))
    assert resume(tmp_path, quiet=True).finished


def test_a_checkpoint_of_before_recipes_were_kept_goes_on(tiny, tmp_path):
    path = cut_short(tmp_path, tiny)
    reseal(path, lambda tensors, facts: [facts["extra"].pop(key) for key in ("recipe", "unmoved")])
    assert resume(tmp_path, quiet=True).finished
    final = tmp_path / "model.safetensors"
    reseal(final, lambda tensors, facts: facts.pop("recipe"))
    assert load(tmp_path).finished


def reseal(path, change):
    """The file with other contents and the digest they ought to have."""
    tensors, facts = checkpoints.load_tensors(path)
    change(tensors, facts)
    checkpoints.save_tensors(path, tensors, facts)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
def test_missing_moments_are_refused(optimizer, tiny, tmp_path):
    path = cut_short(tmp_path, tiny, f'train.optimizer="{optimizer}"')
    whole = path.read_bytes()
    moments = [key for key in checkpoints.load_tensors(path)[0] if key.startswith("optimizer:")]
    assert len(moments) == (3 if optimizer == "adam" else 2) * 5  # W, U, b, V, b_o
    for lost in (moments, moments[:1], [key for key in moments if "recurrence.U_raw/" in key]):
        path.write_bytes(whole)
        reseal(path, lambda tensors, facts, lost=lost: [tensors.pop(key) for key in lost])
        with pytest.raises(CheckpointError, match=r"step-00000002.* does not contain the optimizer's .*; delete it"):
            resume(tmp_path, quiet=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fastrnn", "lstm"])  # of one there are parameters without dimensions
def test_a_baseline_resumes_with_all_its_moments(kind, tiny, tmp_path):
    start(resolve("copy", model=kind, settings=[*tiny, "train.steps=2"]), tmp_path, quiet=True)
    before = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").unlink()
    resume(tmp_path, quiet=True)
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_a_model_with_idle_parameters_resumes(tmp_path):
    def trainer():
        model = small_model()
        model.idle = torch.nn.Parameter(torch.ones(3))  # no gradient, so no moments
        return Trainer(model, small_task(), TrainSettings(steps=4, batch=8), out=tmp_path, quiet=True)

    trainer().run()
    again = trainer()
    again.restore(checkpoints.files(tmp_path / "checkpoint")[-1])
    assert again.step == 4


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


def test_a_checkpoint_of_another_recipe_is_refused(tiny, tmp_path):
    for name, n_h in (("a", 12), ("b", 13)):
        settings = [*tiny, "train.steps=2", f"model.n_h={n_h}"]
        start(resolve("copy", bits=4, settings=settings), tmp_path / name, quiet=True)
    (tmp_path / "a" / "model.safetensors").unlink()
    for folder in ("a", "b"):
        for old in checkpoints.files(tmp_path / folder / "checkpoint")[:-1]:
            old.unlink()
    theirs, ours = (checkpoints.files(tmp_path / f / "checkpoint")[-1] for f in ("b", "a"))
    ours.write_bytes(theirs.read_bytes())
    with pytest.raises(CheckpointError, match="belongs to another model"):
        resume(tmp_path / "a", quiet=True)


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
