"""Estimators whose samples are remembered: differences and missing values are those of a device."""

import numpy as np
import pytest
from estimator_waves import labels, waves
from sklearn.base import clone

from qornn import QORNNClassifier, QORNNRegressor
from qornn.errors import SettingsError
from qornn.estimators.standard import mean_and_deviation
from qornn.integer.simulate import simulate
from qornn.tasks.arrays import Sequences
from qornn.verify import verify

TINY = {"map": "rotations", "width": 5, "pairs": 4, "max_epochs": 3, "random_state": 0}
KINDS = {
    "differences": {"differences": True},
    "hold": {"missing": "hold"},
    "both": {"differences": True, "missing": "hold"},
}


def gappy(X, kind, seed=3):
    """X with a fifth of its samples missing where they are held, the first ones of some sequences among them."""
    if "missing" not in KINDS[kind]:
        return X
    rng = np.random.default_rng(seed)
    found = [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]
    for x in found[:5]:
        x[:4, 0] = np.nan
    return found if isinstance(X, list) else np.stack(found)


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    X, f = waves(channels=2)
    X = gappy(X, request.param)
    return request.param, X, QORNNClassifier(**TINY, **KINDS[request.param], window=2).fit(X, labels(f))


def test_integers_give_the_same(fitted):
    """Also of sequences of other lengths, and one channel of which is missing throughout."""
    kind, X, clf = fitted
    others = gappy(waves(lengths=True, channels=2, seed=1)[0], kind, seed=4)
    if "missing" in KINDS[kind]:
        others[7][:, 1] = np.nan
    for given in (X, others):
        assert (clf._outputs(given, False) == clf._outputs(given, True)).all()
        assert (clf.predict(given) == clf.predict(given, integer=True)).all()


def test_training_sees_what_the_device_computes(fitted):
    _, X, clf = fitted
    program, network = clf.to_program(), clf._network
    raw = clf.to_raw(X)
    assert raw.shape == (60, 10, 4)
    assert program.n_i == network.model.layers[0].n_i == (8 if program.input.differences else 4)
    step = program.input.alpha / 2 ** (program.input.bits - 1)
    states = np.zeros((60, program.input.n_state), np.int64)
    seen = network.inputs(Sequences(X.reshape(60, 10, 4), None)).x
    for t in range(10):
        states, x = program.input.step(states, raw[:, t])
        assert (seen[:, t] == x * step).all()
    assert (program.run(raw) == simulate(program, raw)[1]).all()


@pytest.mark.parametrize("integer", [False, True])
def test_a_stream_is_a_prediction(fitted, integer):
    _, X, clf = fitted
    stream = clf.stream(integer=integer)
    for x, want in zip(X[:3], clf.predict(X[:3]), strict=True):
        stream.reset()
        for sample in x:
            answer = stream.step(sample)
        assert answer == want


def test_a_stream_refuses_what_is_not_held(fitted):
    kind, _, clf = fitted
    stream = clf.stream()
    with pytest.raises(SettingsError, match="2 finite numbers"):
        stream.step([0.0, np.inf])
    if "missing" not in KINDS[kind]:
        with pytest.raises(SettingsError, match="2 finite numbers"):
            stream.step([0.0, np.nan])


def test_the_program_says_so(fitted):
    kind, _, clf = fitted
    program = clf.to_program()
    said = {"differences": False, "missing": "refuse", **KINDS[kind]}
    assert {name: program.provenance["input"][name] for name in said} == said
    assert {name: program.provenance["estimator"][name] for name in said} == said
    assert (program.input.differences, program.input.hold) == (said["differences"], said["missing"] == "hold")


def test_the_c_is_exact(fitted, tmp_path):
    assert verify(fitted[2].export_c(tmp_path / "c", name="net")).exact


