"""`--model stack` from the recipe to the finished run: every task, bit-identical resumes, two processes."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import qornn
from forking import Forked
from qornn.errors import CheckpointError
from qornn.estimators.early_stopping import EarlyStopping
from qornn.recipe import TrainSettings, resolve
from qornn.tasks import TASKS
from qornn.tasks.arrays import Arrays, Sequences
from qornn.train import Trainer, load
from qornn.train import checkpoint as checkpoints
from qornn.train.log import read_metrics
from qornn.train.loop import FREEZE
from qornn.train.run import resume, start
from whole_runs import final_bytes, in_two_processes, kill_at, settings_words

STEPS = 20  # frozen from step 16 on
SMALL = {
    "copy": ["task.T0=5", "task.train_size=256", "task.validation_size=16", "task.test_size=16"],
    "adding": ["task.T=12", "task.train_size=256", "task.validation_size=16", "task.test_size=16"],
    "smnist": ["task.validation=8"],
    "pmnist": ["task.validation=8"],
    "ptb": ["task.T=20", "task.verify=false"],
    "digits": ["task.limit=64"],
}
TINY = ["model.width=6", "model.pairs=4", "train.batch=8", "train.log_every=1", "train.eval_every=7"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with a small MNIST and a small PTB."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    (root / "mnist").mkdir()
    for part, count in (("train", 32), ("t10k", 16)):
        for name, array in (("images-idx3", rng.integers(0, 256, (count, 28, 28))), ("labels-idx1", np.arange(count))):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (root / f"mnist/{part}-{name}-ubyte").write_bytes(
                header + (array % 10 if array.ndim == 1 else array).astype(np.uint8).tobytes()
            )
    (root / "ptb").mkdir()
    for part in ("train", "valid", "test"):
        lines = [" ".join("abcdefg"[: 1 + (3 * i) % 7]) for i in range(40)]
        (root / f"ptb/ptb.{part}.txt").write_text("\n".join(lines) + "\n")
    return root


def settings_of(task, data, *more):
    where = [f"task.data_dir={data}"] if task in ("smnist", "pmnist", "ptb") else []
    return [*SMALL[task], *where, *TINY, *more]


def waves(n=96, T=20, channels=3):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, T, channels)).astype(np.float32)
    y = (x[:, :, 0].sum(1) > 0).astype(np.int64)
    parts = {"train": slice(0, 64), "validation": slice(64, 80), "test": slice(80, 96)}
    sequences = {split: Sequences(x[rows], None) for split, rows in parts.items()}
    return Arrays(sequences=sequences, targets={split: y[rows] for split, rows in parts.items()}, classes=2)


def stack(seed=0, **options):
    options = {"width": 6, "pairs": 4, "dropout": 0.1, "noise": 0.1, "skip": True} | options
    return qornn.Stack.rotations(3, 2, generator=torch.Generator().manual_seed(seed), **options)


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(TASKS))
def test_every_task_trains(task, data, tmp_path):
    recipe = resolve(task, model="stack", settings=settings_of(task, data, "train.steps=30"))
    run = start(recipe, tmp_path / "run", quiet=True)
    assert np.isfinite(run.result["value"])
    assert run.result["bits"] == 4
    assert run.result["activation_bits"] == recipe.model.activation_bits >= 8
    assert 0 < run.result["lambda_max"] <= 1
    assert 0 <= run.result["saturated_states"] < 1
    assert "sigma_max" not in run.result
    assert run.model.readout == ("all" if TASKS[task].readout == "all" else "mean")
    again = load(tmp_path / "run")
    assert all(torch.equal(v, again.model.state_dict()[k]) for k, v in run.model.state_dict().items())


def words_of(*more):
    settings = [*SMALL["copy"], *TINY, "train.checkpoint_every=4", "model.skip=true", "model.dropout=0.1"]
    settings += ["model.noise=0.1", "train.lr=0.05", "model.activation_bits=6"]
    return ["train", "copy", "--model", "stack", "--steps", STEPS, *settings_words([*settings, *more])]


@pytest.fixture(scope="module")
def whole(qornn_command, tmp_path_factory):
    """The run that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    qornn_command(*words_of(), "--out", folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "stage"), [(0, "_one_step"), (6, "_one_step"), (8, "save"), (17, "_record"), (STEPS, "_final")]
)
def test_resume_after_kill_9_gives_the_same_bits(whole, step, stage, qornn_command, tmp_path):
    killed = tmp_path / "killed"
    dead = qornn_command(*words_of(), "--out", killed, before=lambda: kill_at(step, stage), check=False)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    qornn_command("resume", killed)
    assert final_bytes(killed) == final_bytes(whole)
    steps = [r["step"] for r in read_metrics(killed / "metrics.jsonl")]
    assert steps == [r["step"] for r in read_metrics(whole / "metrics.jsonl")]


