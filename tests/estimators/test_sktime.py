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


@pytest.mark.parametrize("estimator", [sktime.QORNNClassifier, sktime.QORNNRegressor])
def test_missing_samples_are_held_if_asked(estimator):
    x, y = X.copy(), Y if estimator is sktime.QORNNClassifier else np.arange(12.0)
    x[2, 1, 5:8] = np.nan
    with pytest.raises(ValueError, match="missing values"):
        estimator(**QUICK).fit(x, y)
    assert estimator(**QUICK).set_params(missing="hold").fit(x, y).predict(x).shape == (12,)


def test_tables_of_instance_and_time_are_read():
    pandas = pytest.importorskip("pandas")
    index = pandas.MultiIndex.from_product([range(12), range(20)])
    table = pandas.DataFrame(X.transpose(0, 2, 1).reshape(240, 3), index=index, columns=["x", "y", "z"])
    clf = sktime.QORNNClassifier(**QUICK).fit(table, Y)
    np.testing.assert_allclose(clf.predict_proba(table), sktime.QORNNClassifier(**QUICK).fit(X, Y).predict_proba(X))
    uneven = table.drop(index=[(0, 19), (0, 18), (5, 19)])
    assert sktime.QORNNClassifier(**QUICK).fit(uneven, Y).predict(uneven).shape == (12,)


@pytest.mark.full
@pytest.mark.parametrize("estimator", [sktime.QORNNClassifier, sktime.QORNNRegressor])
@pytest.mark.filterwarnings("default")
def test_sktimes_own_checks_pass(estimator):
    check_estimator(estimator, raise_exceptions=True)
