"""Whole runs in processes of their own: killed, interrupted, resumed, spread over two processes."""

import json
import shutil
import signal
import time

import pytest
import torch

from forking import Forked
from qornn.errors import CheckpointError, ProgramError, SettingsError
from qornn.lowering.lower import lower
from qornn.recipe import resolve
from qornn.train import checkpoint as checkpoints
from qornn.train.log import read_metrics
from qornn.train.run import resume, start
from whole_runs import final_bytes, in_two_processes, kill_at, settings_words

STEPS = 16
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "-m", "qornn")


@pytest.fixture(scope="module", params=["bjorck", "projunn"])
def words(request, tiny):
    settings = [*tiny, "train.checkpoint_every=4"]
    return ["train", "copy", "--map", request.param, "--bits", "4", "--steps", STEPS, *settings_words(settings)]


@pytest.fixture(scope="module")
def whole(words, qornn_command, tmp_path_factory):
    """The run that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    qornn_command(*words, "--out", folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "stage"), [(0, "_one_step"), (6, "_one_step"), (8, "save"), (13, "_record"), (16, "_final")]
)
def test_resume_after_kill_9_gives_the_same_bits(words, whole, step, stage, qornn_command, tmp_path):
    killed = tmp_path / "killed"
    dead = qornn_command(*words, "--out", killed, before=lambda: kill_at(step, stage), check=False)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    assert not (killed / "model.safetensors").exists()
    qornn_command("resume", killed)
    assert final_bytes(killed) == final_bytes(whole)
    steps = [r["step"] for r in read_metrics(killed / "metrics.jsonl")]
    assert steps == [r["step"] for r in read_metrics(whole / "metrics.jsonl")]  # no line lost, none twice


def test_a_finished_run_is_left_unchanged(tiny, qornn_command, tmp_path):
    qornn_command("train", "copy", "--steps", 3, *settings_words(tiny), "--out", tmp_path / "run")
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in (tmp_path / "run").rglob("*") if p.is_file()}
    done = qornn_command("resume", tmp_path / "run", "--json")
    assert json.loads(done.stdout)["steps"] == 3
    assert before == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in (tmp_path / "run").rglob("*") if p.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_resume_gives_the_same_bits(number, tiny, qornn_command, tmp_path):
    settings = [*tiny, "task.T0=60", "train.eval_every=1000", "train.checkpoint_seconds=1000"]
    words = ["train", "copy", "--bits", "4", "--steps", 200, *settings_words(settings)]
    folder = tmp_path / "run"
    process = Forked(*words, "--out", folder)
    deadline = time.monotonic() + 60
    while len(read_metrics(folder / "metrics.jsonl")) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"qornn resume {folder}" in said
    saved = checkpoints.files(folder / "checkpoint")
    assert saved
    assert checkpoints.load(saved[-1]).step < 200
    qornn_command("resume", folder)
    qornn_command(*words, "--out", tmp_path / "whole")
    assert final_bytes(folder) == final_bytes(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("map_", ["bjorck", "projunn", "penalty"])
def test_two_processes_give_the_result_of_one(map_, tiny, qornn_command, tmp_path):
    """DDP (gloo) with the same global batch, to float tolerance."""
    words = ["train", "copy", "--map", map_, "--bits", "6", "--steps", 12, *settings_words([*tiny, "train.lr=1e-3"])]
    one = json.loads(qornn_command(*words, "--out", tmp_path / "one", "--json").stdout)
    (said, error, first), (nothing, _, second) = in_two_processes(*words, "--out", tmp_path / "two", "--json")
    assert (first, second) == (0, 0), error
    two = json.loads(said)  # one object, from the first process alone
    assert nothing == ""
    assert two["value"] == pytest.approx(one["value"], rel=1e-3)
    tensors = [checkpoints.load_tensors(tmp_path / n / "model.safetensors")[0] for n in ("one", "two")]
    for name, tensor in tensors[0].items():
        assert (tensor - tensors[1][name]).abs().max() < 1e-4  # float32 sums in another order, 12 steps


@pytest.mark.slow
def test_two_processes_weigh_sequences_of_unequal_length_alike(qornn_command, tmp_path):
    """PTB's loss is a mean over characters, of which the two processes have different numbers."""
    (tmp_path / "ptb").mkdir()
    for part in ("train", "valid", "test"):
        lines = [" ".join("abcdefg"[: 1 + (3 * i) % 7]) for i in range(40)]
        (tmp_path / "ptb" / f"ptb.{part}.txt").write_text("\n".join(lines) + "\n")
    settings = ["task.T=12", "task.verify=false", "model.n_h=8", "train.batch=8", "train.lr=1e-2"]
    settings += ["train.state_penalty=0.1"]
    words = ["train", "ptb", "--steps", 4, "--data-dir", tmp_path, *settings_words(settings)]
    qornn_command(*words, "--out", tmp_path / "one")
    assert [code for _, _, code in in_two_processes(*words, "--out", tmp_path / "two")] == [0, 0]
    one, two = (checkpoints.load_tensors(tmp_path / n / "model.safetensors")[0] for n in ("one", "two"))
    assert all((one[name] - two[name]).abs().max() < 1e-5 for name in one)  # float32 sums in another order, 4 steps


