"""The demo's whole path, with little training."""

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parent.parent / "examples" / "demo.py"


@pytest.mark.slow
def test_the_demo_ends_with_something_to_look_at(tmp_path):
    words = [sys.executable, DEMO, "--out", tmp_path / "demo", "--settings", "train.epochs=1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    assert "| stack of rotations, full precision |" in done.stdout
    assert "| stack of rotations, integers: 4-bit weights |" in done.stdout
    assert "| the paper's single layer, integers: 4-bit weights |" in done.stdout
    assert "bit for bit on this machine" in done.stdout
    assert (tmp_path / "demo" / "digits.qornn").exists()
    assert (tmp_path / "demo" / "demo.png").read_bytes().startswith(b"\x89PNG")
