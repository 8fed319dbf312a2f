import os
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest
import torch

sys.path.append(str(Path(__file__).parent))  # compiling.py, forking.py, killing.py, whole_runs.py
import compiling
import forking
from qornn.verify import build, qemu

torch.set_num_threads(1)  # networks this small gain nothing from two, and lose much on a busy machine

TINY = ["task.T0=5", "task.train_size=256", "task.validation_size=16", "task.test_size=16", "model.n_h=12"]
TINY += ["train.batch=8", "train.log_every=1", "train.eval_every=7", "train.lr=1e-2"]

# `make test` draws few examples of every property, `make test-all` many: pytest --hypothesis-profile thorough
patient = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.function_scoped_fixture]}
hypothesis.settings.register_profile("fast", max_examples=60, **patient)
hypothesis.settings.register_profile("thorough", max_examples=500, **patient)
hypothesis.settings.load_profile("fast")


def pytest_collection_modifyitems(items):
    """Whatever is left to `make test-all` is slow too; slow tests begin first, so that no worker ends with one alone.

    A group goes to one worker: the quick tests of a file, and each slow function with its parameters.
    """
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker("slow")
        if item.get_closest_marker("xdist_group") is None:
            group = item.nodeid.split("[" if item.get_closest_marker("slow") else "::")[0]
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    """What `verify` compiles is made of objects that the session has already; where that fails, as it always is."""
    base = tmp_path_factory.getbasetemp()
    compiling.session = compiling.Objects((base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "objects")
    real = build.compiled

    def compile_(command, folder, name):
        if not compiling.session.run(command):
            real(command, folder, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "compiled", compile_)
        yield


@pytest.fixture
def one_emulator(request, monkeypatch):
    """Unicorn alone; where everything is run QEMU is asked too, and arm-none-eabi-gcc compiles for it."""
    if request.config.option.markexpr:
        monkeypatch.setattr(qemu, "outputs", lambda *_: ([], []))


@pytest.fixture(scope="session")
def tiny():
    """Settings of a copy task that trains in a blink."""
    return list(TINY)


@pytest.fixture(scope="session")
def qornn_command(tmp_path_factory):
    """Run the command line in a process of its own: a forked one, or a new Python that `program` says how to start."""

    folder = tmp_path_factory.mktemp("cwd")

    def call(*words, check=True, program=None, env=None, **options):
        changed = {"OMP_NUM_THREADS": "1", "QORNN_NO_DOWNLOAD": "1", **(env or {})}
        if program is None:
            done = forking.run(*words, env=changed, cwd=folder, **options)
        else:
            done = subprocess.run(
                [sys.executable, *program, *map(str, words)],
                capture_output=True,
                text=True,
                cwd=folder,
                env={**os.environ, **changed},
                timeout=300,
                **options,
            )
        assert not check or done.returncode == 0, done.stderr
        return done

    return call
