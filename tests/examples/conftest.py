"""The examples' folders on the path, small data made on the spot, and the real ones where $QORNN_DATA holds them."""

import importlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
REAL = EXAMPLES / "real"
sys.path[:0] = [str(REAL), str(EXAMPLES / "ecg")]


@pytest.fixture
def real_data():
    """The data folder, for one of its files."""

    def folder(file):
        root = os.environ.get("QORNN_DATA")
        if not root or not (Path(root) / file).is_file():
            pytest.skip(f"{file} not found: set QORNN_DATA")
        return Path(root)

    return folder


@pytest.fixture(scope="session")
def keywords():
    """The modules of examples/keywords: each folder of examples has its own `data`, and a process knows one by name."""
    names = ("data", "features", "train", "stream")
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(EXAMPLES / "keywords"))
    try:
        return SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.pop(0)
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(others)


@pytest.fixture(scope="session")
def made_clips():
    """Made-up keyword clips, x and y: the class is the large coefficient; the 11th has two and the 12th none."""

    def make(n, seed):
        y = np.arange(n) % 12
        x = np.random.default_rng(seed).integers(-20, 21, (n, 49, 10))
        large = np.vstack([np.eye(10), np.ones((1, 10)) * (np.arange(10) < 2), np.zeros((1, 10))])
        return (x + 40 * large[y][:, None]).astype(np.int8), y

    return make


@pytest.fixture(scope="session")
def waves():
    """Six channels of raw int16: slow and fast waves, which anything but a coin tells apart."""
    from data import Data

    def make(n, rng):
        y = np.arange(n) % 2 + 1
        t, phase = np.arange(32), rng.uniform(0, 1, (n, 1, 6))
        wave = np.sin(phase + 0.3 * y[:, None, None] * t[:, None]) + 0.2 * rng.standard_normal((n, 32, 6))
        return np.rint(1000 * wave + 100 * np.arange(6)).astype(np.int16), y

    rng = np.random.default_rng(0)
    (x_train, y_train), (x_test, y_test) = make(240, rng), make(60, rng)
    y_test[7] = 3 - y_test[7]  # a label that is wrong: 100 % would mean that nothing was measured
    return Data(x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test, groups=None, labels=("slow", "fast"))
