import json
from dataclasses import replace

import pytest
import torch

from qornn.bench import stack
from qornn.bench.stack import PEERS, STACK_SHAPES, bench_stack, chunked, float_stack, loop, training_step
from qornn.errors import SettingsError

TINY = {
    "forda": replace(STACK_SHAPES["forda"], T=7, width=6, B=3),
    "smnist": replace(STACK_SHAPES["smnist"], T=11, width=6, B=3),
    "ptb": replace(STACK_SHAPES["ptb"], T=5, width=6, B=3),
}


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("peer", ["loop", "scan"])
def test_the_peers_compute_what_the_float_network_computes(name, peer):
    """Three training steps from the same weights: the same losses."""
    models = (float_stack(TINY[name]), PEERS[peer](float_stack(TINY[name])))
    losses = [[step() for _ in range(3)] for step in (training_step(m, TINY[name]) for m in models)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)  # float32 sums in another order
    assert losses[0][0] != losses[0][-1]


@pytest.mark.parametrize("T", [1, 2, 9, 10, 17])
def test_a_chunked_scan_is_the_loop(T):
    g = torch.Generator().manual_seed(0)
    drive = torch.randn(2, T, 3, dtype=torch.complex128, generator=g)
    eigenvalues = torch.polar(torch.rand(3, generator=g).double(), torch.rand(3, generator=g).double())
    assert torch.allclose(loop(drive, eigenvalues), chunked(drive, eigenvalues))


def test_the_report_has_the_figures_that_are_promised(monkeypatch):
    monkeypatch.setattr(stack, "STACK_SHAPES", TINY)
    figures = bench_stack(repeats=1, say=lambda _: None)
    assert figures["shapes"].keys() == TINY.keys()
    for found in figures["shapes"].values():
        assert found["step_seconds"].keys() == {"ours", *PEERS}
        assert all(found[key] > 0 for key in ("step_vs_loop", "step_vs_scan", "step_vs_lstm"))
        assert "copy_fraction" in found


def test_no_share_of_a_copy_without_the_kernel(monkeypatch):
    monkeypatch.setattr(stack.native_rotations, "PATH", None)
    assert stack.copy_fraction(TINY["forda"], 1) is None


def test_the_network_that_is_timed_rounds():
    model = stack.ours(TINY["forda"])
    training_step(model, TINY["forda"])()
    assert model.layers[1].steps.started


def test_unknown_shape():
    with pytest.raises(SettingsError, match="Did you mean 'smnist'"):
        bench_stack(["mnist"])


@pytest.mark.slow
def test_the_command(qornn_command):
    done = qornn_command("bench", "train", "--model", "stack", "--shape", "forda", "--repeats", "1", "--json")
    assert json.loads(done.stdout)["shapes"].keys() == {"forda"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bench", "train", "--model", "stak"), "Did you mean 'stack'"),
        (("bench", "infer", "--model", "stack"), "go with bench train"),
        (("bench", "train", "--model", "stack", "--map", "hadamard"), "has no W"),
    ],
)
def test_options_that_do_not_go_together(qornn_command, words, message):
    done = qornn_command(*words, check=False)
    assert done.returncode
    assert message in " ".join(done.stderr.split())
