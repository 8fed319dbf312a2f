from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from single import input_sums, preactivation, single
from strategies import nets, paper, per_row, per_row_factors, programs, random_input, round_exactly

from qornn.errors import SettingsError
from qornn.integer.activations import Identity, ModReLU, ReLU
from qornn.integer.factors import differing, make_multiplier, make_table, make_thresholds
from qornn.integer.inputs import Codes, Samples
from qornn.integer.matrices import Dense, Matrix
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.requant import PerRow
from qornn.integer.simulate import SaturationWarning, simulate
from qornn.integer.state import State
from qornn.recurrence.reference import recurrence


def half_away(x):
    """Independent of the package: nearest by floor and ceil, ties to the larger magnitude. x is not negative."""
    down = np.floor(x)
    return np.where(x - down < 0.5, down, down + 1)


def columns(net, raw):
    """x_i of every step, one-hot where the input is codes.  # (B, T, n_i) float64"""
    return np.eye(net.U.shape[1])[raw] if net.codes else raw.astype(np.float64)


def float_reference(net, raw):
    """Scheme paper: integers held in float64, multiplied by c once."""
    W, U, c = net.W.astype(np.float64), net.U.astype(np.float64), net.alpha_W / 2.0 ** (net.k - 1 + net.s)
    b = 0.0 if net.activation == "identity" else net.b_acc.astype(np.float64)
    x = columns(net, raw)
    h, states = np.zeros((len(raw), len(W))), []
    for t in range(raw.shape[1]):
        acc = 2.0**net.s * (h @ W.T) + 2.0 ** max(net.e, 0) * (x[:, t] @ U.T)
        if net.activation == "relu":
            h = np.minimum(half_away(np.maximum(acc, 0) * c), net.top)
        else:
            h = np.sign(acc) * np.minimum(half_away(np.maximum(np.abs(acc) + b, 0) * c), net.top)
        states.append(h)
    return np.stack(states, 1)


@pytest.mark.slow
@given(nets(), st.integers(0, 99))
def test_scheme_paper_equals_the_float64_reference_bit_for_bit(net, seed):
    raw = random_input(paper(net), seed)
    assert simulate(paper(net), raw)[0].tolist() == float_reference(net, raw).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("e", [-5, -2, -1, 0, 1, 4])
@pytest.mark.parametrize("activation", ["relu", "modrelu", "identity"])
def test_the_float64_reference_is_met_at_every_e_and_every_number_of_bits(activation, e):
    for k, k_U in [(2, 8), (3, 2), (4, 4), (5, 7), (6, 3), (7, 5), (8, 6)]:
        nonzero = 0

        @settings(deadline=None, max_examples=4)
        @given(nets(activation=activation, k=k, k_U=k_U, e=e, m=0, k_a=9, n_h=4, codes=False), st.integers(0, 99))
        def met(net, seed):
            nonlocal nonzero
            assert np.sign(net.e) == np.sign(e)  # shift_W > 0 where e < 0
            raw = random_input(paper(net), seed)
            states = simulate(paper(net), raw)[0]
            nonzero += np.count_nonzero(states)
            assert states.tolist() == float_reference(net, raw).tolist()

        met()
        assert nonzero


@pytest.mark.slow
@given(nets(activation="relu", largest=3), st.integers(0, 99))
def test_scheme_paper_is_the_rescaled_network_in_exact_arithmetic(net, seed):
    """The formula with c, e and s is the network (W, λU) with λ = 1/(α_i α_U) and states on the grid of α_h."""
    W = [[Fraction(net.alpha_W) * int(w) / 2 ** (net.k - 1) for w in row] for row in net.W]
    scale = Fraction(net.alpha_U) / 2 ** (net.k_U - 1) / Fraction(net.alpha_i) / Fraction(net.alpha_U)
    U = [[scale * int(u) for u in row] for row in net.U]
    step = Fraction(2) ** net.m / Fraction(net.alpha_W) / 2 ** (net.k_a - 1)  # h of one unit of h_i
    raw = random_input(paper(net), seed, B=1, T=4)
    x_i, h, want = columns(net, raw)[0], [Fraction(0)] * len(W), []
    for t in range(4):
        x = [Fraction(net.alpha_i) * int(v) / 2 ** (net.k_i - 1) for v in x_i[t]]
        z = [sum(w * v for w, v in zip(W[j] + U[j], h + x, strict=True)) for j in range(len(W))]
        h_i = [min(round_exactly(max(v, 0) / step), net.top) for v in z]
        h = [v * step for v in h_i]
        want.append(h_i)
    assert simulate(paper(net), raw)[0][0].tolist() == want


