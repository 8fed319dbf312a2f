"""The estimators for sktime, by its own checks."""

import numpy as np
import pytest

pytest.importorskip("sktime")

from sktime.utils.estimator_checks import check_estimator

from qornn.estimators import classifier, sktime

QUICK = {"n_hidden": 4, "max_epochs": 2, "random_state": 0}
X = np.random.default_rng(0).standard_normal((12, 3, 20))
Y = np.array(["a", "b"] * 6)


def test_channels_come_before_steps():
    ours = classifier.QORNNClassifier(**QUICK).fit(X.transpose(0, 2, 1), Y)
    theirs = sktime.QORNNClassifier(**QUICK).fit(X, Y)
    assert theirs.estimator_.n_channels_ == 3
    np.testing.assert_allclose(theirs.predict_proba(X), ours.predict_proba(X.transpose(0, 2, 1)))


def test_parameters_are_those_of_the_scikit_learn_estimator():
    assert sktime.QORNNClassifier().get_params() == classifier.QORNNClassifier().get_params()


@pytest.mark.full
@pytest.mark.parametrize("estimator", [sktime.QORNNClassifier, sktime.QORNNRegressor])
@pytest.mark.filterwarnings("default")
def test_sktimes_own_checks_pass(estimator):
    check_estimator(estimator, raise_exceptions=True)