@pytest.mark.parametrize("kind", KINDS)
def test_values_too(kind):
    X, f = waves()
    X = gappy(X, kind)
    made = QORNNRegressor(**TINY, **KINDS[kind]).fit(X, f)
    want = made.predict(X)
    np.testing.assert_allclose(made.predict(X, integer=True), want, rtol=1e-6)  # a device answers in float32
    for integer in (False, True):
        stream = made.stream(integer=integer)
        for sample in X[0]:
            answer = stream.step(sample)
        np.testing.assert_allclose(answer, want[0], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_at_full_precision_a_stream_is_a_prediction(kind):
    X, f = waves(channels=2)
    X = gappy(X, kind)
    clf = QORNNClassifier(**TINY, **KINDS[kind], bits=None).fit(X, labels(f))
    stream = clf.stream()
    answers = [[stream.step(sample) for sample in x][-1] for x in X[:1]]
    assert answers == clf.predict(X[:1]).tolist()


def test_differences_show_small_changes_beside_a_large_level():
    """The level varies by 1,000, and what tells the classes apart are changes of less than 3."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(0, 1000, (200, 1, 1)) + rng.normal(size=(200, 40, 1)) * np.where(y, 2.0, 0.25)[:, None, None]
    settings = {**TINY, "max_epochs": 60, "window": 1}
    scores = [
        QORNNClassifier(**settings, differences=which).fit(X[:120], y[:120]).score(X[120:], y[120:])
        for which in (False, True)
    ]
    assert scores[0] < 0.75
    assert scores[1] > 0.95


def test_missing_values_are_refused_with_a_way_out():
    X, f = waves(channels=2)
    X[4, 3, 1] = np.nan
    with pytest.raises(SettingsError, match=r"NaN, first at sequence 4, step 3, channel 1; .*missing='hold'"):
        QORNNClassifier(**TINY).fit(X, labels(f))
    X[4, 3, 1], X[9, 0, 0] = np.inf, np.nan
    with pytest.raises(SettingsError, match=r"infinity \(inf\), first at sequence 4, step 3, channel 1"):
        QORNNClassifier(**TINY, missing="hold").fit(X, labels(f))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"map": "bjorck", "differences": True},
            r"differences=True is only for map='rotations'.*leave differences out",
        ),
        ({"map": "bjorck", "missing": "hold"}, r"missing='hold' is only for map='rotations'.*leave missing out"),
        ({"map": "rotations", "differences": 1}, "differences must be True, False or 'auto', got 1"),
        ({"map": "rotations", "missing": "fill"}, "missing must be 'refuse' or 'hold', got 'fill'"),
    ],
)
def test_what_cannot_be_is_refused(settings, why):
    X, f = waves()
    with pytest.raises(SettingsError, match=why):
        QORNNClassifier(**settings).fit(X, labels(f))


def test_scikit_learn_is_told():
    made = clone(QORNNClassifier(map="rotations", missing="hold", differences=True))
    assert made.get_params()["differences"] is True
    assert made.__sklearn_tags__().input_tags.allow_nan
    assert not QORNNClassifier().__sklearn_tags__().input_tags.allow_nan


def test_statistics_leave_out_what_is_missing():
    samples = np.array([[1.0, np.nan, 5.0], [np.nan, np.nan, 6.0], [3.0, np.nan, 7.0]])
    mean, std = mean_and_deviation(samples)
    assert mean.tolist() == [2.0, 0.0, 6.0]
    np.testing.assert_allclose(std, [1.0, 0.0, np.sqrt(2 / 3)], rtol=1e-15)  # a sum of squares is rounded


def test_a_sample_that_was_int16_min_is_no_gap():
    """Raw integers of a device that reach −32768 are clipped by one, not taken as missing."""
    X, f = waves()
    X = (X * 20000).round().astype(np.int16)
    X[0, 5] = -(2**15)
    clf = QORNNClassifier(**TINY, missing="hold").fit(X, labels(f))
    assert clf.to_raw(X)[0].min() == -(2**15) + 1
    assert (clf.predict(X) == clf.predict(X, integer=True)).all()
