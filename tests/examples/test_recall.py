"""The network of the README's second picture, on sequences it has never seen."""

import importlib.util
from pathlib import Path

import pytest

import qornn

FILE = Path(__file__).parents[2] / "examples" / "recall.py"


@pytest.fixture(scope="module")
def recall():
    spec = importlib.util.spec_from_file_location("recall", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ten_symbols_come_back_after_a_thousand_steps(recall, tmp_path):
    program = qornn.load("zoo:copy1000-k5")
    right = 0
    for seed in range(5):
        x, states, p = recall.recall(program, seed)
        assert states.shape == (1020, 256)
        right += int((p.argmax(1) == x[:10]).sum())
    assert right >= 48
    recall.draw(tmp_path / "recall.png", x, states, p, program)
    assert (tmp_path / "recall.png").read_bytes().startswith(b"\x89PNG")
