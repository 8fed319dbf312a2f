"""How stacks of rotations are trained: windows, copies of few sequences, comparisons and the cycle."""

import re

import numpy as np
import pytest
from estimator_waves import labels, waves
from small_stacks import tiny, values

from qornn.estimators import stacked
from qornn.estimators.designs import design_of
from qornn.estimators.lesson import Lesson
from qornn.estimators.windows import windows_of_stack
from qornn.tasks.arrays import Sequences

FINEST = [(1, 1), (24, 1), (140, 1), (250, 1), (251, 2), (427, 2), (500, 2), (501, 3), (720, 3), (753, 4), (1500, 6)]
COARSEST = [(1, 1), (24, 1), (60, 1), (80, 2), (99, 3), (144, 3), (427, 8), (500, 10), (720, 12)]


def auto(length):
    return windows_of_stack("auto", Sequences(np.zeros((3, length, 2)), None))


@pytest.mark.parametrize(("length", "window"), FINEST)
def test_the_fine_window_leaves_100_to_250_steps(length, window):
    assert auto(length)[-1] == window
    assert length <= 250 or 100 <= length // window <= 250


@pytest.mark.parametrize(("length", "window"), COARSEST)
def test_the_coarse_window_leaves_30_to_60_steps(length, window):
    assert auto(length)[0] == window
    assert length <= 60 or 30 <= length // window <= 60


def test_windows_that_are_equal_are_one_choice():
    assert auto(50) == [1]
    assert windows_of_stack(7, Sequences(np.zeros((3, 500, 2)), None)) == [7]


def test_auto_goes_by_the_median_length_and_the_shortest_fills_a_step():
    lengths = np.array([700, 900, 1000])
    assert windows_of_stack("auto", Sequences(np.zeros((3, 1000, 1)), lengths)) == [15, 4]
    assert windows_of_stack("auto", Sequences(np.zeros((3, 1000, 1)), np.array([3, 900, 1000]))) == [3]


def test_auto_reads_no_more_than_192_numbers_per_step_of_a_stack():
    assert windows_of_stack("auto", Sequences(np.zeros((2, 18000, 6)), None)) == [32]
    assert windows_of_stack("auto", Sequences(np.zeros((2, 400, 100)), None)) == [1]
    assert windows_of_stack("auto", Sequences(np.zeros((2, 144, 963)), None)) == [1]


@pytest.mark.parametrize(
    ("n", "asked", "found"), [(3999, None, 0.3), (4000, None, 0.0), (5, 0.0, 0.0), (2000, 0.7, 0.7)]
)
def test_few_sequences_are_mixed(n, asked, found):
    assert design_of(tiny(mixup=asked)).mixup(n) == found
    assert design_of(tiny(map="bjorck", mixup=asked)).mixup(n) == (asked or 0.0)


@pytest.mark.parametrize(
    ("n", "asked", "classes", "found"),
    [
        (999, None, True, 0.03),
        (999, None, False, 0.0),
        (1000, None, True, 0.0),
        (5, 0.0, True, 0.0),
        (2000, 0.1, False, 0.1),
    ],
)
def test_few_sequences_with_classes_are_warped(n, asked, classes, found):
    assert design_of(tiny(warp=asked)).warp(n, classes=classes) == found
    assert design_of(tiny(map="bjorck", warp=asked)).warp(n, classes=classes) == (asked or 0.0)


@pytest.fixture
def taught(monkeypatch):
    """What every training of a fit was of: the design, how many sequences were held out, and their loss."""
    found, teach = [], Lesson.taught

    def watched(lesson, design, held):
        network, history = teach(lesson, design, held)
        found.append((design, int(held.sum()), history[-1].get("validation")))
        return network, history

    monkeypatch.setattr(Lesson, "taught", watched)
    return found


@pytest.mark.parametrize("make", [tiny, values])
@pytest.mark.parametrize("open_", [{"window": "auto"}, {"window": 2, "differences": "auto"}])
def test_two_are_compared_on_held_out_data_and_the_better_is_trained_on_all(make, open_, taught):
    X, f = waves(120, T=130)
    model = make(max_epochs=3, **open_).fit(X, labels(f) if make is tiny else f)
    first, second, last = taught
    held = model.held_out_.sum()
    assert 20 <= held <= 30
    assert [out for _, out, _ in taught] == [held, held, 0]
    better = min(first, second, key=lambda one: one[2])[0]
    assert first[0].describe() != second[0].describe()
    assert last[0] is better
    assert model.window_ == better.asked.window
    assert model.to_program().provenance["input"]["differences"] == better.differences
    assert "validation" not in model.history_[0]


@pytest.mark.parametrize(("n", "open_"), [(40, {"window": "auto"}), (120, {"window": 2})])
def test_where_nothing_is_open_or_little_data_could_decide_one_network_is_trained(n, open_, taught):
    X, f = waves(n, T=130)
    model = tiny(max_epochs=1, **open_).fit(X, labels(f))
    assert [held for _, held, _ in taught] == [0]
    assert not model.held_out_.any()
    assert model.window_ == {40: 3, 120: 2}[n]


@pytest.mark.parametrize(
    ("n", "batch", "epochs"), [(24, "auto", 100), (24, 12, 50), (240, "auto", 30), (24, 24, 100), (64, 64, 50)]
)
def test_a_cycle_has_30_epochs_and_as_many_steps_as_its_batches_ask_for(n, batch, epochs, monkeypatch):
    assert (stacked.EPOCHS, stacked.STEPS) == (30, (3000, 6000))
    monkeypatch.setattr(stacked, "STEPS", (50, 100))
    X, f = waves(n, T=3)
    clf = tiny(max_epochs=None, batch_size=batch).fit(X, labels(f))
    assert clf.n_iter_ == epochs


def test_steps_are_frozen_at_the_end():
    X, f = waves(40)
    model = tiny().fit(X, labels(f))._network.model
    steps = [module for module in model.modules() if type(module).__name__ == "Steps"]
    assert len(steps) == 5
    assert all(s.started and s.frozen for s in steps)
    assert not model.training


def test_verbose_numbers_the_networks_and_says_how_long_it_takes(capsys):
    X, f = waves(120, T=130)
    tiny(max_epochs=2, verbose=True).set_params(window="auto").fit(X, labels(f))
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("network")]
    assert [line[:14] for line in told] == [f"network {number} of 3" for number in (1, 2, 3)]
    assert "not warped" in told[1]
    assert re.search(r", about \d+ s more$", told[1])
    assert re.search(r"the better one on all sequences: .*, about \d+ s more$", told[2])
