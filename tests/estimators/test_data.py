"""Data as the estimators meet it: lengths, channels, types and labels of every kind, and what is refused."""

import numpy as np
import pytest
import torch
from estimator_waves import labels, small, waves

from qornn import QORNNRegressor


@pytest.mark.slow
def test_sequences_of_different_lengths():
    X, f = waves(120, lengths=True, channels=2)
    clf = small(n_hidden=32, max_epochs=80).fit(X, labels(f))
    assert clf.score(X, labels(f)) > 0.9
    assert (clf.predict(X[:7]) == clf.predict(X)[:7]).all()  # padding changes nothing
    assert np.mean(clf.predict(X, integer=True) == clf.predict(X)) > 0.97
    raw = clf.to_raw(X)
    assert [part.shape for part in raw] == [sequence.shape for sequence in X]  # too short for a wider window
    single = clf.to_program().run(raw[4][None])[0]
    assert clf.classes_[single.argmax()] == clf.predict(X[4:5], integer=True)[0]


def test_a_list_is_an_array_with_its_padding_left_out():
    X, f = waves()
    by_array, by_list = small(max_epochs=3).fit(X, labels(f)), small(max_epochs=3).fit(list(X), labels(f))
    assert (by_array.predict_proba(X) == by_list.predict_proba(list(X))).all()


def test_channels_of_very_different_sizes_keep_their_resolution():
    X, f = waves(120)
    wide = np.concatenate([X * 1e-3, np.random.default_rng(1).normal(0, 1e4, X.shape)], axis=2)
    clf = small().fit(wide, labels(f))
    assert np.mean(clf.predict(wide, integer=True) == clf.predict(wide)) > 0.97
    scale = clf.to_program().provenance["input"]["raw_scale"]
    assert scale[1] / scale[0] > 1e5


def test_a_channel_far_from_zero_is_reported():
    X, f = waves()
    clf = small(max_epochs=2).fit(X + 1e6, labels(f))
    with pytest.warns(UserWarning, match="subtract a constant"):
        clf.to_program()


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.0, 1e-9, -101325.0])
@pytest.mark.filterwarnings("error::UserWarning")  # nothing varies there: nothing is coarse
def test_a_constant_channel_changes_no_answer(value):
    X, f = waves(120)
    wide = np.concatenate([X, np.full_like(X, value)], axis=2)
    clf = small().fit(wide, labels(f))
    assert np.mean(clf.predict(wide, integer=True) == clf.predict(wide)) > 0.97
    raw = clf.to_raw(wide)
    assert (raw[:, :, 1] == raw[0, 0, 1]).all()
    part = clf.to_program().input
    assert np.abs(part.alpha * part.integers(raw[0])[:, 1] / 2 ** (part.bits - 1)).max() < 1e-3  # as in training: 0


@pytest.mark.slow
def test_values_come_in_their_own_units():
    X, f = waves(150)
    y = 1000 + 50 * f
    model = QORNNRegressor(map="bjorck", n_hidden=24, max_epochs=60, lr=1e-2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert np.abs(model.predict(X, integer=True) - model.predict(X)).mean() < 2  # of a range of 100
    assert model.to_program().run(model.to_raw(X)).mean() == pytest.approx(y.mean(), rel=0.01)
    stream = model.stream()
    assert [stream.step(sample) for sample in X[0]][-1] == pytest.approx(model.predict(X[:1])[0], rel=1e-9)  # float64


def test_values_that_hardly_differ_are_reported():
    X, f = waves()
    model = QORNNRegressor(map="bjorck", n_hidden=8, max_epochs=2, random_state=0).fit(X, f + 1e9)
    with pytest.warns(UserWarning, match="subtract a constant from y"):
        model.to_program()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble, np.int8, np.uint16, ">f8", object])
def test_samples_may_be_of_any_type(kind):
    X, f = waves()
    X = (50 + 40 * X).astype(kind)
    clf = small(max_epochs=3).fit(X, labels(f))
    assert (clf.predict(X) == clf.predict(list(X))).all()
    assert clf.predict(X, integer=True).shape == (60,)


def test_tensors_are_arrays():
    X, f = waves()
    clf, by_tensor = (small(max_epochs=3).fit(x, labels(f)) for x in (X, torch.from_numpy(X)))
    parts = [torch.from_numpy(series) for series in X]
    assert (clf.predict_proba(X) == by_tensor.predict_proba(parts)).all()


@pytest.mark.parametrize(
    ("slow", "fast"), [(True, False), (1, "fast"), ("slow", b"fast"), (2.5, "fast"), (("a", 1), ("a", 2))]
)
def test_labels_may_be_of_any_kind(slow, fast):
    X, f = waves()
    y = np.empty(len(f), object)
    y[:] = [slow if value < 1.5 else fast for value in f]
    clf = small(max_epochs=3).fit(X, y)
    assert set(clf.classes_) == {slow, fast}
    plain = small(max_epochs=3).fit(X, np.array([clf.classes_.tolist().index(label) for label in y]))
    assert (clf.predict_proba(X) == plain.predict_proba(X)).all()
    answers = clf.predict(X)
    assert clf.score(X, y) == np.mean([answer == label for answer, label in zip(answers, y, strict=True)])


