"""A readout trained again on integer states: better on them, and nothing else touched."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from single import changed

import qornn
from qornn.errors import SettingsError
from qornn.integer.readout import FloatReadout
from qornn.lowering.inputs import raw_input
from qornn.lowering.lower import lower
from qornn.lowering.refit import _reader, refit
from qornn.lowering.score import score
from qornn.model import OrthogonalRNN


@pytest.fixture(scope="module")
def run(tmp_path_factory, tiny):
    folder = tmp_path_factory.mktemp("refit") / "run"
    return qornn.train("copy", bits=5, out=folder, settings=[*tiny, "train.lr=3e-3", "train.steps=40"], quiet=True)


@pytest.fixture(scope="module")
def coarse(run):
    return lower(run, activation_bits=5, quiet=True)


@pytest.mark.slow
def test_the_readout_learns_to_read_coarse_states(run, coarse):
    task = run.task()
    again = refit(coarse, task, 100, start=1000, quiet=True)
    assert score(again, task, quiet=True) < 0.98 * score(coarse, task, quiet=True)
    assert isinstance(again.readout, FloatReadout)
    assert again.readout.scale == coarse.readout.scale
    assert (again.W.integers == coarse.W.integers).all()
    assert (again.U.integers == coarse.U.integers).all()
    assert again.state == coarse.state
    assert not np.array_equal(again.readout.V, coarse.readout.V)
    assert not np.array_equal(again.readout.b_o, coarse.readout.b_o)


@pytest.mark.slow
def test_what_it_trains_on_is_what_the_program_puts_out(run, coarse, monkeypatch):
    """The loss of the first batch is that of the program as it was: the states are read as V reads them."""
    task = run.task()
    part = next(task.batches("train", 64, seed=3, start=5))
    y = torch.from_numpy(coarse.run(coarse.input.from_floats(part.x.numpy())))
    want, losses, loss = float(task.loss(y, part)), [], type(task).loss

    def kept(self, y, batch):
        losses.append(loss(self, y, batch))
        return losses[-1]

    monkeypatch.setattr(type(task), "loss", kept)
    refit(coarse, task, 2, seed=3, start=5, quiet=True)
    assert losses[0].item() == pytest.approx(want, rel=1e-5)
    assert len(losses) == 2


@pytest.mark.slow
def test_lowering_can_refit_and_says_so(run):
    plain, again = (lower(run, activation_bits=5, refit=steps, quiet=True) for steps in (0, 20))
    assert plain.provenance["lowering"]["refit"] == 0
    assert again.provenance["lowering"]["refit"] == 20
    known = refit(plain, run.task(), 20, seed=run.recipe.train.seed, start=run.result["steps"], quiet=True)
    assert np.array_equal(known.readout.V, again.readout.V)
    assert not np.array_equal(plain.readout.V, again.readout.V)


def test_every_state_and_the_last_one_are_read_alike(run, coarse):
    """Where every step is read out the states are taken as they are; a readout by the identity is the same."""
    part = next(run.task().batches("train", 8))
    for readout in (coarse.readout, replace(coarse.readout, relu=True)):
        program = replace(coarse, readout=readout)
        eye = replace(readout, V=np.eye(program.n_h), b_o=np.zeros(program.n_h))
        want = changed(program, readout=eye).run(raw_input(program, part))
        assert np.array_equal(_reader(program, readout)(part).numpy(), want)
        last = changed(program, steps="last")
        assert np.array_equal(_reader(last, last.readout)(part).numpy(), want[:, -1])


def test_it_trains_where_gradients_are_off(coarse, run):
    with torch.inference_mode():
        again = refit(coarse.with_provenance(metric={"value": 1}), run.task(), np.int64(2), quiet=True)
    assert not np.array_equal(again.readout.V, coarse.readout.V)
    assert "metric" not in again.provenance
    assert again.provenance["lowering"]["refit"] == 2
    json.dumps(again.provenance)


def test_refit_of_what_has_no_floats_or_no_data(run):
    with pytest.raises(SettingsError, match="refit trains a float readout, and this one has integers"):
        refit(lower(run, readout="int8", quiet=True), run.task(), 5)
    with pytest.raises(SettingsError, match="steps must be a whole number of at least 1, got 0"):
        refit(lower(run, quiet=True), run.task(), 0)
    model, x = OrthogonalRNN(2, 8, 2, bits=4), torch.randn(4, 5, 2)
    for source, options in ((run, {"readout": "int8"}), (model, {"data": x})):  # before anything is calibrated
        with pytest.raises(SettingsError, match="lower a run, not a module alone, and with readout='float'"):
            lower(source, refit=5, quiet=True, **options)
    with pytest.raises(SettingsError, match="refit must be a whole number of at least 0, got -1"):
        lower(run, refit=-1, quiet=True)
