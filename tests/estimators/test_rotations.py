"""The estimators with map="rotations": what is trained, predicted, streamed and exported are the same integers."""

import pickle

import numpy as np
import pytest
import torch
from estimator_waves import labels, waves
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from small_stacks import tiny, values

from qornn import QORNNClassifier, QORNNRegressor
from qornn.errors import SettingsError
from qornn.estimators.early_stopping import WholeCycle
from qornn.estimators.raw import rounded_samples
from qornn.estimators.settings import STACK
from qornn.estimators.standard import Standard
from qornn.integer.simulate import simulate
from qornn.tasks.arrays import Arrays, Sequences
from qornn.verify import verify


def outputs(estimator, X):
    """In floating point and in integers."""
    return estimator._outputs(X, False), estimator._outputs(X, True)


DATA = {
    "plain": {},
    "lengths": {"lengths": True},
    "channels": {"channels": 3},
}
KINDS = {
    "plain": {},
    "no skip": {"skip": False},
    "dropout": {"dropout": 0.2},
    "2 bits": {"bits": 2},
    "8 bits, 12-bit states": {"bits": 8, "activation_bits": 12},
    "one layer": {"layers": 1},
    "windows": {"window": 3},
    "16-bit states": {"activation_bits": 16},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
def test_predictions_are_the_integers_bit_for_bit(kind, data):
    X, f = waves(40, **DATA[data])
    X = [x * 30 + 7 for x in X] if data == "lengths" else X * 30 + 7  # not standardised yet
    clf = tiny(**KINDS[kind]).fit(X, labels(f))
    far = [x * 3 for x in X]  # saturates
    for given in (X, far):
        floating, integer = outputs(clf, given)
        assert (floating == integer).all()
        assert floating.std() > 0.01  # this is no silent network
        assert (clf.predict_proba(given) == clf.predict_proba(given, integer=True)).all()
    program = clf.to_program()
    raw = clf.to_raw(X)
    whole = [simulate(program, part[None])[1][0] for part in raw]  # the law itself
    steps = np.array([len(part) for part in raw])
    assert (program.readout.values(np.stack(whole), steps) == outputs(clf, X)[0]).all()
    assert program.input.narrow


def test_the_network_is_trained_on_what_a_device_reads(monkeypatch):
    """The task's samples, its model's inputs and the program's integers are one and the same."""
    X, f = waves(40, channels=2)
    X = np.rint(X * [1000, 20] + [300, -5]).astype(np.int16)
    seen = {}
    fit = WholeCycle.fit

    def spy(self, *args):
        seen["x"] = self.task.sequences["train"].x
        return fit(self, *args)

    monkeypatch.setattr(WholeCycle, "fit", spy)
    clf = tiny(window=2).fit(X, labels(f))
    program = clf.to_program()
    step = program.input.alpha / 2 ** (program.input.bits - 1)
    assert np.log2(step) == np.rint(np.log2(step))
    assert program.input.bits == 8
    assert (clf.to_raw(X).reshape(X.shape) == X).all()
    assert (seen["x"] == step * program.input.integers(clf.to_raw(X))).all()
    assert len(np.unique(seen["x"])) > 30
    entry = clf._network.model.entry
    assert (float(entry.step), float(entry.gain)) == (step, 1 / step)


def test_rare_outliers_are_clipped():
    X, f = waves(60, T=40)
    X = X.copy()
    X[3, 5] = 60
    clf = tiny(max_epochs=1).fit(X, labels(f))
    program = clf.to_program()
    x = program.input.integers(clf.to_raw(X))
    assert x[3, 5, 0] == 127
    assert len(np.unique(x)) > 16  # of 8 bits over everything, waves would have a handful


def test_a_channel_that_hardly_ever_changes_keeps_products_of_32_bits():
    x = np.random.default_rng(0).integers(-300, 300, (20, 50, 2)).astype(np.int16)
    x[:, :, 1] = 0
    standard = Standard(np.array([0.0, 0.0]), np.array([170.0, 1e-7]), raw=True)  # as of one 1 in 10^14 samples
    samples, step = rounded_samples(standard, Sequences(x, None), 8)
    assert samples.narrow
    assert samples.alpha == 128 * step
    assert samples.integers(np.array([[0, 0], [0, 1], [0, -1]])).tolist() == [[0, 0], [0, 127], [0, -128]]


def test_noise_is_added_before_inputs_are_rounded():
    X, f = waves(40)
    clf = tiny(max_epochs=1, noise=0.3)
    batches = []
    batch = Arrays.batch

    def spy(self, *args, **options):
        batches.append(batch(self, *args, **options))
        return batches[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Arrays, "batch", spy)
        clf.fit(X, labels(f))
    entry = clf._network.model.entry
    x = batches[0].x / entry.step
    assert (x != x.round()).any()
    assert (entry(batches[0].x) / entry.step == (x + 0.5).floor().clamp(-128, 127)).all()


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, -3e6])
def test_values_are_answered_in_their_own_units(shift):
    X, f = waves(120)
    y = shift + 50 * f
    reg = values(width=8, pairs=8, max_epochs=50, lr=1e-2).fit(X, y)
    floating, integer = reg.predict(X), reg.predict(X, integer=True)
    assert reg.score(X, y) > 0.8
    assert (integer == integer.astype(np.float32)).all()
    np.testing.assert_allclose(integer, floating, rtol=2**-23, atol=50 * 2**-23)  # float32
    program = reg.to_program()
    raw = reg.to_raw(X)
    assert (program.readout.values(program.run(raw), np.full(len(X), raw.shape[1]))[:, 0] == integer).all()
    assert program.readout.steps_max > 10_000  # an offset takes no room of the sums


