"""Samples until the answer stays right, against the stream of an estimator."""

import numpy as np
import pytest

from qornn import QORNNClassifier
from qornn.fit import latency
from qornn.fit.dataset import Dataset, Labelled
from qornn.fit.latency import Latency, measured, until_it_stays
from qornn.fit.problem import pose
from qornn.tasks.arrays import Sequences


@pytest.mark.parametrize(
    ("right", "steps"), [([1, 1, 1], 1), ([0, 1, 1], 2), ([1, 0, 1], 3), ([0, 0, 1], 3), ([1, 1, 0], None), ([0], None)]
)
def test_steps_until_all_that_follow_are_right(right, steps):
    assert until_it_stays(np.array(right, bool)) == steps


@pytest.fixture(scope="module", params=["bjorck", "rotations"])
def fitted(request):
    """Waves of different lengths, of which a half is tested on, and labels that training never shows."""
    random = np.random.default_rng(0)
    f, lengths = random.uniform(0.5, 3, 120), random.integers(20, 31, 120)
    x = np.sin(2 * np.pi * f[:, None] * np.arange(30) / 30)[:, :, None] + 0.3 * random.normal(size=(120, 30, 1))
    y = np.where(f < 1.5, "slow", "fast")
    y[-3:] = "odd"
    parts = [Labelled(Sequences(x[rows], lengths[rows]), y[rows]) for rows in (slice(60), slice(60, 120))]
    data = Dataset(train=parts[0], test=parts[1])
    problem = pose(data, task="auto", test_fraction=None, seed=0, choose=False)
    model = QORNNClassifier(map=request.param, n_hidden=8, max_epochs=15, lr=1e-2, window=3, random_state=0)
    return model.fit(problem.train.for_estimator(), problem.train.y), problem


def test_it_is_that_of_the_estimator_s_own_stream(fitted):
    model, problem = fitted
    stream, wanted = model.stream(integer=True), []
    for series, label in zip(problem.test.for_estimator(), problem.test.y, strict=True):
        stream.reset()
        answers = np.array([stream.step(sample) for sample in series])[2::3]  # after each window of three
        steps = until_it_stays(answers == label)
        wanted += [] if steps is None else [3 * steps]
    found = measured(model.to_program(), problem, 3)
    assert found.samples.tolist() == wanted
    assert found.sequences == 60
    right = model.predict(problem.test.for_estimator(), integer=True) == problem.test.y
    assert found.figures()["right"] == right.sum() > 30


def test_few_of_many_sequences_are_streamed(fitted, monkeypatch):
    model, problem = fitted
    monkeypatch.setattr(latency, "MOST", 7)
    assert measured(model.to_program(), problem, 3).sequences == 7
    monkeypatch.setattr(latency, "STEPS", 50)  # a sequence has ten
    assert measured(model.to_program(), problem, 3).sequences == 5


def test_percentiles_are_of_the_sequences_that_end_right():
    figures = Latency(np.arange(10, 110, 10), 20).figures()
    assert figures == {"median": 55, "p90": 91, "right": 10, "sequences": 20}
    assert Latency(np.zeros(0, np.int64), 3).figures() == {"median": None, "p90": None, "right": 0, "sequences": 3}