@given(nets(k_a=7), st.integers(0, 99))
def test_the_forms_of_requantization_agree(net, seed):
    thresholds = paper(net)
    raw = random_input(thresholds, seed)
    states, y = simulate(thresholds, raw)
    multiplier = paper(net, "multiplier")
    if differing(multiplier.requant, net.c, net.top)[0] == 0:
        assert simulate(multiplier, raw)[0].tolist() == states.tolist()
    if Fraction(net.top) / net.c < 2**20:
        again, y_again = simulate(paper(net, "table"), raw)
        assert again.tolist() == states.tolist()
        assert y_again.tolist() == y.tolist()


@given(nets(largest=4), st.booleans(), st.integers(0, 99))
def test_scheme_per_row_is_within_its_proved_bound_of_exact_arithmetic(net, identity, seed):
    program, errors = per_row(net, identity)
    c_W, c_U, c_b = ([Fraction(float(c)) for c in row] for row in per_row_factors(net))
    raw = random_input(program, seed, B=1, T=4)
    states = simulate(program, raw)[0][0].astype(np.int64)
    before = np.vstack([np.zeros((1, program.n_h), np.int64), states[:-1]])
    v = preactivation(program, before, input_sums(program, raw)[0])
    x = columns(net, raw)[0].astype(np.int64)
    sums_W, sums_U = before @ net.W.T, x @ net.U.T
    for t, j in np.ndindex(states.shape):
        bound, unit = Fraction(float(errors[j])), 2 ** int(program.requant.shift[j])
        z = c_W[j] * int(sums_W[t, j]) + c_U[j] * int(sums_U[t, j]) + int(before[t, j]) * identity
        assert abs(Fraction(int(v[t, j]), unit) - z) <= bound
        size = max(z if net.activation == "relu" else abs(z) + c_b[j], 0)
        sign = (z > 0) - (z < 0) if net.activation != "relu" else 1
        if states[t, j] != sign * min(round_exactly(size), net.top):
            to_tie = abs(size - int(size) - Fraction(1, 2))
            assert to_tie <= bound or (abs(z) <= bound and net.activation != "relu")


