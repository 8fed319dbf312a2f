"""Small data files made on the spot, and the real ones where $QORNN_DATA holds them."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from qornn.tasks import make_task

REAL_DATA = os.environ.get("QORNN_DATA")
SMALL = {
    "copy": {"T0": 5},
    "adding": {"T": 9},
    "smnist": {"validation": 12},
    "pmnist": {"validation": 12},
    "ptb": {"T": 7, "verify": False},
}
SIZES = {"train_size": 64, "validation_size": 30, "test_size": 20}
PTB_TEXT = {
    "train": " the cat sat on the mat \n a <unk> of N dogs \n no \n it 's $ N & more \n" * 8
    + " a b c d e f g h i j k l m n o p q r s t u v w x y z \n",
    "valid": " the dog sat \n on a mat of cats \n the quick dog of the lazy fox \n",
    "test": " a cat \n the <unk> dog 's mat \n no more than N dogs sat on the mat of the cat \n",
}


@pytest.fixture(autouse=True)
def no_outside(monkeypatch, tmp_path):
    """No test of this room sees the user's folders or the network."""
    monkeypatch.delenv("QORNN_DATA", raising=False)
    monkeypatch.setenv("QORNN_NO_DOWNLOAD", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))


def _write_idx(path: Path, array: np.ndarray, *, pack: bool = True) -> Path:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    raw = header + array.astype(np.uint8).tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(raw) if pack else raw)
    return path


@pytest.fixture(scope="session")
def write_idx():
    """The function that writes an array as an IDX file."""
    return _write_idx


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    """A data folder with a small MNIST (50 + 20 images, all different) and a small PTB."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    for part, count in (("train", 50), ("t10k", 20)):
        _write_idx(root / f"mnist/{part}-images-idx3-ubyte.gz", rng.integers(0, 256, (count, 28, 28)))
        _write_idx(root / f"mnist/{part}-labels-idx1-ubyte.gz", np.arange(count) % 10)
    (root / "ptb").mkdir()
    for part, text in PTB_TEXT.items():
        (root / f"ptb/ptb.{part}.txt").write_text(text)
    return root


@pytest.fixture(scope="session")
def small_task(data_folder):
    """The function that makes a task of the given name, small enough to look at whole."""

    def make(name, **settings):
        defaults = SMALL.get(name, {}) | (SIZES if name in ("copy", "adding") else {})
        if name in ("smnist", "pmnist", "ptb"):
            defaults |= {"data_dir": str(data_folder)}
        return make_task(name, **(defaults | settings))

    return make


@pytest.fixture(scope="session")
def real_mnist():
    """The data folder that holds the real MNIST."""
    return _real("MNIST", "mnist/t10k-labels-idx1-ubyte.gz", "MNIST/raw/t10k-labels-idx1-ubyte.gz")


@pytest.fixture(scope="session")
def real_ptb():
    """The data folder that holds the real Penn TreeBank."""
    return _real("Penn TreeBank", "ptb/ptb.test.txt")


def _real(dataset, *files):
    if not REAL_DATA or not any((Path(REAL_DATA) / file).is_file() for file in files):
        pytest.skip(f"{dataset} not found: set QORNN_DATA")
    return REAL_DATA