@pytest.mark.parametrize("value", [5.0, 0.0, -3.5e6])
def test_a_value_that_never_varies_is_answered_exactly(value):
    X, _ = waves(30)
    reg = values(max_epochs=2).fit(X, np.full(30, value))
    assert (reg.predict(X * 3) == value).all()
    assert (reg.predict(X, integer=True) == np.float32(value)).all()
    assert reg.stream().step(X[0, 0]) == reg.stream(integer=True).step(X[0, 0]) == value


@pytest.mark.parametrize("y", [1e39, 1e-60])
def test_values_that_no_float32_holds_are_refused_when_lowering(y):
    X, f = waves(30)
    reg = values(max_epochs=2).fit(X, f * y)
    assert np.isfinite(reg.predict(X)).all()
    with pytest.raises(SettingsError, match="float32"):
        reg.to_program()


def test_values_that_hardly_differ_are_reported():
    X, f = waves(30)
    reg = values(max_epochs=2).fit(X, f + 1e9)
    with pytest.warns(UserWarning, match="subtract a constant from y"):
        reg.to_program()


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("make", [tiny, values])
def test_a_stream_answers_like_predict_on_every_prefix(make, integer):
    X, f = waves(40, channels=2)
    y = labels(f) if make is tiny else 100 + f
    model = make(window=2, max_epochs=20).fit(X, y)
    for series in X[:3]:
        stream = model.stream(integer=integer)
        answers = [stream.step(sample) for sample in series]
        prefixes = [series[: t + 1] for t in range(1, len(series))]
        np.testing.assert_array_equal(answers[1:], model.predict(prefixes, integer=integer))
        stream.reset()
        assert stream.step(series[0]) == answers[0]


@pytest.mark.parametrize("make", [tiny, values])
def test_streams_agree_before_the_first_step(make):
    X, f = waves(40)
    model = make(window=2).fit(X, labels(f) if make is tiny else 100 + f)
    floating, integer = model.stream().step(X[0, 0]), model.stream(integer=True).step(X[0, 0])
    assert floating == integer if make is tiny else integer == np.float32(floating)


@pytest.mark.slow
@pytest.mark.parametrize("make", [tiny, values])
def test_exported_c_is_exact(make, tmp_path):
    X, f = waves(40, channels=2)
    model = make(window=3, skip=True).fit(X, labels(f) if make is tiny else 1000 + f)
    folder = model.export_c(tmp_path / "c", name="net")
    assert verify(folder).exact is True
    if make is values:
        assert f"+ {model._network.shift:.9g}f" in (folder / "src/net/net.c").read_text()


def test_a_pickle_and_a_clone_answer_the_same():
    X, f = waves(40)
    clf = tiny().fit(X, labels(f))
    for copy in (pickle.loads(pickle.dumps(clf)), clone(clf).fit(X, labels(f))):
        assert (copy.predict_proba(X) == clf.predict_proba(X)).all()
        assert (copy.predict_proba(X, integer=True) == clf.predict_proba(X)).all()


def test_padding_and_company_change_nothing():
    X, f = waves(60, lengths=True)
    clf = tiny().fit(X, labels(f))
    assert (clf.predict_proba(X[:7]) == clf.predict_proba(X)[:7]).all()
    alone = np.concatenate([clf.predict_proba(X[i : i + 1]) for i in range(5)])
    assert (alone == clf.predict_proba(X)[:5]).all()


@pytest.mark.slow
def test_class_weight_moves_the_answers():
    random = np.random.default_rng(0)
    X = random.normal(0, 1, (200, 5))
    y = np.where(random.random(200) < 0.15, "rare", "common")
    X[y == "rare"] += 0.4
    plain, balanced, told = (
        np.mean(tiny(class_weight=weight).fit(X, y).predict(X) == "rare")
        for weight in (None, "balanced", {"rare": 1000, "common": 1e-3})
    )
    assert plain < balanced < told


