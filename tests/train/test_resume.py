"""Resuming: what a run that was stopped goes on from, and what it refuses."""

import os
import re
import signal

import pytest
import torch
from small_runs import small_model, small_task

from qornn.errors import CheckpointError
from qornn.recipe import TrainSettings, resolve
from qornn.tasks.copy import Copy
from qornn.train import Interrupted, Trainer, load, resume
from qornn.train import checkpoint as checkpoints
from qornn.train.log import read_metrics
from qornn.train.run import start


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
