"""Files are written whole or not at all, to where the name leads, and as they were."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from qornn._io import files
from qornn._io.files import check_file, clean, write_atomically, write_together
from qornn.errors import QornnError, SettingsError, WriteError


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed_and_stays_a_link(tmp_path, there):
    (tmp_path / "far").mkdir()
    target, link, second = tmp_path / "far" / "target", tmp_path / "link", tmp_path / "second"
    if there:
        target.write_bytes(b"old")
    link.symlink_to("far/target")
    second.symlink_to("link")
    write_atomically(second, b"new")
    assert (second.is_symlink(), link.is_symlink(), target.is_symlink()) == (True, True, False)
    assert target.read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "link", "second", "target"]


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "file"])
def test_a_file_of_our_own_folders_leaves_the_ends_of_links_alone(tmp_path, kind):
    """And waits for no reader of a pipe."""
    far, path = tmp_path / "far", tmp_path / "folder" / "name"
    path.parent.mkdir()
    far.write_text("mine")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "file":
        path.write_text("old")
        path.chmod(0o640)
    else:
        path.symlink_to(far if kind == "link" else tmp_path / "nowhere")
    write_atomically(path, b"one", own=True)
    assert (path.is_symlink(), path.is_file(), path.read_bytes()) == (False, True, b"one")
    write_together(path.parent, {"name": b"two"})
    assert path.read_bytes() == b"two"
    assert kind != "file" or path.stat().st_mode & 0o777 == 0o640
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == {"far": "mine"}


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for ask in (lambda: write_atomically(tmp_path / "a", b"x"), lambda: check_file(tmp_path / "a")):
        with pytest.raises(WriteError, match="symbolic links"):
            ask()


def test_a_pipe_is_written_to(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, b"through")
    reader.join(10)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_device_stays_a_device(tmp_path):
    null, full = tmp_path / "null", tmp_path / "full"
    for path, minor in ((null, 3), (full, 7)):
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            path.open("wb").close()
        except OSError:
            pytest.skip("no device nodes here")
    check_file(null)
    write_atomically(null, b"gone")
    with pytest.raises(WriteError, match=r"could not write .*full: No space left on device; choose another place"):
        write_atomically(full, b"refused")
    assert all(stat.S_ISCHR(path.stat().st_mode) for path in (null, full))
    assert set(tmp_path.iterdir()) == {null, full}


def test_names_of_open_files_are_written_through(tmp_path):
    """/dev/stdout may be a regular file, which others go on writing to."""
    with (tmp_path / "out").open("wb") as file:
        node = os.fstat(file.fileno()).st_ino
        write_atomically(Path(f"/dev/fd/{file.fileno()}"), b"abc")
    assert (tmp_path / "out").read_bytes() == b"abc"
    assert (tmp_path / "out").stat().st_ino == node


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o664])
def test_the_mode_of_a_file_is_kept(tmp_path, bits):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(bits)
    write_atomically(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", bits)


def test_a_new_file_has_the_mode_that_open_would_give(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "ours", b"")
        (tmp_path / "plain").open("wb").close()
    finally:
        os.umask(before)
    assert mode(tmp_path / "ours") == mode(tmp_path / "plain") == 0o640


def test_a_private_file_is_never_readable_by_others(tmp_path, monkeypatch):
    path, seen = tmp_path / "file", []
    path.write_bytes(b"old")
    path.chmod(0o600)
    real = files.flush

    def look(file, **how):
        seen.extend(mode(part) for part in tmp_path.glob(".*"))
        return real(file, **how)

    monkeypatch.setattr(files, "flush", look)
    write_atomically(path, b"secret")
    assert seen == [0o600]


def test_a_name_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("x" * 255)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    for ask in (lambda: write_atomically(tmp_path / ("x" * 256), b""), lambda: check_file(tmp_path / ("x" * 256))):
        with pytest.raises(WriteError, match="name too long"):
            ask()


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(WriteError, match="Is a directory"):
        write_atomically(tmp_path, b"new")
    with pytest.raises(SettingsError, match="is a folder; name a file"):
        check_file(tmp_path)


def full_at(monkeypatch, number):
    """A disk that is full when the file of that number, from 1, is flushed."""
    real, left = files.flush, [number]

    def flush(file, **how):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, **how)

    monkeypatch.setattr(files, "flush", flush)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    full_at(monkeypatch, 1)
    with pytest.raises(WriteError, match=r"No space left.* before is unharmed"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_files_written_together_are_all_new_or_all_old(tmp_path, monkeypatch, number):
    names = ["a", "b", "c"]
    for name in names:
        (tmp_path / name).write_bytes(b"old")
    full_at(monkeypatch, number)
    with pytest.raises(WriteError, match="No space left"):
        write_together(tmp_path, dict.fromkeys(names, b"new"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == dict.fromkeys(names, b"old")
    write_together(tmp_path, dict.fromkeys(names, b"new"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == dict.fromkeys(names, b"new")


LEFT = ".qornn-12-0123abcd-0.part"


def test_only_our_own_leftovers_are_cleaned(tmp_path):
    mine = [".foo.part", ".notes.123.part", "x.part", ".qornn-12-0123abcd-0.part.txt", ".qornn-1-zz-0.part"]
    for name in [*mine, LEFT]:
        (tmp_path / name).touch()
    folder, link = tmp_path / LEFT.replace("12", "13"), tmp_path / LEFT.replace("12", "14")
    folder.mkdir()
    link.symlink_to(tmp_path / "x.part")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / LEFT).touch()
    clean(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*mine, folder.name, link.name, "below"}
    assert (tmp_path / "below" / LEFT).exists()
    clean(tmp_path / "nowhere")


def test_a_file_that_is_being_written_is_no_leftover(tmp_path):
    with files.replacing(tmp_path / "file") as file:
        file.write(b"half")
        clean(tmp_path)
        file.write(b" and half")
    assert (tmp_path / "file").read_bytes() == b"half and half"


def test_a_block_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), files.replacing(tmp_path / "file"):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_a_place_that_takes_no_file_is_told_before_the_work(tmp_path):
    check_file(tmp_path / "a" / "b" / "file")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "x", Path("/proc/none/x"), Path("/proc/x")):
        with pytest.raises(WriteError, match="could not write"):
            check_file(path)


def test_a_working_folder_that_was_deleted_is_an_error_in_words(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for ask in (lambda: write_atomically(Path("x"), b""), lambda: check_file(Path("x"))):
        with pytest.raises(QornnError, match="could not write x: the working directory was deleted"):
            ask()
