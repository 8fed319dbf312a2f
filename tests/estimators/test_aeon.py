"""The estimators for aeon, by its own checks."""

import numpy as np
import pytest

pytest.importorskip("aeon")

from aeon.testing.estimator_checking import check_estimator

from qornn.errors import SettingsError
from qornn.estimators import aeon, classifier

QUICK = {"n_hidden": 4, "max_epochs": 2, "random_state": 0}
X = np.random.default_rng(0).standard_normal((12, 3, 20))
Y = np.array(["a", "b"] * 6)


def test_channels_come_before_steps():
    ours = classifier.QORNNClassifier(**QUICK).fit(X.transpose(0, 2, 1), Y)
    theirs = aeon.QORNNClassifier(**QUICK).fit(X, Y)
    assert theirs.estimator_.n_channels_ == 3
    np.testing.assert_array_equal(theirs.predict_proba(X), ours.predict_proba(X.transpose(0, 2, 1)))


def test_lengths_may_differ():
    parts = [x[:, : 10 + n % 7] for n, x in enumerate(X)]
    assert aeon.QORNNClassifier(**QUICK).fit(parts, Y).predict(parts).shape == (12,)
    assert aeon.QORNNRegressor(**QUICK).fit(parts, np.arange(12.0)).predict(parts).shape == (12,)


def test_parameters_are_those_of_the_scikit_learn_estimator():
    assert aeon.QORNNClassifier().get_params() == classifier.QORNNClassifier().get_params()
    with pytest.raises(TypeError, match="hidden"):
        aeon.QORNNClassifier(hidden=3)
    with pytest.raises(SettingsError):
        aeon.QORNNClassifier(lr=-1).fit(X, Y)


@pytest.mark.parametrize("estimator", [aeon.QORNNClassifier, aeon.QORNNRegressor])
def test_missing_samples_are_held_if_asked(estimator):
    x, y = X.copy(), Y if estimator is aeon.QORNNClassifier else np.arange(12.0)
    x[2, 1, 5:8] = np.nan
    with pytest.raises(ValueError, match="missing values"):
        estimator(**QUICK).fit(x, y)
    assert estimator(**QUICK).set_params(missing="hold").fit(x, y).predict(x).shape == (12,)


def late(n, steps, at, seed):
    """Series of noise; from step `at` on, those of class "b" rise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 0.3, (n, 1, steps))
    x[1::2, 0, at:] += 2
    return x, np.array(["a", "b"] * (n // 2))


@pytest.fixture(scope="module")
def early():
    made = aeon.QORNNEarlyClassifier(width=8, max_epochs=30, window=2, warp=0.0, random_state=0)
    return made.fit(*late(60, 40, 4, 0))


def test_early_decisions_are_right_and_early(early):
    x, y = late(60, 40, 4, 1)
    mean, accuracy, earliness = early.score(x, y)
    assert accuracy >= 0.95
    assert earliness < 0.6
    assert mean == pytest.approx(2 * accuracy * (1 - earliness) / (accuracy + 1 - earliness))
    assert 0.5 <= early.threshold_ < 1


def test_a_decision_stands_and_comes_at_the_latest_at_the_end(early):
    x, _ = late(20, 40, 4, 2)
    whole, decided = early.predict(x)
    assert decided.all()
    early.reset_state_info()
    left = np.arange(20)
    for length in (1, 10, 20, 30, 40):
        answers, decided = early.update_predict(x[left, :, :length])
        assert (answers[decided] == whole[left[decided]]).all()
        assert {*answers[~decided].tolist()} <= {"-1", -1}  # numpy makes text of it beside labels
        assert length > 1 or not decided.any()
        left = left[~decided]
        if not len(left):
            break
    assert not len(left)


def test_a_threshold_may_be_given():
    x, y = late(20, 40, 4, 0)
    bold, careful = (aeon.QORNNEarlyClassifier(**QUICK, window=1, threshold=t).fit(x, y) for t in (0.0, 1.0))
    assert bold.score(x, y)[2] == pytest.approx(2 / 40)  # the first of twenty points
    assert careful.score(x, y)[2] == pytest.approx(1)
    with pytest.raises(SettingsError, match="threshold must be in"):
        aeon.QORNNEarlyClassifier(**QUICK, threshold=2).fit(x, y)


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_aeons_own_checks_of_early_classifiers_pass():
    # aeon leaves this check out for its own early classifiers too: predict keeps what it decided, by design.
    check_estimator(
        aeon.QORNNEarlyClassifier, raise_exceptions=True, checks_to_exclude="check_non_state_changing_method"
    )


@pytest.mark.full
@pytest.mark.parametrize("estimator", [aeon.QORNNClassifier, aeon.QORNNRegressor])
@pytest.mark.filterwarnings("default")
def test_aeons_own_checks_pass(estimator):
    check_estimator(estimator, raise_exceptions=True)
