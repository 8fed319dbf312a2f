"""X of other libraries: channels before steps, and tables of pandas."""

import importlib
import sys
import warnings

import numpy as np
import pytest

from qornn import QORNNClassifier, QORNNRegressor
from qornn.errors import SettingsError

QUICK = {"n_hidden": 4, "max_epochs": 2, "random_state": 0}
X = np.random.default_rng(0).standard_normal((12, 3, 20))
Y = np.array(["a", "b"] * 6)


def test_channels_that_may_be_steps_are_warned_about():
    with pytest.warns(
        UserWarning, match=r"X of shape \(12, 3, 20\) is read as .* give X\.transpose\(0, 2, 1\)"
    ) as told:
        QORNNClassifier(**QUICK).fit(X, Y)
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="X of shape"):
        QORNNRegressor(**QUICK).fit(X, np.arange(12.0))


def test_steps_before_channels_are_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QORNNClassifier(**QUICK).fit(X.transpose(0, 2, 1), Y).predict(X.transpose(0, 2, 1)[:, :1])


def test_tables_of_pandas_are_read():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X[:, 0], columns=[f"t{n}" for n in range(20)])
    answers = QORNNClassifier(**QUICK).fit(table, pandas.Series(Y)).predict_proba(table)
    np.testing.assert_array_equal(answers, QORNNClassifier(**QUICK).fit(X[:, 0], Y).predict_proba(X[:, 0]))
    parts = [pandas.DataFrame(x.T[: 10 + n % 3]) for n, x in enumerate(X)]
    arrays = [part.to_numpy() for part in parts]
    answers = QORNNClassifier(**QUICK).fit(parts, Y).predict_proba(parts)
    np.testing.assert_array_equal(answers, QORNNClassifier(**QUICK).fit(arrays, Y).predict_proba(arrays))


def test_lists_with_channels_first_are_warned_of():
    with pytest.warns(UserWarning, match=r"give X\.transpose\(0, 2, 1\)"):
        QORNNClassifier(**QUICK).fit(list(X), Y)


def test_tables_with_several_levels_are_refused():
    pandas = pytest.importorskip("pandas")
    rows = pandas.MultiIndex.from_product([range(12), range(20)])
    for table in (pandas.DataFrame(np.zeros((240, 3)), index=rows), pandas.DataFrame(np.zeros((3, 240)), columns=rows)):
        with pytest.raises(SettingsError, match="MultiIndex; give one series per row"):
            QORNNClassifier(**QUICK).fit(table, Y)


@pytest.mark.parametrize("library", ["aeon", "sktime"])
def test_without_the_library_one_line_names_the_extra(library, monkeypatch):
    for name in [library, *(name for name in sys.modules if name.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"qornn.estimators.{library}", raising=False)
    with pytest.raises(ImportError) as told:
        importlib.import_module(f"qornn.estimators.{library}")
    line = f"qornn.estimators.{library} needs {library}; `pip install 'qornn[{library}]'` brings it"
    assert (str(told.value), told.value.__cause__) == (line, None)
