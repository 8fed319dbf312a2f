"""A few attacks of every kind; `tools/attack.py` runs more."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))  # attack_*.py
COUNTS = {"programs": 100, "runs": 100, "exports": 100, "executors": 40, "names": 4}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_a_few_attacks_fail(name, count, tmp_path):
    attack = importlib.import_module(f"attack_{name}").attack
    assert all(attack(np.random.default_rng([1, number]), tmp_path) for number in range(count))


@pytest.mark.slow
def test_training_goes_on_after_kill_9(tmp_path):
    """In a process of its own, since it forks; this seed kills `train`."""
    tool = Path(__file__).parents[2] / "tools" / "attack.py"
    words = [sys.executable, str(tool), "--only", "kills", "--seed", "11", "--count", "1"]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none failed (train 1)" in " ".join(done.stdout.split())
