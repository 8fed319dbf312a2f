import math

import pytest
import torch
from torch.nn import functional as F

import qornn
from qornn.errors import SettingsError
from qornn.maps import MAPS, Bjorck, deviation
from qornn.model import ModReLU, OrthogonalRecurrence, OrthogonalRNN
from qornn.quant import QUANTIZERS, Uniform


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


OPTIONS = {"delay": {"lines": 4}, "hadamard-block": {"block": 4}}


@pytest.mark.parametrize("bits", [None, 2, 8])
@pytest.mark.parametrize("activation", ["relu", "modrelu", "identity"])
@pytest.mark.parametrize("map_", MAPS)
def test_equations_of_the_paper(map_, activation, bits):
    """h_t = σ(W_q h + U_q x), y = V h + b_o, written out with one-hot inputs and no shared code.

    With a structured map h_t = W h + U_q x + b, y = V_q relu(h) + b_o.
    """
    options = {"map": map_, "bits": bits, "activation": activation, **OPTIONS.get(map_, {})}
    model = OrthogonalRNN(3, 16, 2, **options, readout="all", generator=generator())
    layer = model.recurrence
    if layer.b is not None:
        torch.nn.init.normal_(layer.b, generator=generator(2))
    x = torch.rand(4, 5, 3, generator=generator(1))
    y, h = model(x)
    state, W_q, U_q, V_q = torch.zeros(4, 16), layer.W_q(), layer.U_q(), model.V_q()
    assert layer.map.structured == (model.readout_activation == "relu")
    for t in range(5):
        z = state @ W_q.T + x[:, t] @ U_q.T + (0 if layer.b is None else layer.b)
        state = {"relu": torch.relu, "identity": lambda z: z}.get(activation, layer.modrelu)(z)
        seen = state.relu() if layer.map.structured else state
        assert torch.allclose(y[:, t], seen @ V_q.T + model.b_o, atol=1e-5)
    assert torch.allclose(h, state, atol=1e-5)


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("scale", ["tensor", "row"])
def test_weights_lie_on_their_grid(quantizer, scale):
    layer = OrthogonalRecurrence(2, 8, bits=3, quantizer=quantizer, scale=scale, generator=generator())
    offset = torch.eye(8) if quantizer == "identity-offset" else 0
    for W in (layer.W_q() - offset, layer.U_q()):
        rows = W if scale == "row" else W.flatten()[None]
        assert all(len(row.mul(1e4).round().unique()) <= 8 for row in rows)


def test_map_and_quantizer_run_once_per_forward_pass():
    calls = []

    class Counting(Uniform.__bases__[0]):
        bits = 4

        def to_int(self, W):
            calls.append("q")
            return Uniform(4).to_int(W)

        def dequantize(self, integers, alpha):
            return Uniform(4).dequantize(integers, alpha)

    map_ = Bjorck()
    map_.register_forward_hook(lambda *_: calls.append("map"))
    OrthogonalRNN(1, 5, 2, map=map_, quantizer=Counting())(torch.rand(2, 30, 1))
    assert calls == ["map", "q"]


def test_bjorck_keeps_w_orthogonal_and_bits_none_is_full_precision():
    model = OrthogonalRNN(1, 20, 2, bits=None, generator=generator())
    assert deviation(model.recurrence.W_q()) < 1e-5
    assert model.recurrence.bits is None


def test_the_layer_is_called_like_torch_rnn():
    ours = OrthogonalRecurrence(3, 5, map="free", generator=generator())
    theirs = torch.nn.RNN(3, 5, nonlinearity="relu", bias=False, batch_first=True)
    theirs.weight_hh_l0.data, theirs.weight_ih_l0.data = ours.W_raw.data, ours.U_raw.data
    x, h0 = torch.randn(2, 7, 3, generator=generator()), torch.rand(2, 5, generator=generator())
    states, last = ours(x, h0)
    expected, expected_last = theirs(x, h0[None])
    assert torch.allclose(states, expected, atol=1e-6)
    assert torch.allclose(last, expected_last[0], atol=1e-6)


