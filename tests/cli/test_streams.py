"""Output that cannot be written as it is: other encodings, closed pipes, full disks; and names no system takes."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qornn.cli import main, streams

ODD = os.fsdecode(b"caf\xe9")  # the name of a file, not UTF-8


def run_main(monkeypatch, *words, encoding="utf-8"):
    """The command's exit code, and the bytes on its standard output and error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2))
    monkeypatch.setattr(sys, "argv", ["qornn", *map(str, words)])
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as stopped:
        main()
    for stream in (out, err):
        stream.flush()
    return stopped.value.code, out.buffer.getvalue(), err.buffer.getvalue()


def run_process(words, **options):
    """Buffered, as users have it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "qornn", *words]
    return subprocess.run(command, stderr=subprocess.PIPE, env=environment, timeout=60, **options)


def test_letters_that_the_encoding_lacks_are_escaped(monkeypatch, tmp_path):
    code, out, err = run_main(monkeypatch, "reproduce", "sizes", "--results", tmp_path, encoding="ascii")
    assert (code, err) == (0, b"")
    assert b"Bj\\xf6rck" in out


@pytest.mark.parametrize(("encoding", "letters"), [("utf-8", "σ".encode()), ("ascii", b"\\u03c3")])
def test_names_that_are_not_utf8_leave_as_the_bytes_they_are(monkeypatch, encoding, letters):
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    streams.take_any_text()
    print("σ", ODD, flush=True)
    assert stream.buffer.getvalue() == letters + b" caf\xe9\n"


def test_an_error_names_the_file_by_its_bytes(monkeypatch, tmp_path):
    code, _, err = run_main(monkeypatch, "verify", tmp_path / ODD)
    assert code == 1
    assert err.startswith(b"error: no folder at " + os.fsencode(tmp_path / ODD))


@pytest.mark.parametrize("words", [("size", "x.qornn"), ("eval", "x\x1b[2J.qornn"), ("verify", "\x9b2J")])
def test_no_file_tells_the_terminal_what_to_do(monkeypatch, tmp_path, words):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "verify")
    from c_programs import make

    monkeypatch.chdir(tmp_path)
    make().with_provenance(task="\x1b]0;mine\x07 \x9b2J \r\x08").save("x.qornn")
    _, out, err = run_main(monkeypatch, *words)
    assert not [sign for sign in (out + err).decode() if not sign.isprintable() and sign != "\n"]
    assert "\N{REPLACEMENT CHARACTER}" in (out + err).decode()


def test_a_reader_that_stops_reading_ends_the_command_quietly():
    there, here = os.pipe()
    os.close(there)
    with os.fdopen(here, "wb") as pipe:
        done = run_process(["list", "--json"], stdout=pipe)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_output_on_a_full_disk_is_an_error_in_words():
    with open("/dev/full", "wb") as full:
        done = run_process(["list", "--json"], stdout=full)
    assert (done.returncode, done.stderr) == (1, b"error: could not read or write: No space left on device\n")


def test_output_that_is_closed_is_no_error():
    done = run_process(["list"], preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="the working directory cannot be deleted there")
def test_a_deleted_working_directory_is_an_error_in_words(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, _, err = run_main(monkeypatch, "list")
    assert (code, err) == (1, b"error: the working directory was deleted; change to another one\n")


LONG = "x" * 300
COMMANDS = [
    ["size", f"{LONG}.qornn"],
    ["eval", LONG],
    ["lower", LONG, "-o", "p.qornn"],
    ["export", f"{LONG}.qornn", "--to", "c", "--name", "net", "-o", "c"],
    ["export", "zoo:digits-k4", "--to", "c", "--name", "net", "-o", LONG],
    ["verify", LONG],
    ["train", "digits", "--steps", "1", "--out", LONG],
    ["resume", LONG],
    ["fit", f"{LONG}.npz", "-o", "fit"],
    ["reproduce", "sizes", "--results", LONG],
    ["report", "--results", LONG],
    ["report", "--results", ".", "-o", f"{LONG}.html"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[:20])
def test_a_name_too_long_for_the_system_is_an_error_in_words(monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = run_main(monkeypatch, *words)
    last = err.decode().splitlines()[-1]
    assert code == 1
    assert last.startswith("error: ")
    assert "File name too long" in last or "there is no" in last
    assert LONG in last
