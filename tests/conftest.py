import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parent))  # killing.py
torch.set_num_threads(1)  # networks this small gain nothing from two, and lose much on a busy machine

TINY = ["task.T0=5", "task.train_size=256", "task.validation_size=16", "task.test_size=16", "model.n_h=12"]
TINY += ["train.batch=8", "train.log_every=1", "train.eval_every=7", "train.lr=1e-2"]


@pytest.fixture(scope="session")
def tiny():
    """Settings of a copy task that trains in a blink."""
    return list(TINY)


@pytest.fixture(scope="session")
def qornn_command(tmp_path_factory):
    """Run the command line in a process of its own."""

    folder = tmp_path_factory.mktemp("cwd")

    def call(*words, check=True, program=("-m", "qornn"), **options):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "QORNN_NO_DOWNLOAD": "1", **options.pop("env", {})}
        done = subprocess.run(
            [sys.executable, *program, *map(str, words)],
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
            timeout=300,
            **options,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    return call