def broken(X, place, value):
    X = X.copy()
    X[place] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (broken(np.ones((4, 5)), (2, 3), np.nan), "abab", "NaN, first at row 2, column 3"),
        (broken(np.ones((4, 5, 2)), (1, 3, 1), np.inf), "abab", "infinity.*sequence 1, step 3, channel 1"),
        (np.ones((4, 5)), "aaaa", "one class only"),
        ([np.ones((3, 2)), np.ones((4, 3))], "ab", "sequence 0 has 2, sequence 1 has 3"),
        ([], "", "empty"),
        (np.ones((0, 5, 2)), "", "empty"),
        ([np.ones(3), np.ones(0)], "ab", "sequence 1 must be"),
        (np.array([[1e300, 1.0], [-1e300, 2.0]]), "ab", "rescale X"),
        (np.ones((4, 5)), "aba", "4 sequences but y has 3"),
        (np.ones((4, 5)), ["a", None, "b", "b"], "y holds None at row 1"),
        (np.ones((4, 5)), ["a", "b", np.nan, "b"], "y holds nan at row 2"),
        (np.ones((4, 5, 2, 1)), "abab", r"\(4, 5, 2, 1\); give \(N, T\), \(N, T, C\)"),
    ],
)
def test_bad_data_is_refused_in_words(X, y, words):
    with pytest.raises(ValueError, match=words):
        small().fit(X, np.array(list(y), object if isinstance(y, list) else str))


def test_other_channels_are_refused_in_predict():
    X, f = waves(channels=2)
    clf = small(max_epochs=2).fit(X, labels(f))
    with pytest.raises(ValueError, match="X has 3 channels, but QORNNClassifier was fitted on 2"):
        clf.predict(np.ones((1, 5, 3)))
    with pytest.raises(ValueError, match="2 finite numbers"):
        clf.stream().step([1.0, 2.0, 3.0])


@pytest.mark.parametrize("value", [5.0, 0.0, -3.5e6, 1e-300, 0.1])
@pytest.mark.parametrize("map", ["bjorck", "hadamard"])
def test_a_value_that_never_varies_is_answered_exactly(value, map):
    X, _ = waves(30)
    reg = QORNNRegressor(n_hidden=16, max_epochs=2, random_state=0, map=map).fit(X, np.full(30, value))
    assert (reg.predict(X * 3) == value).all()
    assert reg.stream().step(X[0, 0]) == value
    assert (reg.predict(X, integer=True) == np.float32(value)).all()  # as a device answers
    assert reg.score(X, np.full(30, value)) == 1


@pytest.mark.parametrize("power", [-1000, -530, -100, 100, 990])
def test_values_and_samples_of_any_size_are_learned_alike(power):
    X, f = waves(60)
    settings = {"n_hidden": 16, "max_epochs": 3, "random_state": 0}
    plain = QORNNRegressor(map="bjorck", **settings).fit(X, f).predict(X)
    values = QORNNRegressor(map="bjorck", **settings).fit(X, np.ldexp(f, power)).predict(X)
    np.testing.assert_array_equal(values, np.ldexp(plain, power))  # powers of two round nothing
    X = np.ldexp(X, min(power, 500))  # larger samples are refused
    answers = QORNNRegressor(map="bjorck", **settings).fit(X, f).predict(X)
    np.testing.assert_array_equal(answers, plain)


@pytest.mark.parametrize("power", [-1000, -125])
def test_values_too_small_for_a_device_are_refused_when_lowering(power):
    X, f = waves(60)
    reg = QORNNRegressor(map="bjorck", n_hidden=16, max_epochs=3, random_state=0).fit(X, np.ldexp(f, power))
    with pytest.raises(ValueError, match=r"values vary by .*, too little for a float32 of a device; multiply y"):
        reg.to_program()


def test_values_past_float64_are_refused():
    X, f = waves(4)
    with pytest.raises(ValueError, match=r"y holds values as large as 1\.7e\+308, .* overflow float64; divide y"):
        QORNNRegressor(map="bjorck").fit(X, np.array([1.7e308, 1.7e308, 1.7e308, -1.7e308]))
    with pytest.raises(ValueError, match=r"samples as large as 1\.7e\+308 overflow float64; rescale X"):
        QORNNRegressor(map="bjorck").fit(np.where(X > -0.9, 1.7e308, -1.7e308), f)


def test_samples_so_far_from_training_that_answers_overflow_are_refused():
    X, f = waves(30)
    clf = small(max_epochs=1).fit(X * 1e-3, labels(f))
    with pytest.raises(ValueError, match=r"answers overflow float64.*1\.7e\+308"):
        clf.predict(np.where(X > 0.5, 1.7e308, X))


def test_samples_past_float64_are_refused_as_infinite():
    X, f = waves(30)
    huge = X.astype(np.longdouble) * np.longdouble("1e4000")
    if not np.isfinite(huge).all():
        pytest.skip("long double is double here")
    clf = small(max_epochs=1).fit(X, labels(f))
    with pytest.raises(ValueError, match=r"X holds infinity \(inf\)"):
        clf.predict(huge)


@pytest.mark.parametrize("listed", [False, True])
def test_masked_samples_are_missing_ones(listed):
    X, f = waves(30)
    masked = np.ma.masked_greater(X, 0.99)
    where = np.argwhere(masked.mask)[0]
    given = list(masked) if listed else masked
    clf = small(max_epochs=1).fit(np.ma.masked_greater(X, 99), labels(f))  # nothing is masked
    for ask in (clf.predict, lambda x: clf.fit(x, labels(f))):
        with pytest.raises(ValueError, match=f"X holds NaN.*{where[0]}, (step|column) {where[1]}"):
            ask(given)
