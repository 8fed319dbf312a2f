"""Lowering: from a trained network to integers that do the same."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

import qornn
from qornn.errors import ProgramError, SettingsError
from qornn.integer.inputs import Codes
from qornn.integer.readout import IntReadout
from qornn.integer.requant import Table, Thresholds
from qornn.lowering.calibrate import calibrate
from qornn.lowering.inputs import raw_input
from qornn.lowering.lower import lower
from qornn.lowering.score import score
from qornn.model import OrthogonalRNN
from qornn.quant import IdentityOffset, Uniform
from qornn.tasks import Batch, make_task

generator = torch.Generator().manual_seed(0)


def network(n_i=2, n_h=16, n_o=3, *, seed=0, **options):
    options = {"bits": 5, **options}
    return OrthogonalRNN(n_i, n_h, n_o, generator=torch.Generator().manual_seed(seed), **options)


def signals(n=40, T=25, channels=2, seed=1):
    return torch.randn(n, T, channels, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits") / "run"
    return qornn.train("digits", bits=4, out=folder, settings=["train.epochs=8", "model.n_h=48"], quiet=True)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["paper", "per-row"])
@pytest.mark.parametrize("activation", ["relu", "modrelu", "identity"])
@pytest.mark.parametrize("readout", ["last", "all"])
def test_integers_do_what_the_floats_do(scheme, activation, readout):
    model, x = network(activation=activation, readout=readout), signals()
    program = lower(model, x, scheme=scheme, activation_bits=16, input_bits=16, quiet=True)
    with torch.no_grad():
        want = model(x)[0].numpy()
    got = program.run(program.input.from_floats(x.numpy()))
    # 16-bit states and inputs: what is left is their rounding, carried along 25 steps.
    assert np.abs(got - want).max() < 2e-3 * np.abs(want).max()


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("bits_U", [2, 5, 8])
def test_trained_and_deployed_weights_are_the_same(bits, bits_U):
    model = network(bits=bits, bits_U=bits_U)
    program = lower(model, signals(), quiet=True)
    with torch.no_grad():
        W_q, U_q = (m.double().numpy() for m in (model.recurrence.W_q(), model.recurrence.U_q()))
    assert np.array_equal(np.float32(program.W.integers * (program.W.alpha / 2 ** (bits - 1))), np.float32(W_q))
    assert np.array_equal(np.float32(program.U.integers * (program.U.alpha / 2 ** (bits_U - 1))), np.float32(U_q))


@pytest.mark.parametrize("k_a", [6, 12, 16])
def test_in_the_paper_s_scheme_alpha_W_alpha_h_is_the_least_power_of_two(k_a):
    model, x = network(), signals()
    seen = calibrate(model, x, quiet=True)
    program = lower(model, x, scheme="paper", activation_bits=k_a, calibration=seen, quiet=True)
    product = float(program.W.alpha) * program.state.alpha
    m = program.provenance["lowering"]["m"]
    assert product == pytest.approx(2.0**m, rel=1e-15)  # alpha_h itself is rounded to a float
    needed = Fraction(float(program.W.alpha)) * Fraction(seen.max_h)
    needed *= Fraction(program.provenance["lowering"]["lambda"])
    assert Fraction(2) ** (m - 1) < needed <= Fraction(2) ** m


def test_the_three_forms_of_the_paper_s_requantization_agree():
    model, x = network(activation="modrelu"), signals()
    seen = calibrate(model, x, quiet=True)
    made = {
        form: lower(model, scheme="paper", requant=form, calibration=seen, quiet=True)
        for form in ("table", "thresholds", "multiplier")
    }
    assert isinstance(made["table"].requant, Table)
    assert isinstance(made["thresholds"].requant, Thresholds)
    raw = made["table"].input.from_floats(x.numpy())
    states = [qornn.simulate(p, raw)[0] for p in made.values()]
    assert all(np.array_equal(states[0], s) for s in states[1:])
    assert all(p.provenance["lowering"]["differing"] == 0 for p in made.values())


def test_negative_e_shifts_the_recurrent_sum():
    """Many input bits against few state bits."""
    model, x = network(bits=2, bits_U=8), signals()
    program = lower(model, x, scheme="paper", activation_bits=4, input_bits=16, quiet=True)
    assert program.requant.shift_W > 0
    assert program.requant.shift_U == 0


def test_per_row_states_a_bound_and_counts_what_differs():
    model = network(scale="row")
    report = lower(model, signals(), quiet=True).provenance["lowering"]
    assert 0 < report["error_bound"] < 0.01
    assert report["differing"] <= report["states"] * 4 * report["error_bound"]


def test_the_identity_offset_is_lowered():
    model, x = network(quantizer="identity-offset", init="identity", map="projunn"), signals(T=60)
    assert isinstance(model.recurrence.q_W, IdentityOffset)
    with torch.no_grad():
        model.recurrence.W_raw += 0.05 * torch.linalg.qr(torch.randn(16, 16, generator=generator))[0]
        want = model(x)[0].numpy()
    program = lower(model, x, activation_bits=16, input_bits=16, quiet=True)
    assert program.W.identity
    got = program.run(program.input.from_floats(x.numpy()))
    assert np.abs(got - want).max() < 2e-3 * np.abs(want).max()
    with pytest.raises(SettingsError, match="per-row"):
        lower(model, x, scheme="paper", quiet=True)


def test_a_percentile_narrows_the_range_and_says_what_saturates():
    model, x = network(activation="identity"), signals()
    seen = calibrate(model, x, quiet=True)
    wide = lower(model, calibration=seen, quiet=True)
    narrow = lower(model, calibration=seen, alpha_h=99, quiet=True)
    assert narrow.state.alpha < wide.state.alpha == seen.max_h
    assert 0.002 < narrow.provenance["lowering"]["saturation"] < 0.03
    assert wide.provenance["lowering"]["saturation"] < 1e-3


def test_percentiles_are_those_of_the_states():
    model, x = network(activation="identity"), signals()
    seen = calibrate(model, x, batch=7, quiet=True)
    with torch.no_grad():
        states = model.recurrence(x)[0].abs()
    assert seen.max_h == float(states.max())
    assert seen.sequences == len(x)
    ordered = states.flatten().sort().values
    for percent in (50, 99, 99.9):
        least = float(ordered[math.ceil(percent / 100 * len(ordered)) - 1])
        assert least <= seen.percentile(percent) <= least + seen.layers[0].top / 4096  # a bin


@pytest.mark.slow
def test_padding_is_no_state(digits):
    """A quarter of the states of ragged sequences must not be counted as zeros."""
    task = make_task("copy", T0=3)
    model = network(10, 8, 9)
    batch = task.batch("train", 0, 8)
    ragged = type(batch)(batch.x, batch.target, torch.full((8,), 5))
    assert calibrate(model, [ragged], quiet=True).layers[0].counts.sum() == 8 * 5 * 8


@pytest.mark.slow
def test_pixels_travel_losslessly(digits):
    program = lower(digits, quiet=True)
    assert (program.input.bits, program.input.alpha) == (6, 2.0)  # p/16 = 2·p/2^5
    assert program.input.plain
    part = make_task("digits").batch("test", 0, 50)
    raw = program.input.from_floats(part.x.numpy())
    assert np.array_equal(np.float32(raw / 16), part.x.numpy())


def test_mnist_pixels_have_nine_bits():
    from qornn.integer.inputs import make_samples

    lossless = make_samples(0, 255, 1 / 255, channels=1)
    assert (lossless.bits, lossless.alpha) == (9, pytest.approx(256 / 255))  # 255 raw steps of 1/255
    paper = make_samples(0, 255, 1 / 255, channels=1, bits=8, alpha=1.0)
    pixels = np.arange(256)[:, None]
    want = np.minimum(np.floor(pixels / 255 * 128 + 0.5), 127)
    assert np.array_equal(paper.integers(pixels), want)


def test_normalisation_travels_with_the_program():
    from qornn.integer.inputs import make_samples

    rng = np.random.default_rng(0)
    mean, std = np.array([3.0, -0.5]), np.array([0.7, 2.0])
    part = make_samples(-20000, 20000, 1e-3, channels=2, bits=14, mean=mean, std=std)
    raw = rng.integers(-20000, 20001, (100, 2))
    want = (raw * 1e-3 - mean) / std
    assert np.abs(part.integers(raw) * part.alpha / 2**13 - want).max() <= 0.51 * part.alpha / 2**13


def test_codes_need_no_scale():
    task = make_task("copy", T0=5)
    model = network(10, 12, 9, readout="all")
    program = lower(model, task.batch("train", 0, 30).x, quiet=True)
    assert program.input == Codes(size=10)
    assert program.run(task.batch("test", 0, 4).x.numpy()).shape == (4, 25, 9)


def test_digits_in_integers_are_as_good(digits):
    task = digits.task()
    for options in ({}, {"readout": "int8"}, {"scheme": "paper"}):
        program = lower(digits, quiet=True, **options)
        # 12 bits: the paper finds no loss; 300 images leave a point of noise.
        assert score(program, task, quiet=True) == pytest.approx(digits.result["value"], abs=1.0)


def test_the_whole_network_can_be_integer(digits):
    program = lower(digits, readout="int8", quiet=True)
    assert isinstance(program.readout, IntReadout)
    raw = program.input.from_floats(make_task("digits").batch("test", 0, 50).x.numpy())
    y = program.run(raw)
    assert y.dtype == np.int32
    assert np.array_equal(y.argmax(1), program.readout.values(y).argmax(1))


def test_a_program_says_where_it_comes_from(digits, tmp_path):
    program = lower(digits, quiet=True)
    assert program.provenance["recipe"]["model"]["n_h"] == 48
    assert "data_dir" not in json.dumps(program.provenance)
    program.save(tmp_path / "p.qornn")
    assert qornn.load(tmp_path / "p.qornn").provenance == program.provenance


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation_bits": 3}, "4..16"),
        ({"activation_bits": 17}, "4..16"),
        ({"scheme": "papers"}, "Did you mean 'paper'"),
        ({"requant": "table"}, 'only in scheme="paper"'),
        ({"readout": "int4"}, "int8"),
        ({"alpha_h": "most"}, "percentile"),
        ({"alpha_h": 0.0}, "percentile"),
        ({"input_bits": 1}, "2..16"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        lower(network(), signals(), quiet=True, **options)


def test_networks_that_cannot_be_lowered():
    x = signals()
    with pytest.raises(SettingsError, match="full-precision"):
        lower(network(bits=None), x)
    with pytest.raises(SettingsError, match="calibration data"):
        lower(network())
    with pytest.raises(SettingsError, match="OrthogonalRNN"):
        lower(torch.nn.Linear(1, 1), x)
    with pytest.raises(SettingsError, match="no calibration data"):
        lower(network(), [])
    broken = network()
    broken.V.data[0, 0] = math.nan
    with pytest.raises(SettingsError, match="V holds NaN"):
        lower(broken, x)
    silent = network()
    silent.recurrence.U_raw.data.zero_()
    with pytest.raises(SettingsError, match="all zeros"):
        lower(silent, x)


def test_a_run_never_trained_has_nothing_to_lower(tmp_path):
    (tmp_path / "recipe.toml").write_text(qornn.recipe.resolve("digits").to_toml())
    with pytest.raises(qornn.QornnError, match="no trained weights"):
        qornn.load(tmp_path)


def test_an_accumulator_that_could_overflow_is_refused():
    model = network(1, 600, 2, bits=8, map="free")
    model.recurrence.q_W = _Coarse(8)
    with pytest.raises(ProgramError, match=r"the 32-bit accumulator holds at most.*fewer activation bits"):
        lower(model, signals(channels=1), activation_bits=16, quiet=True)


class _Coarse(Uniform):
    """Every weight at an end of the grid: 600·127·32767 is past 2^31."""

    def to_int(self, W):
        integers, alpha = super().to_int(W)
        return torch.where(integers >= 0, 127.0, -128.0), alpha / 1000


def test_lower_and_calibrate_are_public_functions():
    from qornn.lowering import calibrate as room

    assert callable(qornn.lower)
    assert room.calibrate is qornn.calibrate


def test_normalised_floats_find_their_raw_samples():
    """A network trained on (scale·raw − mean)/std: its floats, the raw samples behind them, and the program agree."""
    from qornn.integer.inputs import make_samples

    rng = np.random.default_rng(0)
    raw = rng.integers(-2000, 2000, (40, 25, 2))
    mean, std = np.array([0.3, -0.1]), np.array([0.5, 2.0])
    x = (raw * 1e-3 - mean) / std
    part = make_samples(-2000, 1999, 1e-3, channels=2, bits=14, mean=mean, std=std)
    assert np.abs(part.from_floats(x) - raw).max() <= 1  # the offset is a whole number
    model = network()
    program = lower(model, torch.tensor(x).float(), input=part, activation_bits=16, quiet=True)
    with torch.no_grad():
        want = model(torch.tensor(x).float())[0].numpy()
    assert np.abs(program.run(raw) - want).max() < 5e-3 * np.abs(want).max()
    assert program.provenance["lowering"]["saturation"] < 0.01


def test_calibration_takes_as_many_sequences_as_asked(digits):
    assert calibrate(digits, sequences=10, quiet=True).sequences == 20  # of training and of validation
    assert calibrate(network(), signals(), sequences=33, quiet=True).sequences == 33
    assert calibrate(network(), [signals(), signals()], sequences=50, quiet=True).sequences == 50
    with pytest.raises(SettingsError, match="at least 1"):
        calibrate(network(), signals(), sequences=-1)


def test_the_report_says_what_alpha_h_is(digits):
    report = lower(digits, alpha_h=99.9, quiet=True).provenance["lowering"]
    assert report["alpha_h_rule"] == 99.9
    assert report["percentiles"]["99.9"] == report["alpha_h"]
    assert report["checked_sequences"] >= 64


def test_the_report_says_how_long_sequences_are_if_all_are_equally_long():
    def steps(data):
        return lower(network(), data, quiet=True).provenance["lowering"]["steps"]

    padded = Batch(signals(), torch.zeros(40), torch.full((40,), 9))
    assert steps(signals(T=25)) == 25
    assert steps([padded]) == 9
    assert steps([signals(T=25), signals(T=24)]) is None
    assert steps([padded, signals(T=25)]) is None


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan])
def test_an_input_scale_must_be_positive(alpha):
    with pytest.raises(SettingsError, match="input_alpha"):
        lower(network(), signals(), input_alpha=alpha, quiet=True)


@pytest.mark.slow
def test_pixels_trained_on_few_bits_are_lowered_on_as_many(tmp_path):
    """Also where the centre makes a task round black to below black."""
    settings = ["train.epochs=1", "model.n_h=16", "task.limit=64", "task.centre=5", "task.input_bits=3"]
    run = qornn.train("digits", bits=4, out=tmp_path / "run", settings=settings, quiet=True)
    task, program = run.task(), lower(run, quiet=True)
    assert program.input.bits == 3
    whole = make_task("digits", centre=5)
    for few, many in zip(task.batches("test", 100), whole.batches("test", 100), strict=True):
        assert (program.run(raw_input(program, few)) == program.run(raw_input(program, many))).all()
    assert lower(run, input_bits=3, quiet=True).input.bits == 3
    for options in ({"input_bits": 4}, {"input_alpha": 1.0}):
        with pytest.raises(SettingsError, match=r"trained on inputs of 3 bits \(task\.input_bits\)"):
            lower(run, quiet=True, **options)
