"""A run's folder is new or empty when it begins, then its own, and one process's at a time."""

import time

import pytest

from forking import Forked
from qornn._io.folders import LOCK, alone
from qornn.errors import SettingsError
from qornn.model import OrthogonalRNN
from qornn.recipe import TrainSettings, resolve
from qornn.tasks import make_task
from qornn.train.loop import Trainer
from qornn.train.run import default_folder, resume, start

LEFT = ".qornn-12-0123abcd-0.part"
FOREIGN = {
    "model.safetensors": "weights of another tool",
    "result.json": "{}",
    "curve.png": "a picture",
    "metrics.jsonl": "not a record\n",
    "recipe.toml": "flour = 500",
    "notes.txt": "years of work",
    ".foo.part": "half an idea",
    "checkpoint/mine": "mine",
}


def contents(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def recipe(tiny):
    return resolve("copy", bits=4, settings=[*tiny, "train.steps=2", "train.checkpoint_every=1"])


@pytest.fixture
def trainer():
    def make(folder):
        task = make_task("copy", T0=5, train_size=256, validation_size=16, test_size=16)
        return Trainer(OrthogonalRNN(10, 12, 9, readout="all"), task, TrainSettings(steps=2, batch=8), out=folder)

    return make


@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_of_somebody_else_is_refused_and_unchanged(name, recipe, trainer, tmp_path):
    path = tmp_path / "mine" / name
    path.parent.mkdir(parents=True)
    path.write_text(FOREIGN[name])
    for begin in (lambda: start(recipe, tmp_path / "mine", quiet=True), trainer(tmp_path / "mine").run):
        with pytest.raises(SettingsError, match=r"does not hold a run.*choose another --out, or empty it"):
            begin()
        assert contents(tmp_path / "mine") == {name: FOREIGN[name]}


@pytest.mark.slow
def test_what_a_process_killed_at_its_first_write_left_is_as_good_as_empty(recipe, trainer, tmp_path):
    for name, begin in (("a", lambda: start(recipe, tmp_path / "a", quiet=True)), ("b", trainer(tmp_path / "b").run)):
        (tmp_path / name).mkdir()
        (tmp_path / name / LEFT).write_text("half")
        (tmp_path / name / LOCK).write_text("12 train\n")
        begin()
        assert not {LEFT, LOCK} & {path.name for path in (tmp_path / name).iterdir()}


def test_a_folder_of_its_own_that_was_not_named_is_one_that_is_free(recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taken = default_folder(recipe)
    taken.mkdir(parents=True)
    assert default_folder(recipe) == taken
    (taken / "mine").touch()
    assert default_folder(recipe).name == f"{taken.name}-2"


def test_resume_removes_its_own_leftovers_and_nothing_else(recipe, tmp_path):
    folder = start(recipe, tmp_path / "run", quiet=True).folder
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    mine = [folder / ".foo.part", folder / "checkpoint" / ".step.123.part", folder / "notes" / LEFT]
    ours = [folder / LEFT, folder / "checkpoint" / LEFT]
    (folder / "notes").mkdir()
    (folder / ".dir.part").mkdir()
    (folder / LEFT.replace("12", "13")).mkdir()
    for path in [*mine, *ours]:
        path.write_text("half")
    resume(folder, quiet=True)
    assert (folder / "model.safetensors").read_bytes() == whole
    assert [path.read_text() for path in mine] == ["half"] * 3
    assert (folder / ".dir.part").is_dir()
    assert (folder / LEFT.replace("12", "13")).is_dir()
    assert not any(path.exists() for path in [*ours, folder / LOCK])


def test_resume_drops_the_checkpoint_that_a_killed_process_had_replaced(recipe, tmp_path):
    folder = start(recipe, tmp_path / "run", quiet=True).folder
    newest = max(folder.glob("checkpoint/step-*"))
    kept = {path.name for path in newest.parent.iterdir()}
    (newest.parent / "step-00000000.safetensors").write_bytes(newest.read_bytes())
    (folder / "model.safetensors").unlink()
    resume(folder, quiet=True)
    assert {path.name for path in newest.parent.iterdir()} == kept


def test_a_run_that_a_process_trains_is_nobody_else_s(recipe, tiny, tmp_path):
    folder = tmp_path / "run"
    settings = [word for setting in [*tiny, "train.checkpoint_every=1"] for word in ("--set", setting)]
    process = Forked("train", "copy", "--steps", "100000", *settings, "--out", folder)
    try:
        deadline = time.monotonic() + 60
        while not list(folder.glob("checkpoint/step-*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        for _ in range(20):  # a resume that removed its files would stop it
            with pytest.raises(SettingsError, match=rf"another process \({process.pid}\); wait for it, stop it"):
                resume(folder, quiet=True)
        with pytest.raises(SettingsError, match="already holds a run"):
            start(recipe, folder, quiet=True)
        newest = max(folder.glob("checkpoint/step-*"))
        while newest.exists() and time.monotonic() < deadline:  # it goes on
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    with alone(folder, "train") as left:
        assert left == "train"


def test_resume_writes_to_nothing_outside_the_folder(recipe, tmp_path):
    """Somebody else may have packed it, with links."""
    folder, mine = start(recipe, tmp_path / "run", quiet=True).folder, tmp_path / "mine"
    mine.write_text("years of work")
    names = ("model.safetensors", "result.json", "curve.png")
    for name in names:
        (folder / name).unlink()
        (folder / name).symlink_to(mine)
    (folder / "model.safetensors").unlink()
    resume(folder, quiet=True)
    assert mine.read_text() == "years of work"
    assert (folder / "result.json").is_file()
    assert not (folder / "result.json").is_symlink()


def test_a_run_killed_at_its_very_end_leaves_no_lock(recipe, tmp_path):
    start(recipe, tmp_path / "run", quiet=True)
    (tmp_path / "run" / LOCK).write_text("1 train\n")
    assert resume(tmp_path / "run", quiet=True).finished
    assert not (tmp_path / "run" / LOCK).exists()
