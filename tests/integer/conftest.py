import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # strategies.py and others, which the tests here share
sys.path.append(str(Path(__file__).parents[1] / "attacks"))  # attack_programs.py
from program_files import bases

from qornn.integer.storage import save


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(program, bytes) of each base program, and a folder."""
    folder = tmp_path_factory.mktemp("programs")
    pairs = []
    for program in bases():
        save(program, folder / "base.qornn")
        pairs.append((program, (folder / "base.qornn").read_bytes()))
    return pairs, folder