def test_full_precision_has_no_integers():
    X, f = waves(40)
    clf = tiny(bits=None).fit(X, labels(f))
    assert (clf.predict_proba(X)[:3] == clf.predict_proba(X[:3])).all()
    stream = clf.stream()
    assert [stream.step(sample) for sample in X[0]][-1] == clf.predict(X[:1])[0]
    with pytest.raises(ValueError, match="fit with bits=2"):
        clf.to_program()


def test_a_seed_decides_everything_and_no_global_generator_is_used():
    X, f = waves(40)
    before = torch.get_rng_state()
    first = tiny().fit(X, labels(f)).predict_proba(X)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    torch.set_rng_state(before)
    assert (tiny().fit(X, labels(f)).predict_proba(X) == first).all()
    assert (tiny(random_state=1).fit(X, labels(f)).predict_proba(X) != first).any()


# Settings


def test_state_bits_are_decided_in_training():
    X, f = waves(40)
    clf = tiny(max_epochs=1).fit(X, labels(f))
    assert clf.to_program().activation_bits == 8
    assert clf.set_params(activation_bits=8).to_program().activation_bits == 8
    clf.set_params(activation_bits=12)
    for ask in (clf.to_program, lambda: clf.predict(X, integer=True), lambda: clf.stream(integer=True)):
        with pytest.raises(SettingsError, match="rounded to 8 bits in training, and activation_bits=12 was asked for"):
            ask()
    assert clf.predict(X).shape == (40,)
    assert clf.fit(X, labels(f)).to_program().activation_bits == 12


def test_n_hidden_is_width_and_pairs_in_one():
    X, f = waves(40)
    clf = QORNNClassifier(map="rotations", n_hidden=6, max_epochs=1, random_state=0).fit(X, labels(f))
    other = QORNNClassifier(map="rotations", width=6, max_epochs=1, random_state=0).fit(X, labels(f))
    mixed, turned, _ = clf.to_program().layers[:3]
    assert (mixed.output.n_i, turned.output.n_i) == (6, 12)
    assert (clf.predict_proba(X) == other.predict_proba(X)).all()
    assert len(clf.to_program().layers) == 5
    assert QORNNClassifier(map="rotations").get_params()["n_hidden"] is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"width": 0}, "width must be a whole number of at least 1"),
        ({"pairs": 2.5}, "pairs must be a whole number"),
        ({"layers": True}, "layers must be a whole number"),
        ({"layers": 32}, "layers must be at most 31, got 32"),
        ({"skip": 1}, "skip must be True or False, got 1"),
        ({"dropout": 1.0}, "dropout must be a number of at least 0 and below 1, got 1.0"),
        ({"n_hidden": 8, "width": 24, "pairs": 3}, "pairs=3 and n_hidden=8, .* leave pairs out"),
        ({"n_hidden": 8, "width": 9, "pairs": None}, "width=9 and n_hidden=8, .* leave width out"),
        ({"n_hidden": 0, "width": 24, "pairs": None}, "n_hidden must be"),
        ({"activation": "relu"}, "activation='relu' is only for a single layer"),
        ({"activation_bits": 3}, r"activation_bits must be in 4\.\.16"),
        ({"bits": 9}, r"bits must be in 2\.\.8"),
        ({"map": "rotation"}, "Did you mean 'rotations'"),
    ],
)
def test_bad_settings_are_refused_in_one_line(settings, words):
    X, f = waves(20)
    with pytest.raises(SettingsError, match=words) as error:
        tiny(**settings).fit(X, labels(f))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "other", [{"layers": 3}, {"width": 8}, {"pairs": 4}, {"skip": False}, {"skip": 1}, {"dropout": 0.1}]
)
def test_what_a_single_layer_has_not_is_refused_where_it_is_not_the_default(other):
    X, f = waves(20)
    (name,) = other
    model = QORNNClassifier(map="bjorck", max_epochs=1, n_hidden=8, random_state=0)
    with pytest.raises(SettingsError, match=f"{name}=.* is only for map='rotations'.*; leave {name} out"):
        clone(model).set_params(**other).fit(X, labels(f))
    numbers = {"layers": np.int64(2), "width": np.int32(24), "pairs": None, "skip": np.True_}
    assert clone(model).set_params(**numbers).fit(X, labels(f)).n_iter_ == 1


def test_the_defaults_of_stacks_are_said_once():
    given = QORNNClassifier().get_params()
    assert {name: given[name] for name in STACK} == STACK
    assert {name: QORNNRegressor().get_params()[name] for name in STACK} == STACK


def test_maps_are_searched_together():
    X, f = waves(40)
    grid = [{"map": ["rotations"], "width": [3, 4]}, {"map": ["bjorck"]}]
    search = GridSearchCV(QORNNClassifier(max_epochs=1, random_state=0), grid, cv=2, error_score="raise")
    assert len(search.fit(X, labels(f)).cv_results_["params"]) == 3