@pytest.mark.slow
def test_steps_move_until_the_last_fifth(tmp_path):
    seen = {}

    class Watched(Trainer):
        def _one_step(self, *rest):
            found = super()._one_step(*rest)
            layers = [layer for layer in self.model.layers if layer.steps is not None]
            seen[self.step] = torch.cat([layer.steps.step.flatten() for layer in layers])
            assert all(layer.steps.frozen == (self.step >= FREEZE * self.total) for layer in layers)
            return found

    settings = TrainSettings(optimizer="adamw", lr=0.1, batch=8, steps=50)
    Watched(stack(state_bits=5), waves(), settings, quiet=True).run()
    moved = [step for step in range(1, 50) if not torch.equal(seen[step], seen[step - 1])]
    assert moved
    assert max(moved) < 40
    assert all(bool((torch.frexp(steps)[0] == 0.5).all()) for steps in seen.values())


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 7, 17])
def test_a_stack_of_one_s_own_resumes_with_the_same_bits(step, tmp_path):
    """Its inputs are set by the first batch; dropout and noise are drawn anew."""

    def trainer(folder):
        settings = TrainSettings(
            optimizer="adamw", decay=0.01, schedule="one-cycle", lr=0.05, batch=16, steps=STEPS, checkpoint_every=1
        )
        return Trainer(stack(), waves(), settings, out=folder, quiet=True)

    straight, saved = trainer(tmp_path / "straight"), {}
    save = straight.save
    straight.save = lambda length=0: (save(length), saved.update({straight.step: _kept(tmp_path, straight.step)}))
    straight.run()
    resumed = trainer(tmp_path / "resumed")
    resumed.restore(saved[step])
    assert resumed.model.entry.started
    assert resumed.model.layers[0].steps.started
    resumed.run()
    for name, tensor in straight.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name]), name


def _kept(folder, step):
    """A copy of the checkpoint, since all but the newest are dropped."""
    file = folder / f"kept-{step}.safetensors"
    file.write_bytes((folder / f"straight/checkpoint/step-{step:08d}.safetensors").read_bytes())
    return file


@pytest.mark.slow
def test_ctrl_c_saves_and_resume_gives_the_same_bits(whole, qornn_command, tmp_path):
    def interrupt():
        from qornn.train import loop

        original = loop.Trainer._one_step

        def asked(self, *rest):
            if self.step == 5:
                os.kill(os.getpid(), signal.SIGINT)
            return original(self, *rest)

        loop.Trainer._one_step = asked

    process = Forked(*words_of("train.checkpoint_every=4"), "--out", tmp_path / "run", before=interrupt)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert checkpoints.load(checkpoints.files(tmp_path / "run" / "checkpoint")[-1]).step < STEPS
    qornn_command("resume", tmp_path / "run")
    assert final_bytes(tmp_path / "run") == final_bytes(whole)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "adding", "ptb"])
def test_two_processes_give_the_result_of_one(task, data, qornn_command, tmp_path):
    """DDP (gloo) with the same global batch; steps are those of both, and equal."""
    settings = settings_of(task, data, "train.lr=1e-3", "model.activation_bits=12", "model.skip=true")
    words = ["train", task, "--model", "stack", "--bits", "6", "--steps", 12, *settings_words(settings)]
    one = json.loads(qornn_command(*words, "--out", tmp_path / "one", "--json").stdout)
    (said, error, first), (_, _, second) = in_two_processes(*words, "--out", tmp_path / "two", "--json")
    assert (first, second) == (0, 0), error
    assert json.loads(said)["value"] == pytest.approx(one["value"], rel=1e-2)
    tensors = [checkpoints.load_tensors(tmp_path / n / "model.safetensors")[0] for n in ("one", "two")]
    for name, tensor in tensors[0].items():
        if name.endswith(("steps.step", "extra_state", "entry.step", "source_step")):
            assert torch.equal(tensor, tensors[1][name]), name
        else:  # float32 sums in another order may round a state the other way
            assert (tensor - tensors[1][name]).abs().max() < 2e-3, name


