"""The examples' folders on the path, small data made on the spot, and the real ones where $QORNN_DATA holds them."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path[:0] = [str(EXAMPLES / "real"), str(EXAMPLES / "ecg")]


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
    y_test[7] = 3 - y_test[7]  # a label that is wrong: whoever has 100 % has not been measured
    return Data(x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test, groups=None, labels=("slow", "fast"))