def test_layers_stack_inside_other_models():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = OrthogonalRecurrence(2, 6, bits=4)
            self.second = OrthogonalRecurrence(6, 5, map="projunn", activation="modrelu")

        def forward(self, x):
            return self.second(self.first(x)[0])[1]

    model = Two()
    model(torch.rand(3, 4, 2)).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_state_in_and_out_splits_a_sequence():
    model = OrthogonalRNN(2, 8, 3, readout="all", bits=4, activation="modrelu", generator=generator())
    x = torch.rand(2, 10, 2, generator=generator())
    whole, end = model(x)
    first, h = model(x[:, :4])
    second, h = model(x[:, 4:], h)
    assert torch.allclose(torch.cat([first, second], 1), whole, atol=1e-6)
    assert torch.allclose(h, end, atol=1e-6)


@pytest.mark.parametrize("readout", ["last", "all"])
def test_variable_lengths_give_each_sequence_its_own_answer(readout):
    model = OrthogonalRNN(1, 6, 2, readout=readout, generator=generator())
    x, lengths = torch.rand(3, 8, 1, generator=generator()), torch.tensor([8, 1, 5])
    y, h = model(x, lengths=lengths)
    for i, n in enumerate(lengths.tolist()):
        alone, h_alone = model(x[i : i + 1, :n])
        ours = y[i] if readout == "last" else y[i, :n]
        assert torch.allclose(ours, alone[0], atol=1e-6)
        assert torch.allclose(h[i], h_alone[0], atol=1e-6)


def test_codes_stand_for_one_hot_inputs():
    model = OrthogonalRNN(4, 6, 2, bits=5, generator=generator())
    codes = torch.randint(0, 4, (3, 7), generator=generator())
    assert torch.allclose(model(codes)[0], model(F.one_hot(codes, 4).float())[0], atol=1e-6)


def test_readout_activation_applies_before_v_and_never_feeds_back():
    plain = OrthogonalRNN(1, 5, 2, activation="identity", generator=generator())
    rectified = OrthogonalRNN(1, 5, 2, activation="identity", readout_activation="relu", generator=generator())
    x = torch.randn(2, 6, 1, generator=generator())
    y, h = rectified(x)
    assert torch.equal(h, plain(x)[1])
    assert torch.allclose(y, h.relu() @ rectified.V.T + rectified.b_o)


def test_initial_values_follow_the_generator_and_nothing_global():
    before = torch.random.get_rng_state()
    a, b = (OrthogonalRNN(2, 9, 3, activation="modrelu", generator=generator(5)) for _ in range(2))
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert torch.equal(before, torch.random.get_rng_state())
    assert a.recurrence.modrelu.b.abs().max() <= 0.01
    assert not a.b_o.any()


def test_bits_of_u_may_differ():
    layer = OrthogonalRecurrence(50, 4, bits=8, bits_U=2, generator=generator())
    assert len(layer.U_q().unique()) <= 4


def test_modrelu_module_is_odd_and_learns_its_bias():
    modrelu = ModReLU(3, generator=generator())
    z = torch.randn(5, 3, generator=generator())
    assert torch.equal(modrelu(-z), -modrelu(z))
    modrelu(z).sum().backward()
    assert modrelu.b.grad is not None


def test_works_in_float64():
    model = OrthogonalRNN(1, 6, 2, bits=4).double()
    y, _ = model(torch.rand(2, 3, 1, dtype=torch.float64))
    assert y.dtype == torch.float64


def test_what_stands_past_a_sequence_s_end_is_nobody_s_business():
    lengths = torch.tensor([3, 1])
    x = torch.rand(2, 3, 2, generator=generator())
    dirty = x.clone()
    dirty[1, 1:] = math.nan
    model = OrthogonalRNN(2, 4, 3, generator=generator())
    assert torch.equal(model(x, lengths=lengths)[0], model(dirty, lengths=lengths)[0])
    codes = torch.tensor([[0, 1, 1], [1, -1, 9]])
    assert model(codes, lengths=lengths)[0].isfinite().all()