@pytest.mark.slow
def test_a_dry_run_on_two_processes_prints_one_object(tiny, qornn_command):
    done = qornn_command("train", "copy", "--dry-run", *settings_words(tiny), "--json", program=TORCHRUN)
    assert json.loads(done.stdout)["steps"] == 320


def test_a_batch_that_does_not_divide_is_refused(tiny, tmp_path):
    words = ["train", "copy", *settings_words([*tiny, "train.batch=7"]), "--out", tmp_path / "run"]
    for _, error, code in in_two_processes(*words):
        assert code != 0
        assert "a batch of 7 cannot be divided evenly among 2 processes" in error


@pytest.mark.slow
def test_the_run_folder_holds_what_it_should(tiny, tmp_path):
    run = start(resolve("copy", bits=4, settings=[*tiny, "train.steps=14"]), tmp_path / "run", quiet=True)
    names = {p.name for p in run.folder.iterdir()}
    assert {"recipe.toml", "metrics.jsonl", "curve.png", "checkpoint", "model.safetensors", "result.json"} <= names
    assert (run.folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    records = read_metrics(run.folder / "metrics.jsonl")
    beside_the_loss = {"orthogonality", "sigma_min", "sigma_max", "max_h", "saturation", "validation"}
    assert any(beside_the_loss <= r.keys() for r in records)
    assert {
        "task",
        "metric",
        "value",
        "baseline",
        "converged",
        "bits",
        "activation_bits",
        "paper",
        "seconds",
        "run",
    } <= (run.result.keys())


@pytest.mark.slow
def test_a_run_begins_with_the_weights_of_another(tiny, tmp_path):
    wide = start(resolve("copy", bits=8, settings=[*tiny, "train.steps=3"]), tmp_path / "wide", quiet=True)
    begun = [*tiny, "train.steps=1", "train.lr=1e-12", f"train.start={tmp_path / 'wide'}", "train.seed=5"]
    narrow = start(resolve("copy", bits=3, settings=begun), tmp_path / "narrow", quiet=True)
    assert narrow.model.recurrence.bits == 3
    there, here = wide.model.state_dict(), narrow.model.state_dict()
    assert all(torch.allclose(here[name], there[name], atol=1e-6) for name in there)
    program = lower(narrow, quiet=True)
    assert program.provenance["recipe"]["train"]["start"] == "wide"
    assert str(tmp_path) not in str(program.provenance)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["tensor", "row"])
