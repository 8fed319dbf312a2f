"""Parameters and weights that are not what they should be are refused in one line, before training."""

import decimal
import fractions

import numpy as np
import pytest
import torch
from estimator_waves import labels, small, waves

from qornn import QORNNRegressor
from qornn.errors import QornnError, SettingsError

X, F = waves(40)
ODD = {
    "None": None,
    "text": "abc",
    "number as text": "0.1",
    "bool": True,
    "list": [1],
    "array": np.array([1, 2]),
    "one in an array": np.array([1]),
    "nan": float("nan"),
    "inf": float("inf"),
    "negative": -1,
    "complex": 1j,
    "bytes": b"x",
    "dict": {"a": 1},
    "object": object(),
    "tensor": torch.tensor(0.01),
    "decimal": decimal.Decimal("0.01"),
    "past float": 10**400,
}
BY_MAP = (
    "n_hidden",
    "max_epochs",
    "activation_bits",
    "pairs",
    "lr",
    "validation_fraction",
    "noise",
    "mixup",
    "warp",
)  # None leaves them to the map
FINE = {(name, "None") for name in ("activation", "bits", "random_state", *BY_MAP)} | {
    (name, "past float")
    for name in ("batch_size", "patience", "max_epochs", "n_hidden")  # counts have no end
}
NAMES = (
    "lr noise mixup warp validation_fraction batch_size max_epochs patience n_hidden window bits map activation "
    "activation_bits"
)


@pytest.mark.parametrize(
    ("name", "odd"), [(n, o) for n in f"{NAMES} device random_state".split() for o in ODD if (n, o) not in FINE]
)
def test_odd_values_are_refused_in_the_estimators_words(name, odd):
    with pytest.raises(SettingsError) as error:
        small(max_epochs=1).set_params(**{name: ODD[odd]}).fit(X, labels(F))
    message = str(error.value)
    assert name in message
    assert "--" not in message
    assert "train." not in message
    assert "\n" not in message


@pytest.mark.parametrize("value", [np.float32(0.01), np.float64(0.01), fractions.Fraction(1, 100)])
def test_any_real_number_is_a_number(value):
    want = small(max_epochs=2, lr=float(value), noise=float(value)).fit(X, labels(F)).predict_proba(X)
    got = small(max_epochs=2, lr=value, noise=value, validation_fraction=value).fit(X, labels(F)).predict_proba(X)
    np.testing.assert_array_equal(got, want)


def test_the_device_may_be_torch_s_own():
    assert small(max_epochs=1, device=torch.device("cpu")).fit(X, labels(F)).predict(X).shape == (40,)


@pytest.mark.parametrize("device", ["cuda", "cuda:99", "mps"])
def test_a_device_that_is_not_there_is_refused_in_words_of_both(device):
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("it may be there")
    with pytest.raises(SettingsError, match=rf"device '{device}' is not available here; choose cpu"):
        small(max_epochs=1, device=device).fit(X, labels(F))


def test_weights_of_classes_are_finite():
    with pytest.raises(SettingsError, match="class_weight of 'slow' is inf; weights must be positive"):
        small(max_epochs=1, class_weight={"slow": float("inf"), "fast": 1}).fit(X, labels(F))


@pytest.fixture(scope="module")
def fitted():
    return (
        (small(max_epochs=1).fit(X, labels(F)), labels(F)),
        (QORNNRegressor(map="bjorck", n_hidden=8, max_epochs=1, random_state=0).fit(X, F), F),
    )


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.zeros(40), "is 0 for every sample"),
        (-np.ones(40), "-1"),
        (np.where(np.arange(40) == 3, np.nan, 1), "nan"),
        (np.full(40, np.inf), "inf"),
        (np.ones(3), r"shape \(3,\)"),
        (np.ones((40, 2)), r"shape \(40, 2\)"),
        (2.0, r"shape \(\)"),
        (["a"] * 40, "'a'"),
    ],
)
def test_weights_of_samples_that_weigh_nothing_are_refused(weight, words, fitted):
    for estimator, y in fitted:
        with pytest.raises(SettingsError, match=f"sample_weight .*{words}"):
            estimator.score(X, y, sample_weight=weight)


def test_the_size_of_weights_does_not_matter(fitted):
    weight = np.random.default_rng(0).uniform(0.5, 1, 40)
    for estimator, y in fitted:
        want = estimator.score(X, y, sample_weight=weight)
        assert estimator.score(X, y, sample_weight=weight * 1e308) == pytest.approx(want, rel=1e-12)  # float64
        assert estimator.score(X, y, sample_weight=(weight * 8).astype(int).tolist()) != want


def test_a_failure_names_no_setting_of_recipes():
    with pytest.raises(QornnError, match="lr must be a number above 0, got 0"):
        small(lr=0).fit(X, labels(F))
