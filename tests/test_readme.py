"""The README is run, not believed: its commands, its code, and its figures from their record."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from qornn.reproduce import records
from qornn.reproduce.tables import renew

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("qornn ")
]


@pytest.mark.slow
@pytest.mark.parametrize("code", CODE, ids=range(len(CODE)))
def test_python_blocks_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(code, {})


@pytest.fixture
def recordings(tmp_path):
    """Two kinds of sequences in the file that the README names."""
    t = np.arange(20)
    kinds = np.arange(80) % 2
    x = np.sin(0.3 * (1 + kinds[:, None]) * t + np.arange(80)[:, None])
    np.savez(tmp_path / "recordings.npz", x=x, y=kinds)


@pytest.mark.slow
@pytest.mark.usefixtures("recordings")
def test_commands_run_in_order(qornn_command, tmp_path):
    assert COMMANDS
    for words in COMMANDS:
        # Little training; and the command that reads the checkout's records is not run in the checkout here.
        short = {
            "train": ["--steps", "3"],
            "fit": ["--epochs", "2", "--n-hidden", "8"],
            "report": ["--results", ROOT / "results"],
        }.get(words[1], [])
        words = [str(tmp_path / w) if w.startswith(("runs/", "recordings")) else w for w in words]
        qornn_command(*words[1:], *short)


def test_the_two_commands_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("demo", "test"):
        assert f"make {command}" in TEXT
        assert f"\n{command}:" in makefile


def test_the_table_is_its_records():
    assert "<!-- table: overview -->" in TEXT
    assert renew(TEXT, records.read_all(ROOT / "results")) == TEXT, "qornn reproduce --docs README.md"


def test_it_is_one_screen_before_its_links():
    assert TEXT.index("## Where to go") < 4000