def test_a_run_begins_with_the_weights_of_a_program(scale, tiny, tmp_path):
    relu = [*tiny, "model.activation=relu", f"model.scale={scale}"]
    wide = start(resolve("copy", bits=8, settings=[*relu, "train.steps=3"]), tmp_path / "wide", quiet=True)
    lower(wide, quiet=True).save(tmp_path / "wide.qornn")
    begun = [*relu, "train.steps=1", "train.lr=1e-12", f"train.start={tmp_path / 'wide.qornn'}", "train.seed=5"]
    again = start(resolve("copy", bits=8, settings=[*begun, "model.map=free"]), tmp_path / "again", quiet=True)
    there, here = wide.model, again.model  # a map that leaves W_raw as it is
    assert torch.allclose(here.recurrence.W_raw, there.recurrence.W_q(), atol=1e-6)  # float32 of float64
    assert torch.allclose(here.recurrence.U_raw, there.recurrence.U_q(), atol=1e-6)
    assert torch.allclose(here.V, there.V, atol=1e-6)
    assert torch.allclose(here.b_o, there.b_o, atol=1e-6)
    assert resolve("copy", settings=begun).portable_tables()["train"]["start"] == "wide.qornn"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["model.activation=modrelu"], "activation modrelu, whose bias"),
        (["model.map=hadamard", "model.n_h=8", "model.activation=identity"], "W is of kind"),
    ],
)
def test_a_start_at_a_program_that_does_not_tell_its_weights_is_refused(changed, said, tiny, tmp_path):
    settings = [*tiny, "train.steps=1", *changed]
    lower(start(resolve("copy", settings=settings), tmp_path / "run", quiet=True), quiet=True).save(
        tmp_path / "p.qornn"
    )
    with pytest.raises(ProgramError, match=f"{said}.*begin with its run folder"):
        start(resolve("copy", settings=[*settings, f"train.start={tmp_path / 'p.qornn'}"]), tmp_path / "b", quiet=True)


@pytest.mark.slow
def test_a_run_that_begins_with_another_goes_on_without_it(tiny, tmp_path):
    shared = [*tiny, "train.steps=6", f"train.start={tmp_path / 'wide'}", "train.checkpoint_every=2"]
    start(resolve("copy", bits=8, settings=[*tiny, "train.steps=2"]), tmp_path / "wide", quiet=True)
    whole = start(resolve("copy", bits=4, settings=shared), tmp_path / "whole", quiet=True)
    start(resolve("copy", bits=4, settings=shared), tmp_path / "cut", quiet=True)
    for file in ("model.safetensors", "result.json"):
        (tmp_path / "cut" / file).unlink()
    shutil.rmtree(tmp_path / "cut" / "checkpoint")
    (tmp_path / "cut" / "metrics.jsonl").unlink()
    again = resume(tmp_path / "cut", quiet=True)  # killed before its first checkpoint: from the other's weights again
    assert final_bytes(again.folder) == final_bytes(whole.folder)
    (tmp_path / "cut" / "model.safetensors").unlink()
    shutil.rmtree(tmp_path / "wide")
    assert final_bytes(resume(tmp_path / "cut", quiet=True).folder) == final_bytes(whole.folder)


@pytest.mark.parametrize("there", ["nothing", "unfinished"])
def test_a_start_that_is_no_finished_run_is_refused(there, tiny, tmp_path):
    if there == "unfinished":
        (tmp_path / there).mkdir()
    with pytest.raises(SettingsError, match=r"train.start must be a finished run or a program.*model.safetensors"):
        start(resolve("copy", settings=[*tiny, f"train.start={tmp_path / there}"]), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_start_of_another_shape_is_refused(tiny, tmp_path):
    start(resolve("copy", settings=[*tiny, "train.steps=1"]), tmp_path / "wide", quiet=True)
    settings = [*tiny, "model.n_h=5", f"train.start={tmp_path / 'wide'}"]
    with pytest.raises(CheckpointError, match="belongs to another model"):
        start(resolve("copy", settings=settings), tmp_path / "run", quiet=True)