def outputs(W, U, V, b, b_o, x, activation):
    states, _ = recurrence(x, W, U, b, torch.zeros(len(x), len(W), dtype=torch.float64), None, activation)
    return states @ V.T + b_o


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100), st.sampled_from(["relu", "modrelu"]))
def test_rescaling_the_input_and_the_readout_changes_no_output(seed, factor, activation):
    """(W, U, V) and (W, λU, V/λ) agree, b scaled by λ for modReLU."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    W, U, V, b_o, x = normal(6, 6) / 2, normal(6, 2), normal(3, 6), normal(3), normal(4, 8, 2)
    b = normal(6) / 3 if activation == "modrelu" else None
    y = outputs(W, U, V, b, b_o, x, activation)
    rescaled = outputs(W, U * factor, V / factor, None if b is None else b * factor, b_o, x, activation)
    # 1e-9: eight steps of float64 round-off, with states that grow a hundredfold.
    torch.testing.assert_close(rescaled, y, rtol=1e-9, atol=1e-9)
    exact = 2.0 ** round(np.log2(factor))
    rescaled = outputs(W, U * exact, V / exact, None if b is None else b * exact, b_o, x, activation)
    assert torch.equal(rescaled, y)


@pytest.mark.slow
@given(nets(), st.integers(-6, 6), st.integers(0, 99))
def test_rescaling_by_a_power_of_two_changes_no_integer_and_no_output(net, power, seed):
    factor = 2.0**power
    other = replace(net, alpha_U=net.alpha_U * factor, b=net.b * factor, V=net.V / np.float32(factor))
    raw = random_input(paper(net), seed)
    states, y = simulate(paper(net), raw)
    again, y_again = simulate(paper(other), raw)
    assert again.tolist() == states.tolist()
    assert y_again.tolist() == y.tolist()


def by_hand(requant, activation, readout=None, identity=False):
    """Two units: k = k_U = k_i = 3, k_a = 4, so that states end at 7."""
    zero = np.zeros(1, int)
    return single(
        W=Dense(integers=[[3, -2], [1, -4]], bits=3, alpha=1.0, identity=identity),
        U=Matrix(integers=[[3], [-4]], bits=3, alpha=2.0),
        state=State(bits=4, alpha=1.0),
        input=Samples(bits=3, alpha=1.0, low=-4, high=3, offset=zero, multiplier=zero + 1, shift=zero),
        activation=activation,
        requant=requant,
        readout=readout or FloatReadout(V=[[1.0, -0.5], [0.25, 2.0]], b_o=[0.5, -1.0], scale=0.25),
    )


def states_of(program, x):
    return simulate(program, np.array(x).reshape(1, -1, 1))[0][0].tolist()


# α_W = 1, c = 1/4; m = 0, so e = 3 + 4 − 3 − 3 − 0 = 1: acc = Σ W_i h_i + 2 Σ U_i x_i.
QUARTER, AT_E_1 = Fraction(1, 4), {"shift_W": 0, "shift_U": 1}
FORMS = [make_multiplier(QUARTER, **AT_E_1), make_thresholds(QUARTER, 7, **AT_E_1), make_table(QUARTER, 7, **AT_E_1)]


@pytest.mark.parametrize("requant", FORMS, ids=["multiplier", "thresholds", "table"])
def test_two_units_by_hand_scheme_paper_relu(requant):
    want = [
        #          x   Wh          2Ux         acc           a·c
        [5, 0],  # 3   [0, 0]      [18, −24]   [18, −24]     4.5 is a tie
        [0, 7],  # −4  [15, 5]     [−24, 32]   [−9, 37]      9.25 saturates
        [0, 0],  # 1   [−14, −28]  [6, −8]     [−8, −36]
        [2, 0],  # 1   [0, 0]      [6, −8]     [6, −8]       1.5 is a tie
        [2, 1],  # 0   [6, 2]      [0, 0]      [6, 2]        1.5 and 0.5 are ties
        [1, 0],  # 0   [4, −2]     [0, 0]      [4, −2]       1
        [1, 0],  # 0   [3, 1]      [0, 0]      [3, 1]        0.75, 0.25
    ]
    program = by_hand(requant, ReLU())
    assert states_of(program, [3, -4, 1, 1, 0, 0, 0]) == want
    # α_i α_U α_h/2^(k_a−1) = 1·2·1/8 = 0.25 times V [1, 0] = [1, 0.25], plus b_o.
    y = simulate(program, np.array([[[3], [-4], [1], [1], [0], [0], [0]]]))[1]
    assert y.dtype == np.float32
    assert y.tolist() == [[0.75, -0.9375]]
    assert program.accumulator_bound == 5 * 7 + 2 * 4 * 4  # the second row: |1| + |−4|, then |−4| times 4
    assert program.accumulator_bits == 8


@pytest.mark.parametrize("requant", FORMS, ids=["multiplier", "thresholds", "table"])
def test_two_units_by_hand_scheme_paper_modrelu(requant):
    want = [
        #            x   Wh          2Ux         acc           |acc| + b     a·c
        [0, 0],  #   0   [0, 0]      [0, 0]      [0, 0]        [−2, 3]       sign(0) = 0, though b > 0
        [4, -7],  #  3   [0, 0]      [18, −24]   [18, −24]     [16, 27]      4, 6.75
        [0, 7],  #   −4  [26, 32]    [−24, 32]   [2, 64]       [0, 67]       0, 16.75 saturates
        [-2, -7],  # 1   [−14, −28]  [6, −8]     [−8, −36]     [6, 39]       1.5 is a tie, 9.75 saturates
        [2, 7],  #   0   [8, 26]     [0, 0]      [8, 26]       [6, 29]       1.5, 7.25
        [-2, -7],  # 0   [−8, −26]   [0, 0]      [−8, −26]     [6, 29]
        [0, 7],  #   −1  [8, 26]     [−6, 8]     [2, 34]       [0, 37]
    ]
    assert states_of(by_hand(requant, ModReLU(bias=[-2, 3])), [0, 3, -4, 1, 0, 0, -1]) == want


ROWS = {"M_W": [3, 5], "M_U": [8, 6], "shift": [3, 4]}


def test_two_units_by_hand_scheme_per_row_relu():
    want = [
        #          x   Wh          Ux         v = M_W Wh + M_U Ux           v/2^s
        [0, 2],  # −1  [0, 0]      [−3, 4]    [−24, 24]                     24/16 = 1.5 is a tie
        [7, 0],  # 3   [−4, −8]    [9, −12]   [−12 + 72, −40 − 72]          60/8 = 7.5 is a tie and saturates
        [0, 7],  # −4  [21, 7]     [−12, 16]  [63 − 96, 35 + 96]            131/16 = 8.2 saturates
        [0, 0],  # 1   [−14, −28]  [3, −4]    [−42 + 24, −140 − 24]
        [3, 0],  # 1   [0, 0]      [3, −4]    [24, −24]                     3
        [3, 1],  # 0   [9, 3]      [0, 0]     [27, 15]                      27/8, 15/16
        [3, 0],  # 0   [7, −1]     [0, 0]     [21, −5]                      21/8
    ]
    assert states_of(by_hand(PerRow(**ROWS), ReLU()), [-1, 3, -4, 1, 1, 0, 0]) == want


def test_two_units_by_hand_scheme_per_row_modrelu():
    want = [
        #            x   Wh          Ux         v                      |v| + B       over 2^s
        [0, 0],  #   0   [0, 0]      [0, 0]     [0, 0]                 [−4, 8]       sign(0) = 0; 8/16 would be a tie
        [-3, 2],  #  −1  [0, 0]      [−3, 4]    [−24, 24]              [20, 32]      2.5 is a tie, 2
        [-4, -4],  # 0   [−13, −11]  [0, 0]     [−39, −55]             [35, 63]      4.4, 3.9
        [7, -1],  #  3   [−4, 12]    [9, −12]   [−12 + 72, 60 − 72]    [56, 20]      7, 1.25
        [-3, 7],  #  −4  [23, 11]    [−12, 16]  [69 − 96, 55 + 96]     [23, 159]     2.9, 9.9 saturates
    ]
    assert states_of(by_hand(PerRow(**ROWS), ModReLU(bias=[-4, 8])), [0, -1, 0, 3, -4]) == want


def test_two_units_by_hand_identity_offset():
    want = [
        #            x   v = M_W Wh + M_U Ux + M_I h
        [-3, 2],  #  −1  [−24, 24]: −3, and 1.5 is a tie
        [-7, -1],  # 0   [−39 − 24, −55 + 32] = [−63, −23]: 7.9 saturates, 1.4
    ]
    requant = PerRow(**ROWS, M_I=[8, 16])
    assert states_of(by_hand(requant, Identity(), identity=True), [-1, 0]) == want


def test_two_units_by_hand_integer_readout():
    readout = IntReadout(V=[[3, -128], [127, 5]], bias=[10, -20], scale=0.5)
    x = np.array([[[3], [-4]], [[3], [0]]])
    program = by_hand(FORMS[0], ReLU(), readout)
    states, y = simulate(program, x, lengths=[2, 1])
    assert states.tolist() == [[[5, 0], [0, 7]], [[5, 0], [0, 0]]]
    assert y.dtype == np.int32
    assert y.tolist() == [[10 - 128 * 7, 35 - 20], [25, 127 * 5 - 20]]
    assert program.readout.values(y).tolist() == [[-443.0, 7.5], [12.5, 307.5]]


@given(programs(), st.integers(0, 99))
def test_a_batch_is_its_sequences_one_by_one_and_lengths_cut_them(program, seed):
    x, lengths = random_input(program, seed, B=3, T=5), [5, 1, 3]
    states, y = simulate(program, x, lengths)
    for i, n in enumerate(lengths):
        alone, y_alone = simulate(program, x[i : i + 1, :n])
        assert states[i, :n].tolist() == alone[0].tolist()
        assert not states[i, n:].any()
        assert (y[i] if program.steps == "last" else y[i, :n]).tolist() == y_alone[0].tolist()


@given(programs(), st.integers(0, 99))
def test_no_state_is_past_its_bits_and_no_sum_past_its_bound(program, seed):
    x = random_input(program, seed)
    states, _ = simulate(program, x)
    assert np.abs(states.astype(int)).max() <= program.state.top
    assert np.abs(input_sums(program, program.accept(x)[0])).max() <= program.input.sum_bound(program.U.integers).max()
    assert program.accumulator_bound < 2**31


def small(codes=False):
    net = {"activation": "relu", "k_a": 8, "n_i": 2, "k": 4, "k_U": 4, "e": 0, "m": 1}
    from strategies import random_net

    return paper(random_net(0, n_h=3, n_o=2, alphas=(1.0, 1.0, 1.0), codes=codes, **net))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((1, 2, 3), int), r"this program reads raw samples \(B, T, 2\); got shape \(1, 2, 3\), int64"),
        (np.zeros((1, 2), int), r"this program reads raw samples \(B, T, 2\); got shape \(1, 2\)"),
        (np.zeros((0, 2, 2), int), r"at least one sequence of at least one step, got shape \(0, 2, 2\)"),
        (np.zeros((1, 0, 2), int), r"at least one sequence of at least one step, got shape \(1, 0, 2\)"),
        (np.zeros(2, int), r"at least one sequence of at least one step, got shape \(2,\)"),
        (np.zeros((1, 2, 2)), r"raw integers in -64\.\.63, got float64; program\.input\.from_floats\(x\)"),
        (np.full((1, 2, 2), np.nan), "got float64"),
        (np.full((1, 2, 2), 64), r"inputs must lie in -64\.\.63, got 64\.\.64 \(4 of 4.*\); saturate=True clips"),
        (np.full((1, 2, 2), 2**63, np.uint64), r"inputs must lie in -64\.\.63, got 9223372036854775808\.\."),
    ],
)
def test_bad_samples_are_refused_in_words(x, message):
    assert (small().input.low, small().input.high) == (-64, 63)
    with pytest.raises(SettingsError, match=message):
        simulate(small(), x)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.array([[0, 2]]), r"codes must lie in 0\.\.1, got 0\.\.2"),
        (np.array([[-1, 0]]), r"codes must lie in 0\.\.1, got -1\.\.0"),
        (np.array([[0.0, 1.0]]), r"this program reads codes: integers \(B, T\) below 2; got shape \(1, 2\), float64"),
        (np.zeros((1, 2, 2), int), r"this program reads codes: .*got shape \(1, 2, 2\)"),
        (np.zeros((1, 0), int), "at least one sequence of at least one step"),
    ],
)
@pytest.mark.parametrize("saturate", [False, True])
def test_bad_codes_are_refused_in_words_even_when_asked_to_saturate(x, message, saturate):
    with pytest.raises(SettingsError, match=message):
        simulate(small(codes=True), x, saturate=saturate)


@pytest.mark.parametrize("lengths", [[0, 2], [1, 3], [1], [1.0, 2.0], [[1, 2]], [-1, 2], [True, True]])
def test_bad_lengths_are_refused_in_words(lengths):
    with pytest.raises(SettingsError, match=r"lengths must be 2 whole numbers in 1\.\.2, one per sequence; got"):
        simulate(small(), np.zeros((2, 2, 2), int), lengths)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_saturation_is_asked_for_counted_and_told(dtype):
    x = np.array([[[-65, 0], [63, 300], [-64, 64]]], dtype)
    with pytest.warns(SaturationWarning, match="3 of 6 inputs were clipped to the declared range"):
        states, y = simulate(small(), x, saturate=True)
    want, y_want = simulate(small(), x.clip(-64, 63))
    assert states.tolist() == want.tolist()
    assert y.tolist() == y_want.tolist()


@pytest.mark.parametrize(("dtype", "x"), [(np.uint8, [200, 1]), (np.uint64, [2**63, 2**64 - 1]), (np.int8, [-128, 1])])
def test_narrow_and_unsigned_inputs_are_clipped_where_they_are(dtype, x):
    clipped = [max(-64, min(63, v)) for v in x]
    count = sum(a != b for a, b in zip(x, clipped, strict=True))
    with pytest.warns(SaturationWarning, match=f"{count} of 2 inputs"):
        states, _ = simulate(small(), np.array([[x]], dtype), saturate=True)
    assert states.tolist() == simulate(small(), np.array([[clipped]]))[0].tolist()


def test_inputs_within_the_range_warn_of_nothing():
    simulate(small(), np.array([[[-64, 63]]], np.int8), saturate=True)  # warnings are errors here
    assert isinstance(small(codes=True).input, Codes)
