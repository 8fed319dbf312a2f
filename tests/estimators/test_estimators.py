"""The estimators as scikit-learn sees them, and on the digits."""

import contextlib
import pickle
from unittest import SkipTest

import numpy as np
import pytest
import torch
from estimator_waves import labels, small, waves
from sklearn.base import clone
from sklearn.datasets import load_digits, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import check_estimator, check_regressors_train, estimator_checks_generator

from qornn import QORNNClassifier, QORNNRegressor
from qornn.errors import DivergenceError
from qornn.estimators.early_stopping import EarlyStopping
from qornn.estimators.training import held_out
from qornn.estimators.windows import window_of
from qornn.tasks.arrays import Arrays, Sequences
from qornn.verify import verify

LEARNING = ("check_classifiers_train", "check_class_weight_classifiers", "check_regressors_train")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X.astype(np.int16), y, test_size=400, random_state=0)


@pytest.fixture(scope="module")
def classifier(digits):
    X, _, y, _ = digits
    return QORNNClassifier(map="bjorck", max_epochs=30, lr=1e-2, random_state=0).fit(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # scikit-learn's own checks warn on purpose
@pytest.mark.parametrize("map_", ["bjorck", "rotations"])
@pytest.mark.parametrize("kind", [QORNNClassifier, QORNNRegressor])
def test_scikit_learn_accepts_its_form(kind, map_):
    """The checks that ask for no skill, on a network that learns next to nothing."""
    done = 0
    for estimator, check in estimator_checks_generator(kind(map=map_, n_hidden=4, max_epochs=1)):
        if check.func.__name__ not in LEARNING:
            with contextlib.suppress(SkipTest):
                check(estimator)
                done += 1
    assert done > 40


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # scikit-learn's own checks warn on purpose
@pytest.mark.parametrize("map_", ["bjorck", "rotations"])
@pytest.mark.parametrize("kind", [QORNNClassifier, QORNNRegressor])
def test_scikit_learn_accepts_it(kind, map_):
    estimator = kind(map=map_, max_epochs=100)  # of rotations; single layers have as many by default
    done = check_estimator(estimator, on_skip=None, on_fail="raise")
    assert len(done) > 40
    assert not any(check["expected_to_fail"] for check in done)
    tags = estimator.__sklearn_tags__()
    kind = tags.classifier_tags or tags.regressor_tags
    assert not kind.poor_score
    assert not tags.non_deterministic


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_hidden", [4, 8, 16])
def test_scikit_learn_accepts_small_regressors(n_hidden):
    check_regressors_train("QORNNRegressor", QORNNRegressor(map="bjorck", n_hidden=n_hidden, max_epochs=100))


@pytest.mark.full
@pytest.mark.parametrize("n_hidden", [4, 8, 16])
def test_small_regressors_learn_from_any_seed(n_hidden):
    """The data of scikit-learn's check: one of ten values tells y, five steps before the end."""
    X, y = make_regression(200, 10, n_informative=1, bias=5.0, noise=20, random_state=42)
    X, y = scale(X), scale(y)
    model = QORNNRegressor(map="bjorck", n_hidden=n_hidden, max_epochs=100)
    assert min(clone(model).set_params(random_state=seed).fit(X, y).score(X, y) for seed in range(20)) > 0.5


@pytest.mark.slow
def test_digits_are_read_pixel_by_pixel(digits, classifier):
    _, X, _, y = digits
    assert classifier.score(X, y) > 0.85


@pytest.mark.slow
def test_integers_agree_with_floats(digits, classifier):
    X = digits[1]
    assert np.mean(classifier.predict(X, integer=True) == classifier.predict(X)) > 0.97
    p, q = classifier.predict_proba(X), classifier.predict_proba(X, integer=True)
    assert np.abs(p - q).mean() < 0.02  # 12-bit states
    assert np.allclose(q.sum(1), 1)  # float64


@pytest.mark.slow
def test_the_program_reads_raw_integers(digits, classifier):
    X = digits[1]
    program = classifier.to_program()
    assert program is classifier.to_program()
    raw = classifier.to_raw(X)
    assert raw.shape == (400, 32, 2)  # 64 pixels, two per step
    assert (raw.reshape(400, 64) == X).all()
    answers = classifier.classes_[program.run(raw).argmax(1)]
    assert (answers == classifier.predict(X, integer=True)).all()
    assert program.provenance["classes"] == [str(c) for c in range(10)]


@pytest.mark.slow
def test_calibration_data_may_be_given(digits, classifier):
    X = digits[1]
    other = classifier.to_program(calibration=X[:50])
    assert other.provenance["lowering"]["sequences"] == 50
    assert other is not classifier.to_program()


@pytest.mark.slow
def test_exported_c_is_exact(classifier, tmp_path):
    folder = classifier.export_c(tmp_path / "digits", name="digits")
    assert (folder / "src" / "digits" / "digits.c").is_file()
    assert verify(folder).exact is True


@pytest.mark.slow
def test_a_pickle_answers_the_same(digits, classifier):
    X = digits[1][:50]
    copy = pickle.loads(pickle.dumps(classifier))
    assert (copy.predict_proba(X) == classifier.predict_proba(X)).all()
    assert (copy.predict(X, integer=True) == classifier.predict(X, integer=True)).all()


@pytest.mark.slow
@pytest.mark.parametrize("integer", [False, True])
def test_a_stream_answers_like_predict_on_every_prefix(digits, classifier, integer):
    series = digits[1][3]
    stream = classifier.stream(integer=integer)
    answers = [stream.step(sample) for sample in series]
    prefixes = [series[: t + 1] for t in range(1, len(series))]  # a step is two samples
    assert answers[1:] == classifier.predict(prefixes, integer=integer).tolist()
    nothing = classifier.classes_[classifier._network.model.b_o.argmax()]
    assert answers[0] == nothing
    stream.reset()
    assert stream.step(series[0]) == answers[0]


@pytest.mark.parametrize("integer", [False, True])
def test_a_stream_stays_what_it_was_when_the_estimator_is_fitted_anew(integer):
    X, f = waves(40)
    clf = small(max_epochs=3, window=2).fit(X, labels(f))
    series = X[0].tolist()
    stream, other = clf.stream(integer=integer), clf.stream(integer=integer)
    before = [other.step(sample) for sample in series]
    clf.set_params(window=5).fit(np.concatenate([X, X], 2), np.arange(40) % 3 + 10)  # two channels, three classes
    assert [stream.step(sample) for sample in series] == before
    stream.reset()
    assert [stream.step(sample) for sample in series] == before


@pytest.mark.parametrize("fault", ["settings", "training", "interrupt"])
def test_a_second_fit_that_fails_leaves_the_first(fault, monkeypatch):
    X, f = waves(40)
    clf = small(max_epochs=2).fit(X, labels(f))
    known, before = {**vars(clf)}, clf.predict_proba(X)
    settings = {"settings": {"validation_fraction": 2}, "training": {"lr": 1e30, "map": "free", "bits": None}}
    clf.set_params(**settings.get(fault, {}))
    if fault == "interrupt":

        def stopped(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(EarlyStopping, "_record", stopped)
    with pytest.raises((ValueError, DivergenceError, KeyboardInterrupt)):
        clf.fit(np.concatenate([X, X], 2), np.arange(40) % 3)
    clf.set_params(**{name: known[name] for name in settings.get(fault, {})})
    assert vars(clf).keys() == known.keys()
    assert all(vars(clf)[name] is known[name] for name in known)
    assert (clf.predict_proba(X) == before).all()


def test_a_window_is_the_samples_of_one_step():
    X, f = waves(40)
    y = labels(f)
    by_two = small(max_epochs=3, window=2, noise=0, lr=5e-3).fit(X, y)
    T = X.shape[1] // 2 * 2
    pairs = X[:, :T].reshape(len(X), T // 2, 2)
    in_channels = small(max_epochs=3, window=1, noise=0, lr=5e-3).fit(pairs, y)
    assert by_two.window_ == 2
    assert len(by_two.mean_) == 1
    difference = by_two.predict_proba(X) - in_channels.predict_proba(pairs)
    assert np.abs(difference).max() < 0.05  # but for means and deviations of odd and even samples


def test_a_program_normalises_each_channel_once():
    X, f = waves(40)
    wide = np.concatenate([X, 100 * X], 2)
    program = small(max_epochs=2, window=4).fit(wide, labels(f)).to_program()
    assert (program.n_i, program.input.window, len(program.input.offset)) == (8, 4, 2)
    assert program.input.stored_bytes == 18
    assert len(program.provenance["input"]["raw_scale"]) == 8
    floats = wide[:3].reshape(3, -1, 8)
    raw = np.rint(floats / program.provenance["input"]["raw_scale"])
    assert (program.input.from_floats(floats) == raw).all()


@pytest.mark.parametrize(
    ("length", "window"), [(5, 1), (31, 1), (64, 2), (127, 1), (128, 4), (140, 4), (500, 10), (1000, 25)]
)
def test_auto_leaves_at_least_32_steps_and_drops_no_sample(length, window):
    assert window_of("auto", Sequences(np.zeros((3, length, 2)), None), 64) == window


@pytest.mark.parametrize(("n_hidden", "window"), [(1000, 25), (64, 25), (32, 50), (8, 250), (4, 500), (1, 1000)])
def test_auto_leaves_small_networks_two_units_per_step(n_hidden, window):
    assert window_of("auto", Sequences(np.zeros((3, 1000, 1)), None), n_hidden) == window


def test_auto_goes_by_the_shortest_sequence():
    assert window_of("auto", Sequences(np.zeros((2, 900, 1)), np.array([131, 900])), 64) == 4


def test_a_sequence_shorter_than_a_window_is_refused():
    X, f = waves(40)
    with pytest.raises(ValueError, match="sequence 0 has 20 samples, less than one step of window=21"):
        small(window=21).fit(X[:, :20], labels(f))
    clf = small(max_epochs=1, window=4).fit(X, labels(f))
    with pytest.raises(ValueError, match="sequence 1 has 3 samples, less than one step of window=4"):
        clf.predict([X[0, :8], X[1, :3]])


def test_noise_is_added_in_training_alone_and_drawn_anew():
    x = Sequences(np.zeros((8, 5, 1), np.float32), None)
    task = Arrays(
        sequences={"train": x, "validation": x}, targets=dict.fromkeys(("train", "validation"), np.zeros(8)), noise=0.5
    )
    first, again, next_ = (task.batch("train", i, 4, seed=3).x for i in (0, 0, 1))
    assert (first == again).all()
    assert not (first == next_).any()
    assert 0.2 < float(first.std()) < 0.8
    assert not task.batch("validation", 0, 4, seed=3).x.any()


def test_numbers_of_numpy_are_numbers():
    X, f = waves()
    plain = small(max_epochs=2, bits=3, n_hidden=8).fit(X, labels(f))
    drawn = small(max_epochs=np.int64(2), bits=np.int64(3), n_hidden=np.int64(8)).fit(X, labels(f))
    assert (plain.predict_proba(X) == drawn.predict_proba(X)).all()


@pytest.mark.slow
def test_states_may_be_given_other_bits_after_training(digits, classifier):
    other = pickle.loads(pickle.dumps(classifier)).set_params(activation_bits=8)
    assert other.to_program().state.bits == other.to_program(digits[0]).state.bits == 8


def test_bits_are_searched(digits):
    X, _, y, _ = digits
    search = GridSearchCV(small(max_epochs=2), {"bits": [3, 4]}, cv=2).fit(X[:200], y[:200])
    assert search.best_params_["bits"] in (3, 4)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_score_weighs_samples():
    X, f = waves()
    clf = small(max_epochs=3).fit(X, labels(f))
    right = clf.predict(X) == labels(f)
    assert clf.score(X, labels(f), sample_weight=np.where(right, 3.0, 0.0)) == 1


@pytest.mark.slow
def test_class_weight_moves_the_answers():
    random = np.random.default_rng(0)
    X = random.normal(0, 1, (200, 5))
    y = np.where(random.random(200) < 0.15, "rare", "common")  # nothing to see: the prior decides
    X[y == "rare"] += 0.4
    plain = small(max_epochs=15).fit(X, y).predict(X)
    balanced = small(max_epochs=15, class_weight="balanced").fit(X, y).predict(X)
    told = small(max_epochs=15, class_weight={"rare": 1000, "common": 1e-3}).fit(X, y).predict(X)
    assert np.mean(plain == "rare") < np.mean(balanced == "rare") < np.mean(told == "rare")


def test_a_seed_decides_everything_and_no_global_generator_is_used():
    X, f = waves()
    np.random.seed(5)  # noqa: NPY002  # the global generator is what is watched
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    first = small(max_epochs=3, map="projunn").fit(X, labels(f)).predict_proba(X)
    torch.manual_seed(99)
    torch.set_rng_state(before[1])
    second = small(max_epochs=3, map="projunn").fit(X, labels(f)).predict_proba(X)
    assert (first == second).all()
    assert (before[0] == np.random.get_state()[1]).all()  # noqa: NPY002
    assert torch.equal(before[1], torch.get_rng_state())
    assert (first != small(max_epochs=3, map="projunn", random_state=1).fit(X, labels(f)).predict_proba(X)).any()


def test_pipeline_clone_and_cross_validation():
    X, f = waves(80)
    line = make_pipeline(StandardScaler(), small(max_epochs=5))
    assert np.isfinite(cross_val_score(clone(line), X[:, :, 0], labels(f), cv=2)).all()


def test_training_stops_early_and_keeps_the_best_epoch():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 6)), random.integers(0, 2, 300)  # nothing to learn
    clf = small(max_epochs=100, patience=4).fit(X, y)
    losses = [epoch["validation"] for epoch in clf.history_]
    assert clf.n_iter_ == len(losses) < 100
    assert int(np.argmin(losses)) < len(losses) - 1
    held = held_out(y, 0.1, clf.random_state, stratify=True)
    loss = log_loss(y[held], clf.predict_proba(X[held]))
    assert loss == pytest.approx(min(losses), rel=1e-5)  # trained in float32, predicted in float64
    assert loss != pytest.approx(losses[-1], rel=1e-5)


def test_too_few_sequences_are_not_held_out():
    X, f = waves(40)
    clf = small(max_epochs=3).fit(X, labels(f))
    assert all("validation" not in epoch for epoch in clf.history_)


def test_verbose_says_a_line_an_epoch_on_standard_error(capsys):
    X, f = waves(20)
    small(max_epochs=2, verbose=True).fit(X, labels(f))
    shown = capsys.readouterr()
    assert shown.err.count("epoch") == 2
    assert not shown.out


def test_full_precision_has_no_integers():
    X, f = waves()
    clf = small(bits=None, max_epochs=2).fit(X, labels(f))
    with pytest.raises(ValueError, match="fit with bits=2"):
        clf.to_program()


def test_divergence_is_said_in_the_estimators_words():
    X, f = waves()
    with pytest.raises(DivergenceError, match=r"smaller lr"):
        small(lr=1e30, map="free", bits=None).fit(X, labels(f))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bits": 12}, "bits"),
        ({"map": "bjork"}, "Did you mean 'bjorck'"),
        ({"validation_fraction": 1.5}, "validation_fraction"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"random_state": -1}, "random_state"),
        ({"activation_bits": 40}, "activation_bits"),
        ({"class_weight": {"slow": 0, "fast": 1}}, "class_weight of 'slow' is 0; weights must be positive"),
    ],
)
def test_bad_settings_are_refused_in_fit(settings, words):
    X, f = waves(20)
    with pytest.raises(ValueError, match=words):
        small(**settings).fit(X, labels(f))


def test_a_fit_that_failed_is_not_fitted():
    clf = small()
    with pytest.raises(ValueError, match="one class only"):
        clf.fit(np.ones((4, 5)), np.zeros(4))
    for ask in (clf.predict, clf.to_program, clf.to_raw):
        with pytest.raises(NotFittedError):
            ask(np.ones((4, 5)))