def test_autocast_leaves_the_recurrence_in_full_precision():
    model = OrthogonalRNN(2, 8, 3, bits=4, generator=generator())
    x = torch.rand(2, 5, 2, generator=generator())
    expected = model(x)[1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, h = model(x)
    assert torch.equal(h, expected)


BAD = [
    ({"n_h": 4.0}, "n_h must be a whole number, got 4.0"),
    ({"bits_U": 0}, r"bits must be in 2\.\.8, got 0"),
    ({"quantizer": Uniform(6)}, "the quantizer has 6 bits and bits=4"),
    ({"map": Bjorck(), "iterations": 3}, "a map given as an object has its options already; remove iterations"),
    ({"activaton": "relu"}, "unknown keyword of OrthogonalRNN 'activaton'; .* Did you mean 'activation'"),
    ({"strenght": 0.1, "map": "penalty"}, "unknown keyword of OrthogonalRNN .* Did you mean 'strength'"),
    ({"strength": 0.1}, "unknown option of the map 'bjorck' 'strength'"),
    ({"map": ["bjorck"]}, "unknown map"),
    ({"n_h": 0}, "n_h must be at least 1, got 0"),
    ({"n_i": -1}, "n_i must be at least 1, got -1"),
    ({"n_o": 0}, "n_o must be at least 1, got 0"),
    ({"bits": 12}, r"bits must be in 2\.\.8, got 12"),
    ({"map": "bjork"}, "Did you mean 'bjorck'"),
    ({"activation": "rely"}, "Did you mean 'relu'"),
    ({"readout": "first"}, "unknown readout"),
    ({"readout_activation": "tanh"}, "unknown readout_activation"),
    ({"init": "har"}, "Did you mean 'haar'"),
    ({"init_V": "xavier"}, "Did you mean 'xavier-normal'"),
    ({"quantizer": "unifrom"}, "Did you mean 'uniform'"),
    ({"scale": "column"}, "unknown scale"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(SettingsError, match=message):
        OrthogonalRNN(**{"n_i": 1, "n_h": 4, "n_o": 2, "bits": 4} | changes)


INPUTS = [
    ([[[0.0, 1.0]]], {}, "x must be a torch tensor, got list"),
    (torch.rand(2, 3), {}, "x must be"),
    (torch.rand(2, 3, 5), {}, r"x must be \(B, T, 2\)"),
    (torch.ones(2, 3, 2, dtype=torch.int64), {}, "floating point"),
    (torch.rand(2, 0, 2), {}, "at least one step"),
    (torch.rand(0, 3, 2), {}, "at least one sequence"),
    (torch.zeros(2, 0, dtype=torch.int64), {}, "at least one step"),
    (torch.tensor([[0, 2]]), {}, r"codes must lie in 0\.\.1, got 0\.\.2"),
    (torch.tensor([[0, -1]]), {}, r"codes must lie in 0\.\.1, got -1\.\.0"),
    (torch.full((2, 3, 2), math.nan), {}, r"holds NaN, first at .* \(0, 0, 0\)"),
    (torch.full((2, 3, 2), -math.inf), {}, r"holds -inf, first at .* \(0, 0, 0\)"),
    (torch.full((2, 3, 2), 1e39, dtype=torch.float64), {}, r"holds 1e\+39, .* finite in torch.float32"),
    (torch.rand(2, 3, 2), {"h0": torch.zeros(2, 5)}, r"h0 must be \(B, n_h\) = \(2, 4\)"),
    (torch.rand(2, 3, 2), {"lengths": torch.tensor([3, 0])}, r"lengths must lie in 1\.\.3"),
    (torch.rand(2, 3, 2), {"lengths": torch.tensor([3, 4])}, r"lengths must lie in 1\.\.3"),
    (torch.rand(2, 3, 2), {"lengths": torch.tensor([3])}, "2 integers"),
]


def test_infinity_past_a_sequence_s_end_does_no_harm():
    x = torch.rand(2, 3, 2)
    model, lengths = qornn.OrthogonalRNN(2, 4, 3), torch.tensor([3, 2])
    before = model(x, lengths=lengths)[0]
    x[1, 2] = math.inf
    assert torch.equal(model(x, lengths=lengths)[0], before)


@pytest.mark.parametrize(("x", "options", "message"), INPUTS)
def test_bad_inputs_are_refused(x, options, message):
    with pytest.raises(SettingsError, match=message):
        qornn.OrthogonalRNN(2, 4, 3)(x, **options)
