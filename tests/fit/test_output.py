"""The folder of a fit after kills, and with two fits in it at once."""

import json
import threading
import time

import numpy as np
import pytest

from forking import Forked
from killing import killed_at_rename
from qornn._io.files import write_atomically
from qornn._io.folders import LOCK, alone
from qornn.errors import SettingsError
from qornn.fit import pipeline, width
from qornn.fit.pipeline import fit
from qornn.fit.settings import Fit
from qornn.verify import VerifyError


def save_waves(path, seed=0, n=200):
    random = np.random.default_rng(seed)
    f = random.uniform(0.5, 2.5, n)
    x = np.sin(2 * np.pi * f[:, None] * np.arange(12) / 12).astype(np.float32)
    np.savez(path, x=x, y=np.where(f < 1.5, "slow", "fast"))
    return path


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A fit of a blink, its C not compiled and its report not drawn: the folder is what is looked at here."""

    def refuse(*args):
        raise VerifyError("not here")

    monkeypatch.setattr(pipeline, "verify", refuse)
    monkeypatch.setattr(pipeline, "write_report", lambda path, *args, **names: write_atomically(path, "a page"))
    source = save_waves(tmp_path / "waves.npz")

    def make(out, bits=(4,), data=source):
        estimator = {"n_hidden": 6, "max_epochs": 2, "device": "cpu"}
        return Fit(data=data, out=tmp_path / out, bits=bits, estimator=estimator, quiet=True, command="x")

    return make


def contents(folder):
    """Every file, but for the seconds that were measured."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found[str(path.relative_to(folder))] = _untimed(json.loads(data)) if path.suffix == ".json" else data
    return found


def _untimed(value):
    if isinstance(value, dict):
        return {key: _untimed(item) for key, item in value.items() if key not in ("seconds", "run")}
    return [_untimed(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_a_fit_killed_at_any_rename_is_gone_on_with_by_the_same_command(asked, tmp_path):
    fit(asked("whole"))
    wanted = contents(tmp_path / "whole")
    renames = len(wanted)
    # fit.json, k4.qornn, k4.json, model.qornn, the C, the report, the result
    for number in (1, 2, 3, 4, 5, 6, renames - 2, renames - 1, renames):
        out = f"killed {number}"
        assert killed_at_rename(number, lambda out=out: fit(asked(out)))
        assert not (tmp_path / out / "result.json").exists()
        assert (tmp_path / out / LOCK).exists()
        fit(asked(out))
        assert contents(tmp_path / out) == wanted
    assert not killed_at_rename(renames + 1, lambda: fit(asked("long")))


def test_figures_of_one_fit_are_never_taken_for_the_program_of_another(asked, tmp_path):
    """The bits of one width follow from how many are asked for: 3,4 leaves a fifth of the data out to choose."""
    fit(asked("out", bits=(3, 4)))
    wanted = contents(tmp_path / "out")
    assert killed_at_rename(3, lambda: fit(asked("out", bits=(4,))))  # k4.qornn is new, k4.json is not
    assert contents(tmp_path / "out")["k4.json"] == wanted["k4.json"]
    assert contents(tmp_path / "out")["k4.qornn"] != wanted["k4.qornn"]
    key = wanted["k4.json"]["key"]
    assert width.find(tmp_path / "out", 4, key) is None
    assert width.find(tmp_path / "out", 3, key) is not None
    fit(asked("out", bits=(3, 4)))
    assert contents(tmp_path / "out") == wanted


def test_figures_that_are_none_are_made_again(asked, tmp_path):
    fit(asked("out"))
    path = tmp_path / "out" / "k4.json"
    figures = json.loads(path.read_text(encoding="utf-8"))
    wrong = [{"value": "high"}, {"value": None}, {"bits": 5}, {"history": 3}, {"table": [3]}, {"more": 1}]
    for change in [*wrong, {"sha256": ""}, {"key": "other"}]:
        path.write_text(json.dumps(figures | change), encoding="utf-8")
        assert width.find(tmp_path / "out", 4, figures["key"]) is None
    fit(asked("out"))
    assert width.find(tmp_path / "out", 4, figures["key"]) is not None


def test_while_figures_are_there_they_are_those_of_the_program_beside_them(asked, tmp_path):
    fit(asked("out", bits=(3, 4)))
    assert (tmp_path / "out" / "result.json").exists()
    # Of (4,): the claim, k4.qornn, k4.json, model.qornn, and then the first of the C.
    assert killed_at_rename(5, lambda: fit(asked("out", bits=(4,))))
    assert not (tmp_path / "out" / "result.json").exists()


def test_a_second_fit_in_the_folder_is_refused_and_two_data_sets_never_mix(asked, tmp_path, monkeypatch):
    other = save_waves(tmp_path / "other.npz", seed=1)
    inside, go_on = threading.Event(), threading.Event()
    real = width.train

    def train(*args, **options):
        inside.set()
        assert go_on.wait(60)
        return real(*args, **options)

    monkeypatch.setattr(width, "train", train)
    first = threading.Thread(target=lambda: fit(asked("out")))
    first.start()
    assert inside.wait(60)
    try:
        for data in (tmp_path / "waves.npz", other):
            with pytest.raises(SettingsError, match=r"out is being written by another process \(\d+\); wait for it"):
                fit(asked("out", data=data))
    finally:
        go_on.set()
        first.join()
    with pytest.raises(SettingsError, match="holds a fit of other settings or data"):
        fit(asked("out", data=other))
    assert json.loads((tmp_path / "out" / "result.json").read_text())["data"] == str(tmp_path / "waves.npz")


def test_kill_9_of_a_process_leaves_a_folder_to_go_on_in(asked, tmp_path):
    out = tmp_path / "out"
    words = ["fit", tmp_path / "waves.npz", "-o", out, "--n-hidden", "6", "--epochs", "100000", "--device", "cpu"]
    process = Forked(*words)
    while not ((out / LOCK).exists() and (out / LOCK).read_text()):  # the lock is there before it says whose it is
        assert process.poll() is None
        time.sleep(0.02)
    with pytest.raises(SettingsError, match=rf"another process \({process.pid}\)"):
        fit(asked("out"))
    process.kill()
    process.wait()
    fit(asked("out"))
    assert (out / "result.json").exists()
    assert not (out / LOCK).exists()


def test_a_part_of_the_user_s_own_is_no_leftover(asked, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".foo.part").write_text("mine")
    with pytest.raises(SettingsError, match="does not hold a fit"):
        fit(asked("out"))
    (tmp_path / "out" / ".foo.part").unlink()
    fit(asked("out"))
    (tmp_path / "out" / ".foo.part").write_text("mine")
    (tmp_path / "out" / ".dir.part").mkdir()
    fit(asked("out"))
    assert (tmp_path / "out" / ".foo.part").read_text() == "mine"
    with alone(tmp_path / "out", "fit") as left:
        assert left is None


def test_a_fit_that_goes_on_writes_to_nothing_outside_its_folder(asked, tmp_path):
    """Somebody else may have packed it, with links."""
    out, mine = asked("out").out, tmp_path / "mine"
    fit(asked("out"))
    mine.write_text("years of work")
    names = ("model.qornn", "result.json", "fit.json", "k3.qornn", "k3.json")
    record = json.loads((out / "fit.json").read_text())
    for name in names:
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(mine)
    (out / "fit.json").unlink()
    (out / "fit.json").write_text(json.dumps(record))
    fit(asked("out", bits=(3,)))
    assert mine.read_text() == "years of work"
    assert not [name for name in names if (out / name).is_symlink()]
