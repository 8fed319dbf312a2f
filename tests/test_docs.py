"""The docs are run, not believed."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_python_blocks_run(page, tmp_path):
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(code, {"FOLDER": tmp_path})


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_commands_run(page, qornn_command, tmp_path):
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for words in (shlex.split(line, comments=True) for block in blocks for line in block.splitlines()):
        short = ["--set", "train.epochs=1"] if words[1] == "train" else []
        qornn_command(*(str(tmp_path / w) if w.startswith("runs/") else w for w in words[1:]), *short)


def test_the_activation_bits_table_is_its_record():
    spec = importlib.util.spec_from_file_location("activation_bits", ROOT / "examples" / "activation_bits.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    page = (ROOT / "docs" / "integers.md").read_text(encoding="utf-8")
    assert "| digits, 4 bits |" in page
    assert example.with_table(page, example.recorded()) == page
