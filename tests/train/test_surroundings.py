"""Training and lowering whatever torch was told around them."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import torch

import qornn
from qornn.train.process import flush_denormals
from qornn.train.surroundings import float32

SMALL = ["train.steps=2", "train.batch=4", "model.n_h=16", "task.T0=10"]


@pytest.fixture
def defaults():
    """Whatever a test sets is taken back."""
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def trained(folder, map):
    run = qornn.train("copy", map=map, settings=SMALL, out=folder, quiet=True)
    again = qornn.load(folder)
    x = torch.randint(0, 10, (3, 30), generator=torch.Generator(device="cpu").manual_seed(0), device="cpu")
    program = qornn.lower(again, quiet=True)
    return [p.detach().numpy() for p in (*run.model.parameters(), *again.model.parameters())] + [program.run(x.numpy())]


AROUND = {
    "float64": lambda: torch.set_default_dtype(torch.float64),
    "meta": lambda: torch.set_default_device("meta"),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return {map: trained(tmp_path_factory.mktemp("runs") / map, map) for map in ("bjorck", "hadamard")}


@pytest.mark.slow
@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize(("around", "map"), [*((name, "bjorck") for name in AROUND), ("inference_mode", "hadamard")])
def test_what_torch_was_told_changes_no_bit_of_a_run(around, map, plain, tmp_path):
    want = plain[map]
    context = AROUND[around]()
    if context is None:  # a setting, not a mode
        got = trained(tmp_path / "other", map)
    else:
        with context:
            got = trained(tmp_path / "other", map)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("defaults")
def test_threads_that_build_at_once_give_the_default_back():
    torch.set_default_dtype(torch.float64)
    begun, found = threading.Barrier(4), []

    def build():
        begun.wait()
        for _ in range(200):
            with float32():
                found.append(torch.get_default_dtype())

    workers = [threading.Thread(target=build) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(found) == {torch.float32}
    assert torch.get_default_dtype() == torch.float64


@pytest.mark.usefixtures("defaults")
def test_flushing_that_was_on_before_stays_on():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot")
    try:
        torch.set_default_dtype(torch.float64)
        with flush_denormals():
            pass
        assert not torch.tensor(1e-38, dtype=torch.float32) / 100 > 0
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.slow
def test_numpy_still_knows_denormals_when_it_first_looks_during_a_training():
    """The learning curve's picture makes it look; a process of its own, because numpy looks once."""
    code = """
        import warnings
        warnings.simplefilter("error")
        import numpy as np
        from qornn.train.process import flush_denormals
        with flush_denormals():
            import matplotlib
        assert np.finfo(float).smallest_subnormal > 0
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
