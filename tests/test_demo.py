"""The demo's whole path, with little training."""

import json
import os
import signal
import subprocess
import sys

import pytest

from qornn.demo import run
from qornn.verify import Need

SHORT = ("--set", "train.epochs=1")


@pytest.mark.slow
def test_the_demo_ends_with_something_to_look_at(tmp_path, qornn_command):
    out = tmp_path / "demo"
    done = qornn_command("demo", "--out", out, *SHORT)
    assert "| stack of rotations, full precision |" in done.stdout
    assert "| stack of rotations, integers: 4-bit weights |" in done.stdout
    assert "| the paper's single layer, integers: 4-bit weights |" in done.stdout
    assert "bit for bit" in done.stdout
    assert "[4/4]" in done.stderr
    assert (out / "digits.qornn").exists()
    assert (out / "c" / "src" / "digits.h").exists()
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    pytest.importorskip("ziglang")
    assert done.stdout.endswith(f"Next: open {out / 'web' / 'index.html'}\nYour own recordings: qornn fit --help\n")
    assert (out / "web" / "index.html").exists()


@pytest.mark.slow
def test_without_compilers_the_demo_says_how_to_get_them(tmp_path, monkeypatch):
    without = Need(target="cortex-m4", device="", missing="a cross compiler", install=run.MCU)
    monkeypatch.setattr(run, "needs", lambda: [without])
    monkeypatch.setattr(run, "zig", lambda: None)
    said = []
    found = run.demo(tmp_path, settings=["train.epochs=1"], say=said.append)
    assert len(said) == 4
    assert found.notes == [
        "the C was not verified on cortex-m4: a cross compiler is missing; pip install 'qornn[mcu]'",
        "no web page was written, because the zig compiler is missing; pip install 'qornn[mcu]'",
    ]
    assert found.devices == {}
    assert run.verdict(found.devices) == ""
    assert {path.name for path in found.files.values()} == {"digits.qornn", "c", "demo.png"}
    assert json.dumps(found.figures())


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupted_demo_says_what_is_kept(tmp_path):
    words = [sys.executable, "-m", "qornn", "demo", "--out", str(tmp_path / "demo")]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    # A shell that puts this test into the background ignores Ctrl-C, and its children would too.
    with subprocess.Popen(words, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **pipes) as process:
        assert any("device cpu" in line for line in process.stderr)  # it trains
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said.endswith(f"stopped; finished parts are in {tmp_path / 'demo'}, and the same command starts again\n")
