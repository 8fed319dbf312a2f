import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # fit_waves.py
from fit_waves import waves


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Slow and fast waves, with a class that only the test data has."""
    (x, f), (x_test, f_test) = waves(160, 0), waves(80, 1)
    y, y_test = (np.where(v < 1.5, "slow", "fast").astype("U8") for v in (f, f_test))
    y_test[:3] = "<odd>"
    path = tmp_path_factory.mktemp("data") / "my waves.npz"
    np.savez(path, x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    return path