TWO = """
import os, sys, torch, torch.distributed as dist
from qornn.model.entry import best_step
from qornn.model import alone
from qornn.model.steps import Steps
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=2)
x = torch.randn(64, 9, generator=torch.Generator().manual_seed(0)) * torch.linspace(0.1, 9, 64)[:, None]
half = x[:32] if sys.argv[2] == "0" else x[32:]
both = best_step(half, 6)
steps = Steps(127)
steps.see(half.abs().max())
with alone():
    assert both == best_step(x, 6), (both, best_step(x, 6))
    assert steps.peak == x.abs().max()
    own = best_step(half, 6)
dist.barrier()
dist.destroy_process_group()
print(both, own)
"""


@pytest.mark.slow
def test_the_first_batch_of_all_processes_sets_the_steps(tmp_path):
    words = [sys.executable, "-c", TWO, str(tmp_path / "meet")]
    started = [
        subprocess.Popen([*words, rank], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in "01"
    ]
    said = [(*process.communicate(timeout=120), process.returncode) for process in started]
    assert [code for *_, code in said] == [0, 0], said
    (both, own), (again, _) = (out.split() for out, *_ in said)
    assert both == again != own


@pytest.mark.slow
def test_a_run_begins_with_another_of_other_bits(tmp_path):
    """State bits, weight bits and input bits may be others; the steps reach as far, and move again."""
    task = [*SMALL["digits"], *TINY]
    wide = start(
        resolve("digits", model="stack", bits=8, activation_bits=12, settings=[*task, "train.steps=20"]),
        tmp_path / "wide",
        quiet=True,
    )
    assert all(layer.steps.frozen for layer in wide.model.layers)
    settings = [*task, "train.steps=1", "train.lr=1e-9", f"train.start={tmp_path / 'wide'}"]
    narrow = start(
        resolve("digits", model="stack", bits=8, activation_bits=8, settings=settings), tmp_path / "narrow", quiet=True
    )
    for before, after in zip(wide.model.layers, narrow.model.layers, strict=True):
        reach = [(layer.steps.top + 1) * layer.steps.step for layer in (before, after)]
        assert torch.equal(*reach)
        assert not after.steps.frozen  # a training of one step has no last fifth
    assert narrow.result["value"] == pytest.approx(wide.result["value"], abs=10)
    coarse = resolve("digits", model="stack", bits=8, activation_bits=12, settings=[*settings, "task.input_bits=4"])
    entry = start(coarse, tmp_path / "coarse", quiet=True).model.entry
    assert (entry.bits, int(entry.drop), float(entry.step)) == (4, 2, 2.0**-3)


def test_early_stopping_keeps_steps_with_the_weights_they_belong_to():
    trainer = EarlyStopping(stack(), waves(), TrainSettings(optimizer="adamw", lr=0.05, batch=8, steps=24), quiet=True)
    trainer.fit(patience=3)
    for name, tensor in trainer.kept.items():
        assert torch.equal(tensor, trainer.model.state_dict()[name]), name
    assert any(name.endswith("_extra_state") for name in trainer.kept)


def test_weights_of_another_shape_are_refused_before_a_network_of_that_shape_is_made(tmp_path):
    recipe = resolve("digits", model="stack", settings=[*SMALL["digits"], *TINY, "train.steps=2"])
    start(recipe, tmp_path / "run", quiet=True)
    file, weights = tmp_path / "run" / "recipe.toml", tmp_path / "run" / "model.safetensors"
    text, (tensors, _) = file.read_text(), checkpoints.load_tensors(weights)
    checkpoints.save_tensors(weights, tensors, {})  # a file that does not say its recipe
    for key, other, tensor in (
        ("width", 7, "V"),
        ("layers", 10**8, r"layers\.200000000\.C_raw is absent"),
        ("pairs", 10**8, r"layers\.4\.C_raw"),
    ):
        lines = [f"{key} = {other}" if line.startswith(f"{key} =") else line for line in text.splitlines()]
        file.write_text("\n".join(lines))
        with pytest.raises(CheckpointError, match=f"belongs to another model: {tensor}"):
            load(tmp_path / "run")
    file.write_text(text)
    assert resume(tmp_path / "run").finished
