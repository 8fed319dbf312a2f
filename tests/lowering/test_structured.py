"""Lowering of structured networks: what was trained, in integers, and nothing rounded where nothing need be."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from single import changed

from qornn.errors import ProgramError, SettingsError
from qornn.integer.activations import Identity
from qornn.integer.inputs import make_samples
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.requant import PerRow
from qornn.integer.simulate import simulate
from qornn.lowering.calibrate import calibrate
from qornn.lowering.lower import lower
from qornn.model import OrthogonalRNN
from qornn.quant import Uniform

SIZES = {"hadamard": 32, "hadamard-block": 48, "cycle": 21, "delay": 150}


def network(kind, n_i=2, *, n_h=None, n_o=3, seed=0, **options):
    options = {"bits": 4, **options}
    model = OrthogonalRNN(
        n_i, n_h or SIZES[kind], n_o, map=kind, generator=torch.Generator().manual_seed(seed), **options
    )
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        model.b_o.normal_(generator=generator)
        if model.recurrence.b is not None:
            model.recurrence.b.normal_(0, 0.2, generator=generator)
    return model.eval()


def signals(n=40, T=25, channels=2, seed=1):
    return torch.randn(n, T, channels, generator=torch.Generator().manual_seed(seed))


def outputs(program, x):
    return program.readout.values(simulate(program, program.input.from_floats(x.numpy()))[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("scheme", [None, "per-row"])
@pytest.mark.parametrize("readout", ["last", "all"])
def test_integers_do_what_the_floats_do(kind, scheme, readout):
    model, x = network(kind, readout=readout), signals()
    program = lower(model, x, scheme=scheme, activation_bits=16, input_bits=14, quiet=True)
    with torch.no_grad():
        want = model(x)[0].numpy()
    # 16-bit states: what is left is their rounding, and the input's, carried along 25 steps without loss of norm.
    assert np.abs(outputs(program, x) - want).max() < 3e-3 * np.abs(want).max()
    assert program.scheme == (scheme or "paper")
    assert program.provenance["lowering"]["scheme"] == program.scheme


@pytest.mark.parametrize(("kind", "n_h"), [("hadamard", 64), ("hadamard", 32), ("hadamard-block", 64)])
def test_rounding_does_not_blow_states_up_over_a_thousand_steps(kind, n_h):
    """Halves rounded away from zero would: sums of 64 states over 8 end there often, those of 16 over 4 more often."""
    model = network(kind, n_i=6, n_h=n_h)
    x = torch.randint(1, 6, (8, 1000), generator=torch.Generator().manual_seed(0))
    x[:, 20:] = 0
    with torch.no_grad():
        model.recurrence.U_raw[:, 0] = 0
        model.recurrence.b *= 0.1
        program = lower(model, x, alpha_h="max", readout="float", quiet=True)
        want = model.recurrence(x)[1].double().numpy() / program.readout.scale
    error = simulate(program, x.numpy())[0][:, -1] - want
    # A thousand errors of 1/√12 that nothing damps are 9 units; the bias is rounded too, and always the same way.
    assert np.sqrt(np.mean(error**2)) < 20


@pytest.mark.parametrize(("kind", "biased"), [("hadamard", True), ("hadamard-block", True), ("cycle", False)])
@pytest.mark.parametrize("requant", ["multiplier", "thresholds"])
def test_an_odd_bias_keeps_sums_off_the_halves(kind, biased, requant):
    model, x = network(kind, n_h=64), signals()
    program = lower(model, x, input_bits=6, requant=requant, scheme="paper", readout="float", quiet=True)
    finer = biased and requant == "multiplier"
    assert program.requant.shift_W == int(finer)
    if finer:
        b = model.recurrence.b.detach().double().numpy() / program.readout.scale
        units = 2 / float(program.W.alpha)  # of the sums, in a state
        assert (program.activation.bias % 2 == 1).all()
        assert np.abs(program.activation.bias - units * b).max() <= 1


def test_other_sums_take_a_finer_bias():
    program = lower(network("hadamard", n_h=32), signals(), input_bits=6, quiet=True)
    assert program.requant.shift_W == 3


@pytest.mark.parametrize(("n_h", "n_i", "bits"), [(32, 300, 8), (16, 1500, 8)])
def test_sums_with_no_bits_to_spare_stay_as_they_are(n_h, n_i, bits):
    model, x = network("hadamard", n_i, n_h=n_h, bits=bits), signals(n=2, T=3, channels=n_i)
    program = lower(model, x, activation_bits=12, input_bits=16, readout="float", quiet=True)
    assert program.accumulator_bits <= 32
    assert len({*(program.activation.bias % 2)}) == 2


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("scale", ["tensor", "row"])
@pytest.mark.parametrize("bits_U", [2, 8])
def test_trained_and_deployed_weights_are_the_same(kind, scale, bits_U):
    model = network(kind, bits_U=bits_U, bits_V=5, scale=scale)
    program = lower(model, signals(), quiet=True)
    with torch.no_grad():
        layer = model.recurrence
        W, U, V = (M.double().numpy() for M in (layer.W(), layer.U_q(), model.V_q()))
    alpha_U = program.U.alpha.reshape(-1, 1) if program.U.alpha.ndim else program.U.alpha
    assert np.allclose(program.W.written_out() * float(program.W.alpha), W, rtol=0, atol=1e-6)  # a float32 product
    assert np.array_equal(np.float32(program.U.integers * (alpha_U / 2 ** (bits_U - 1))), np.float32(U))
    unit = program.readout.scale / (float(model.V.detach().abs().max()) / 16)
    assert np.array_equal(np.float32(program.readout.V * (program.readout.scale / unit)), np.float32(V))
    assert program.readout.bits == 5
    # One factor for all rows takes one scale of U.
    assert isinstance(program.requant, PerRow) == (scale == "row")


def test_a_full_precision_u_is_refused():
    with pytest.raises(SettingsError, match="full-precision weights; train it with bits"):
        lower(network("hadamard", bits=None), signals(), quiet=True)


@pytest.mark.parametrize(("n", "whole"), [(16, True), (64, True), (32, False)])
def test_of_a_power_of_four_the_factor_is_a_shift(n, whole):
    program = lower(network("hadamard", n_h=n), signals(), quiet=True)
    multiplier = program.requant.multiplier
    assert (multiplier & (multiplier - 1) == 0) == whole
    if whole:
        assert program.provenance["lowering"]["differing"] == 0


def test_the_cycle_in_integers_is_exact():
    """One-hot inputs: states are the exact states of U_q over the step, also after coming round twice."""
    model = network("cycle", 5, readout="all")
    x = torch.randint(0, 5, (20, 60), generator=torch.Generator().manual_seed(3))
    program = lower(model, x, activation_bits=12, quiet=True)
    assert program.requant.shift_W == 0
    assert program.provenance["lowering"]["differing"] == 0
    assert program.provenance["lowering"]["saturation"] == 0
    U, n = program.U.integers.astype(int), program.n_h
    unit = Fraction(float(program.U.alpha)) * 2 * Fraction(program.state.step)  # h of a unit of the state
    column = Fraction(float(program.U.alpha)) / 2 ** (program.U.bits - 1)  # U_q = column·integers
    assert (column / unit).denominator == 1
    factor = int(column / unit)
    states, _ = simulate(program, x.numpy())
    h = np.zeros((20, n), int)
    for t in range(60):
        h = np.concatenate([-h[:, -1:], h[:, :-1]], 1) + factor * U.T[x[:, t].numpy()]
        assert (states[:, t] == h).all()
    with torch.no_grad():
        floats = model.double().recurrence(x)[0].numpy()
    assert np.allclose(states * float(unit), floats, rtol=0, atol=1e-12)  # float64 sums of 60 terms


@pytest.mark.parametrize("kind", ["hadamard", "hadamard-block"])
@pytest.mark.parametrize("scheme", ["paper", "per-row"])
def test_the_bias_of_the_loop_is_carried(kind, scheme):
    model, x = network(kind), signals()
    program = lower(model, x, scheme=scheme, activation_bits=16, input_bits=14, quiet=True)
    assert isinstance(program.activation, Identity)
    b = model.recurrence.b.detach().numpy()
    per_unit = program.state.step if scheme == "per-row" else None
    if per_unit is not None:
        got = program.bias * per_unit / 2.0 ** program.requant.shift.astype(float)
        assert np.abs(got - b).max() < 1e-6  # shifts leave far more bits than a state has
    with torch.no_grad():
        model.recurrence.b.zero_()
        without = model(x)[0].numpy()
    assert np.abs(outputs(program, x) - without).max() > 0.05 * np.abs(without).max()
    report = program.provenance["lowering"]
    if scheme == "per-row":
        assert report["differing"] <= report["states"] * 4 * report["error_bound"]


def test_no_bias_where_the_network_has_none():
    for kind in ("cycle", "delay"):
        assert lower(network(kind), signals(), quiet=True).bias is None


@pytest.mark.parametrize(
    ("asked", "kind", "bits"), [(None, IntReadout, 4), ("float", FloatReadout, 0), ("int8", IntReadout, 8)]
)
def test_the_readout_is_what_was_trained_or_what_is_asked(asked, kind, bits):
    model, x = network("hadamard"), signals()
    program = lower(model, x, readout=asked, activation_bits=16, quiet=True)
    assert isinstance(program.readout, kind)
    assert getattr(program.readout, "bits", 0) == bits
    assert program.readout.relu
    with torch.no_grad():
        want = model(x)[0].numpy()
    assert np.abs(outputs(program, x) - want).max() < 2e-2 * np.abs(want).max()  # int8: V rounded once more


def test_a_float_v_stays_float():
    model = network("hadamard")
    model.q_V = None
    assert isinstance(lower(model, signals(), quiet=True).readout, FloatReadout)
    dense = OrthogonalRNN(2, 8, 3, bits=4, bits_V=3)
    assert lower(dense, signals(), quiet=True).readout.bits == 3
    assert lower(dense, signals(), quiet=True).scheme == "per-row"


def test_row_scales_of_v_are_refused_in_words():
    model = network("hadamard")
    model.q_V = Uniform(4, scale="row")
    with pytest.raises(SettingsError, match=r'V has a scale for each row.*readout="float" or "int8"'):
        lower(model, signals(), quiet=True)
    assert lower(model, signals(), readout="float", quiet=True).n_o == 3


@pytest.mark.parametrize("scheme", [None, "per-row"])
@pytest.mark.parametrize("readout", [None, "float", "int8"])
@pytest.mark.parametrize("kind", ["cycle", "hadamard"])
def test_a_mixed_last_state_is_carried(kind, readout, scheme):
    model, x = network(kind, n_h=32, mix=True), signals()
    program = lower(model, x, scheme=scheme, readout=readout, activation_bits=14, input_bits=14, quiet=True)
    assert program.readout.mix
    with torch.no_grad():
        want = model.double()(x.double())[0].numpy()
    assert np.abs(outputs(program, x) - want).max() < (2e-2 if readout == "int8" else 3e-3) * np.abs(want).max()
    plain = changed(program, readout=replace(program.readout, mix=False))
    assert np.abs(outputs(plain, x) - want).max() > 0.1 * np.abs(want).max()


def test_a_mixed_cycle_of_codes_is_exact():
    """Nothing is rounded but the outputs themselves, and the bias to a unit of theirs."""
    model = network("cycle", 5, n_h=16, mix=True)
    x = torch.randint(0, 5, (20, 60), generator=torch.Generator().manual_seed(3))
    program = lower(model, x, activation_bits=12, quiet=True)
    y = simulate(program, x.numpy())[1]
    with torch.no_grad():
        want = model.double()(x)[0].numpy() / program.readout.scale
    assert np.abs(y - want).max() <= 0.5 + 1e-6 * np.abs(want).max()  # the 1/√n and scales in float64


def test_narrow_states_of_the_cycle_stay_on_the_grid_of_its_inputs():
    """One great sequence would double the step, and every input would be rounded: it saturates instead."""
    model = network("cycle", 1, bits=2, n_h=64)
    x = torch.randint(0, 2, (400, 200, 1), generator=torch.Generator().manual_seed(4)) / 4
    x[7, 150:] *= 3
    with torch.no_grad():
        sums = model.recurrence(x)[0].abs().amax()
    unit = float(model.recurrence.q_U.to_int(model.recurrence.U_raw)[1]) / 2 / 4  # of U_q times a quarter
    bits = math.ceil(math.log2(float(sums) / unit)) + 1
    samples = make_samples(0, 3, 1 / 4, channels=1)
    made = {k: lower(model, x, activation_bits=k, input=samples, quiet=True) for k in (bits, bits - 1)}
    for program in made.values():
        assert program.requant.shift_W == 0  # the state's step is no coarser than the input's
    wide, narrow = (made[k].provenance["lowering"] for k in (bits, bits - 1))
    assert wide["alpha_h_rule"] == "max"
    assert wide["saturation"] == 0
    assert narrow["alpha_h_rule"] == 99.99
    assert 0 < narrow["saturation"] < 1e-3
    coarse = lower(model, x, activation_bits=bits - 1, alpha_h="max", input=samples, quiet=True)
    assert coarse.requant.shift_W > 0
    with torch.no_grad():
        want = model(x)[0].numpy()
    lost, worse = (np.abs(outputs(program, x) - want).mean() for program in (made[bits - 1], coarse))
    assert 20 * lost < worse


def test_a_mixed_state_too_wide_for_32_bits_is_refused_in_words():
    model, x = network("cycle", n_h=1024, mix=True, bits_V=8), signals()
    with pytest.raises(ProgramError, match=r"the 32-bit accumulator holds at most .* use fewer activation bits"):
        lower(model, x, activation_bits=16, quiet=True)
    program = lower(model, x, activation_bits=16, readout="float", quiet=True)
    assert program.accumulator_bits == 10 + 16  # of the transform


@pytest.mark.parametrize("kind", ["hadamard", "cycle"])
def test_clipping_narrows_the_range_and_says_what_saturates(kind):
    model, x = network(kind), signals()
    seen = calibrate(model, x, quiet=True)
    made = {clip: lower(model, calibration=seen, scheme="per-row", clip=clip, quiet=True) for clip in (1.0, 0.5)}
    assert made[1.0].state.alpha == seen.max_h
    assert made[0.5].state.alpha == 0.5 * seen.max_h
    checked = torch.cat([part.x for part in seen.batches])
    states, _ = simulate(made[0.5], made[0.5].input.from_floats(checked.numpy()))
    share = (np.abs(states) == made[0.5].state.top).mean()
    assert made[0.5].provenance["lowering"]["saturation"] == share > 0
    assert made[0.5].provenance["lowering"]["clip"] == 0.5
    assert made[1.0].provenance["lowering"]["saturation"] < share


@pytest.mark.parametrize("alpha_h", ["max", 99.99, 99.0])
@pytest.mark.parametrize("clip", [1.0, 0.9, 0.8, 0.7, 0.6])
def test_the_power_of_two_is_the_next_of_the_maximum_and_the_nearest_of_what_clips(alpha_h, clip):
    model, x = network("hadamard"), signals()
    seen = calibrate(model, x, quiet=True)
    report = lower(model, calibration=seen, alpha_h=alpha_h, clip=clip, quiet=True).provenance["lowering"]
    target = clip * (seen.max_h if alpha_h == "max" else seen.percentile(alpha_h))
    exact = math.log2(target * report["lambda"] / math.sqrt(32))
    assert report["m"] == (math.ceil(exact) if alpha_h == "max" and clip == 1 else round(exact))


@pytest.mark.parametrize("clip", [0, -0.5, 1.5, math.nan, True, "0.7"])
def test_clip_is_a_part(clip):
    with pytest.raises(SettingsError, match=r"clip is the fraction of alpha_h .* in \(0, 1\]"):
        lower(network("hadamard"), signals(), clip=clip, quiet=True)


def test_tanh_has_no_integers():
    model = OrthogonalRNN(1, 8, 2, bits=4, activation="tanh")
    with pytest.raises(SettingsError, match="tanh has no integer form"):
        lower(model, torch.rand(4, 9, 1))
