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


@pytest.mark.full
@pytest.mark.parametrize("estimator", [aeon.QORNNClassifier, aeon.QORNNRegressor])
@pytest.mark.filterwarnings("default")
def test_aeons_own_checks_pass(estimator):
    check_estimator(estimator, raise_exceptions=True)
