import json
from dataclasses import replace

import pytest
import torch

from qornn.bench import train
from qornn.bench.builds import SHAPES, build, training_step
from qornn.errors import SettingsError

TINY = {
    "copy": replace(SHAPES["copy"], T=6, n_h=12, B=4),
    "mnist": replace(SHAPES["mnist"], T=6, n_h=12, B=4),
    "ptb": replace(SHAPES["ptb"], T=6, n_h=12, B=4),
}


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize(("peer", "activation"), [("nn_rnn", "relu"), ("autograd", "modrelu")])
def test_the_peers_compute_what_we_compute(name, peer, activation):
    """Three training steps from the same weights: the same losses, and W moves."""
    ours, theirs = (build(which, TINY[name], activation) for which in ("ours", peer))
    before = ours.recurrence.W_raw.detach().clone()
    losses = [[step() for _ in range(3)] for step in (training_step(m, TINY[name]) for m in (ours, theirs))]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)  # a weight may fall on the other side of a 5-bit tie
    assert not torch.equal(before, ours.recurrence.W_raw)


@pytest.mark.slow
def test_the_report_has_the_figures_that_are_promised(monkeypatch):
    monkeypatch.setattr(train, "SHAPES", TINY)
    monkeypatch.setattr(train, "_peak_memory", lambda *_: 1000)
    said = []
    figures = train.bench_train(repeats=1, say=said.append)
    assert figures["peak_gflops"] > 0
    wanted = {"peak_fraction", "step_vs_nn_rnn", "step_vs_autograd", "memory_vs_autograd", "epoch_minutes"}
    for found in figures["shapes"].values():
        assert wanted <= found.keys()
        assert all(found[key] is not None for key in wanted)


@pytest.mark.slow
def test_no_ratio_when_results_disagree(monkeypatch):
    monkeypatch.setattr(train, "SHAPES", TINY)
    monkeypatch.setattr(train, "_peak_memory", lambda *_: 1000)
    real = train._native
    monkeypatch.setattr(train, "_native", lambda *a: real(*a) * 1.01)  # a wrong kernel
    found = train.bench_train(["mnist"], repeats=1, say=lambda _: None)["shapes"]["mnist"]
    assert found["agrees_with_reference"] is False
    assert found["peak_fraction"] is found["step_vs_nn_rnn"] is found["step_vs_autograd"] is None


MEMORY = """
import json
from dataclasses import replace
from qornn.bench import train

train.SHAPES["mnist"] = replace(train.SHAPES["mnist"], T=200, n_h=64)  # states: 200 × 128 × 64 floats
print(json.dumps([train._memory_of_a_step("mnist", which, "modrelu") for which in ("ours", "autograd")]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not train.CLEAR_REFS.exists(), reason="needs /proc/self/clear_refs")
def test_peak_memory_is_that_of_the_steps_alone(qornn_command):
    """In a process of its own, as the benchmark does: one that freed much before needs nothing new."""
    ours, loop = json.loads(qornn_command(program=("-c", MEMORY)).stdout)
    assert 200 * 128 * 64 * 4 * 0.8 < ours < loop


def test_unknown_shape():
    with pytest.raises(SettingsError, match="Did you mean 'mnist'"):
        train.bench_train(["minst"])


def test_a_structured_map_against_the_dense_network(monkeypatch):
    monkeypatch.setattr(train, "SHAPES", TINY)
    figures = train.bench_map("hadamard", ["mnist"], repeats=1, say=lambda _: None)
    found = figures["shapes"]["mnist"]
    assert found["n_h"] == 16  # the next size that every structured map has
    assert found["step_vs_dense"] > 0
    assert set(found["step_seconds"]) == {"dense", "hadamard"}
    with pytest.raises(SettingsError, match="unknown structured map 'bjorck'"):
        train.bench_map("bjorck")
