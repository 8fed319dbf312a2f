"""The estimators whatever torch was told around them, and whatever tensors they are handed."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from estimator_waves import labels, small, waves

from qornn import QORNNRegressor
from qornn.errors import SettingsError

X, F = waves(40)


@contextmanager
def default_dtype(dtype):
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def default_device(name):
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


AROUND = {
    "float64": lambda: default_dtype(torch.float64),
    "float16": lambda: default_dtype(torch.float16),
    "meta": lambda: default_device("meta"),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "deterministic": deterministic,
    "anomaly": lambda: torch.autograd.set_detect_anomaly(True),
}


def everything(settings):
    """What a user sees of a fit: probabilities, those of the integers, and a stream's answers."""
    clf = small(max_epochs=2, **settings).fit(X, labels(F))
    stream = clf.stream()
    return clf.predict_proba(X), clf.predict_proba(X, integer=True), [stream.step(x) for x in X[0]], clf.to_raw(X)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("settings", [{}, {"map": "projunn", "activation": "modrelu"}, {"map": "hadamard"}], ids=str)
@pytest.mark.parametrize("around", AROUND)
def test_what_torch_was_told_changes_nothing_and_stays(around, settings):
    want = everything(settings)
    with AROUND[around]():
        before = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
        got = everything(settings)
        assert (torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()) == before
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("map", ["cycle", "hadamard", "penalty"])
def test_every_map_starts_alike_under_another_default(map):
    want = small(max_epochs=1, map=map).fit(X, labels(F)).predict_proba(X)
    with default_dtype(torch.float64):
        np.testing.assert_array_equal(small(max_epochs=1, map=map).fit(X, labels(F)).predict_proba(X), want)


def test_a_network_fitted_without_gradients_is_fitted_once_more_with_them():
    with torch.inference_mode():
        clf = small(max_epochs=1, map="hadamard").fit(X, labels(F))
    assert (clf.fit(X, labels(F)).predict(X) == clf.predict(X)).all()


def tensors():
    x = torch.tensor(X)
    return {
        "grad": x.clone().requires_grad_(),
        "result": x.clone().requires_grad_() * 1,
        "list": [part.clone().requires_grad_() for part in x],
        "tuple": tuple(part.requires_grad_() for part in x.clone()),
        "float32": x.float().requires_grad_(),
        "table": x[:, :, 0].clone().requires_grad_(),
        "conjugate": torch.complex(torch.zeros_like(x), -x).conj().imag,
    }


@pytest.mark.parametrize("kind", tensors())
def test_tensors_are_read_as_their_numbers(kind):
    given = tensors()[kind]
    plain = (
        [part.detach().numpy() for part in given] if isinstance(given, list | tuple) else given.detach().resolve_neg()
    )
    plain = plain if isinstance(plain, list) else plain.numpy()
    y = torch.tensor(F, requires_grad=True)
    want = QORNNRegressor(map="bjorck", n_hidden=8, max_epochs=2, random_state=0).fit(plain, F)
    got = QORNNRegressor(map="bjorck", n_hidden=8, max_epochs=2, random_state=0).fit(given, y)
    np.testing.assert_array_equal(got.predict(given), want.predict(plain))
    np.testing.assert_array_equal(got.predict(given, integer=True), want.predict(plain, integer=True))
    assert got.score(given, y, sample_weight=torch.ones(40, requires_grad=True)) == want.score(plain, F)
    a, b = got.stream(), want.stream()
    assert [a.step(x) for x in given[0]] == [b.step(x) for x in plain[0]]


def test_half_precision_of_sixteen_bits_is_read():
    got = small(max_epochs=1).fit(torch.tensor(X).bfloat16(), list(labels(F)))
    assert (
        got.predict_proba(torch.tensor(X).bfloat16()) == got.predict_proba(torch.tensor(X).bfloat16().float())
    ).all()


@pytest.mark.parametrize(
    "x", [torch.ones(40, 20).to_sparse(), torch.empty(40, 20, 1, device="meta"), [torch.empty(20, device="meta")] * 40]
)
def test_tensors_without_numbers_are_refused(x):
    with pytest.raises(SettingsError, match=r"cannot be read as numbers: .*"):
        small(max_epochs=1).fit(x, labels(F))


ENVIRONMENT = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
os.environ |= {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
import torch
torch.set_num_threads(2)
from estimator_waves import labels, small, waves
X, f = waves(40)
def all_of_it():
    clf = small(max_epochs=2).fit(X, labels(f))
    clf.predict(X), clf.predict(X, integer=True), clf.stream().step(X[0, 0])
all_of_it()
print(torch.distributed.is_initialized(), torch.get_num_threads())
child = os.fork()
if not child:
    signal.alarm(20)
    all_of_it()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork on this system")
def test_no_process_group_is_joined_and_a_forked_child_can_fit():
    """Of torchrun's variables, which a job's environment may have set for something else."""
    here = str(Path(__file__).parent)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ENVIRONMENT, here], capture_output=True, text=True, timeout=60
    )
    assert run.stdout.split() == ["False", "2", "0"], run.stderr
