"""A few attacks of every kind; `tools/attack.py` runs as many as wanted."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))  # attack_*.py
COUNTS = {"programs": 100, "runs": 100, "exports": 100, "executors": 40, "names": 4}


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_a_few_attacks_fail(name, count, tmp_path):
    attack = importlib.import_module(f"attack_{name}").attack
    assert all(attack(np.random.default_rng([1, number]), tmp_path) for number in range(count))
