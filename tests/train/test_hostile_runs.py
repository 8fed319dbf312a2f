"""Run folders that others made: one that loads, or an error of one line; never a traceback, an abort or a hang."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import torch

from qornn.errors import CheckpointError, QornnError, SettingsError
from qornn.recipe import resolve
from qornn.train import checkpoint as checkpoints
from qornn.train import load, resume
from qornn.train.run import start

sys.path.append(str(Path(__file__).parents[1] / "attacks"))
from attack_runs import DEEP, _seal


@pytest.fixture(scope="module")
def cut(tiny, tmp_path_factory):
    """A run killed before its end."""
    folder = tmp_path_factory.mktemp("hostile") / "run"
    start(resolve("copy", map="projunn", bits=4, settings=[*tiny, "train.steps=2"]), folder, quiet=True)
    (folder / "model.safetensors").unlink()
    return folder


@pytest.fixture
def run(cut, tmp_path):
    """A copy of it to damage."""
    return shutil.copytree(cut, tmp_path / "run")


def newest(run):
    return checkpoints.files(run / "checkpoint")[-1]


def rewrite(path, change, text=None):
    """The checkpoint with other contents; `text` stands where they hold "@"."""
    tensors, facts = checkpoints.load_tensors(path)
    change(tensors, facts)
    written = json.dumps(facts, sort_keys=True)
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    _seal(path, arrays, written if text is None else written.replace('"@"', text))


def refused(run, functions=(load, resume), kind=CheckpointError):
    """What every function says, in one line."""
    said = set()
    for function in functions:
        with pytest.raises(kind) as caught:
            function(run)
        said.add(str(caught.value))
    assert all("\n" not in text and len(text) < 1000 for text in said)
    return " ".join(said)


EXTRA = [("threads", value) for value in ("1000000000", "0", "-1", "1.5", '"2"', "true", "null", "9" * 400)]
EXTRA += [("seconds", '"1"'), ("seconds", "NaN"), ("seconds", "-1"), ("best", "NaN"), ("best", "[]")]
EXTRA += [("log_length", "-5"), ("log_length", "0.5"), ("device", "3"), ("unmoved", "5"), ("unseen", "{}")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), EXTRA)
def test_facts_that_cannot_be_are_refused(name, text, run):
    rewrite(newest(run), lambda tensors, facts: facts["extra"].update({name: "@"}), text)
    assert f"says that its {name} is" in refused(run)


@pytest.mark.parametrize("name", ["best", "seconds", "log_length", "optimizer"])
def test_facts_that_are_missing_are_refused(name, run):
    rewrite(newest(run), lambda tensors, facts: facts["extra"].pop(name))
    assert f"does not say its {name}" in refused(run, [resume])


@pytest.mark.parametrize("text", [DEEP, "9" * 5000, '{"a": ' * 300 + "1" + "}" * 300])
def test_a_checkpoint_that_cannot_be_parsed_is_damaged(text, run):
    rewrite(newest(run), lambda tensors, facts: facts["extra"].update(seconds="@"), text)
    assert "is damaged or truncated" in refused(run)


@pytest.mark.parametrize("state", [None, torch.zeros(5056, dtype=torch.uint8), torch.zeros(7, dtype=torch.uint8)])
def test_a_generator_s_state_that_is_none_is_refused(state, run):
    def change(tensors, facts):
        del tensors["rng:retraction"]
        if state is not None:
            tensors["rng:retraction"] = state

    rewrite(newest(run), change)
    assert "does not hold the state of its random numbers" in refused(run, [resume])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model:V", float("nan"), "holds NaN or infinity in V"),
        ("model:V", torch.zeros(9, 12, dtype=torch.float64), "'V' is .* torch.float64 there"),
        ("optimizer:V/square_avg", torch.zeros(3), "optimizer's V/square_avg in the shape"),
    ],
)
def test_tensors_of_another_kind_are_refused(name, value, message, run):
    def change(tensors, facts):
        tensors[name] = value if isinstance(value, torch.Tensor) else torch.full_like(tensors[name], value)

    rewrite(newest(run), change)
    with pytest.raises(CheckpointError, match=message):
        resume(run, quiet=True)


RECIPES = [("n_h = 12", "n_h = 1000000", "belongs to another model"), ("n_h = 12", f"n_h = {'9' * 5000}", "valid TOML")]
RECIPES += [("T0 = 5", f"T0 = {DEEP}", "not valid TOML"), ("T0 = 5", f"T0 = 0x{'f' * 5000}", "not valid TOML")]
RECIPES += [
    ("T0 = 5", f'T0 = "{"x" * 9999}"', "T0 must be int"),
    ("T0 = 5", f"T0 = {10**30}", "T0 must lie within 64 bits"),
]
RECIPES += [("[task]", "[[task]]", "must be a table"), ("bits = 4", "bits = [4]", "bits must be in 2..8")]


@pytest.mark.parametrize(("before", "after", "message"), RECIPES)
@pytest.mark.parametrize("old", [False, True])
def test_recipes_that_cannot_be_are_refused(old, before, after, message, run):
    path = run / "recipe.toml"
    path.write_text(path.read_text().replace(before, after))
    if old:  # it does not say its recipe
        rewrite(newest(run), lambda tensors, facts: facts["extra"].pop("recipe"))
    assert message in refused(run, kind=QornnError)


def test_a_matrix_that_no_machine_holds_is_refused_before_it_is_made(tiny, tmp_path):
    settings = [*tiny, "model.n_h=1000000"]
    with pytest.raises(SettingsError, match=r"n_h=1000000 needs 8000 GB .* this machine has .*; use fewer units"):
        start(resolve("copy", settings=settings), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


LINES = [
    "[]",
    '{"step": "x"}',
    '{"loss": 1}',
    DEEP,
    "9" * 5000,
    '{"step": 1, "loss": {}}',
    '{"step": 1, "loss": Infinity}',
]


@pytest.mark.parametrize("line", [*LINES, "\udcff"])
def test_metrics_that_cannot_be_are_refused(line, run):
    path = run / "metrics.jsonl"
    path.write_bytes(f"{line}\n".encode(errors="surrogateescape") + path.read_bytes())
    assert "cannot read" in refused(run, [resume])


@pytest.mark.parametrize("text", ["[1]", "3", DEEP, "9" * 5000, '{"steps": "many"}', '{"value": []}'])
def test_results_that_cannot_be_are_refused(text, cut, tmp_path):
    run = shutil.copytree(cut, tmp_path / "run")
    resume(run, quiet=True)
    (run / "result.json").write_text(text)
    assert "result.json" in refused(run)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
@pytest.mark.parametrize("name", ["recipe.toml", "metrics.jsonl", "newest"])
def test_a_pipe_in_place_of_a_file_is_refused(name, run):
    path = newest(run) if name == "newest" else run / name
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in refused(run, [resume])
