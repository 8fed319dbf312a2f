"""A folder is written by one process at a time, and only where it is new, empty or its own."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from qornn._io.folders import LOCK, alone, is_free, left_by
from qornn.errors import QornnError, SettingsError, WriteError

LEFT = ".qornn-12-0123abcd-0.part"
HOLD = """
import sys, time
from pathlib import Path
from qornn._io.folders import alone
with alone(Path(sys.argv[1]), sys.argv[2]):
    (Path(sys.argv[1]) / sys.argv[3]).touch()
    print("in", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def hold():
    """Start a process that stays in a folder."""
    started = []

    def start(folder, what="train", makes="file"):
        words = [sys.executable, "-c", HOLD, str(folder), what, makes]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout.readline() == "in\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_process_is_refused_until_the_first_is_gone(hold, tmp_path):
    folder = tmp_path / "new" / "run"
    first = hold(folder, makes=LEFT)
    (tmp_path / "link").symlink_to(folder)
    for name in (folder, tmp_path / "link"):
        with (
            pytest.raises(SettingsError, match=rf"{name} is being written by another process \({first.pid}\); wait"),
            alone(name, "train"),
        ):
            pytest.fail("both are in")
    assert (folder / LEFT).exists()  # who is refused cleans nothing
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert left_by(folder) == "train"
    assert is_free(folder)
    with alone(folder, "fit") as left:
        assert left == "train"
        assert [path.name for path in folder.iterdir()] == [LOCK]
    assert not (tmp_path / "new" / "run" / LOCK).exists()


def test_threads_keep_each_other_out_but_one_may_enter_twice(tmp_path):
    refused = []

    def enter():
        try:
            with alone(tmp_path / "run", "train"):
                pass
        except SettingsError as error:
            refused.append(str(error))

    with alone(tmp_path / "run", "grid"), alone(tmp_path / "run", "train"):
        other = threading.Thread(target=enter)
        other.start()
        other.join()
        assert left_by(tmp_path / "run") == "grid"
    assert len(refused) == 1
    enter()
    assert len(refused) == 1


def test_what_stayed_empty_goes_again(tmp_path):
    with alone(tmp_path / "a" / "b", "train"):
        pass
    assert not list(tmp_path.iterdir())
    (tmp_path / "kept").mkdir()
    with pytest.raises(KeyboardInterrupt), alone(tmp_path / "kept", "train"):
        raise KeyboardInterrupt
    with alone(tmp_path / "a", "train"):
        (tmp_path / "a" / "file").touch()
    assert {path.name for path in tmp_path.rglob("*")} == {"kept", "a", "file"}


def test_leftovers_are_cleaned_where_we_write_and_nowhere_else(tmp_path):
    mine = tmp_path / ".foo.part"
    mine.touch()
    for name in ("checkpoint", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / LEFT).touch()
    (tmp_path / LEFT).touch()
    with alone(tmp_path, "train", within=("checkpoint", "absent")):
        left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {LOCK, ".foo.part", "checkpoint", "other", f"other/{LEFT}"}


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_a_lock_that_is_no_file_is_refused(kind, tmp_path):
    lock = tmp_path / LOCK
    if kind == "folder":
        lock.mkdir()
    elif kind == "link":
        lock.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(lock)
    with pytest.raises(QornnError, match=r"could not write|not a regular file"), alone(tmp_path, "train"):
        pytest.fail("locked")
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert left_by(tmp_path) is None


def test_new_and_empty_folders_are_free(tmp_path):
    assert is_free(tmp_path)
    assert is_free(tmp_path / "a" / "b")
    (tmp_path / LEFT).touch()
    (tmp_path / LOCK).touch()
    assert is_free(tmp_path)
    (tmp_path / ".foo.part").touch()
    assert not is_free(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "target")
    assert is_free(tmp_path / "link")


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"could not write .*file is a file, not a folder; choose another folder"):
        is_free(tmp_path / "file")
    with pytest.raises(SettingsError, match=r"below: .*file is a file"):
        is_free(tmp_path / "file" / "below")
    with pytest.raises(WriteError, match="could not write"), alone(tmp_path / "file" / "below", "train"):
        pytest.fail("locked")


def test_a_place_that_takes_no_folder_is_an_error_in_words():
    with pytest.raises(WriteError, match="could not write /proc/qornn"), alone(Path("/proc/qornn"), "train"):
        pytest.fail("locked")


def test_a_working_folder_that_was_deleted_is_an_error_in_words(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(WriteError, match="could not write run: the working directory was deleted"):
        is_free(Path("run"))
    with (
        pytest.raises(WriteError, match="could not write run: the working directory was deleted"),
        alone(Path("run"), "train"),
    ):
        pytest.fail("locked")
