"""Every baseline behaves like our own network where they must agree, and like its own equations elsewhere."""

import json

import pytest
import torch

from qornn.baselines import BASELINES
from qornn.baselines.fast import FastGRNN, FastRNN
from qornn.errors import SettingsError
from qornn.integer.size import baseline_size
from qornn.quant import Uniform
from qornn.train.evaluate import diagnostics, quantized


def make(kind, *, n_i=2, n_h=7, n_o=3, seed=0, **options):
    return BASELINES[kind](n_i, n_h, n_o, generator=torch.Generator().manual_seed(seed), **options)


def signal(B=4, T=9, n_i=2):
    return torch.randn(B, T, n_i, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", BASELINES)
@pytest.mark.parametrize("bits", [None, 2, 8])
def test_every_parameter_learns(kind, bits):
    model = make(kind, bits=bits, readout="all")
    y, last = model(signal())
    assert (y.shape, last.shape) == ((4, 9, 3), (4, 7))
    y.square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in model.parameters())


@pytest.mark.parametrize("kind", BASELINES)
def test_weights_are_those_of_the_quantizer(kind):
    """Quantizing the stored weights and switching the quantizers off changes nothing."""
    model, x = make(kind, bits=3), signal()
    want = model(x)[0]
    names = ("cell.weight_hh_l0", "cell.weight_ih_l0", "U", "W")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in names:
                parameter.copy_(Uniform(3)(parameter))
    with quantized(model, None):
        assert torch.equal(model(x)[0], want)


@pytest.mark.parametrize("kind", BASELINES)
def test_codes_are_one_hot_vectors(kind):
    model = make(kind, n_i=5)
    codes = torch.randint(0, 5, (3, 6), generator=torch.Generator().manual_seed(0))
    assert torch.equal(model(codes)[0], model(torch.nn.functional.one_hot(codes, 5).float())[0])


@pytest.mark.parametrize("kind", BASELINES)
def test_a_shorter_sequence_ends_where_it_ends(kind):
    model, x = make(kind), signal()
    y, last = model(x, lengths=torch.tensor([9, 4, 1, 9]))
    assert torch.allclose(last[1], model(x[1:2, :4])[1][0], atol=1e-6)
    assert torch.allclose(y[2], model(x[2:3, :1])[0][0], atol=1e-6)


@pytest.mark.parametrize("kind", BASELINES)
def test_the_same_seed_gives_the_same_network(kind):
    assert all(torch.equal(a, b) for a, b in zip(make(kind).parameters(), make(kind).parameters(), strict=True))
    assert not torch.equal(make(kind).V, make(kind, seed=1).V)


@pytest.mark.parametrize("kind", BASELINES)
@pytest.mark.parametrize("bits", [None, 4])
def test_sizes_count_every_number(kind, bits):
    model = make(kind, bits=bits)
    found = baseline_size(kind, 2, 7, 3, bits=bits)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and n != "V"]
    others = sum(p.numel() for p in model.parameters()) - sum(p.numel() for p in matrices)
    alphas = 0 if bits is None else 2
    assert found.true_bytes == sum(-(-p.numel() * (bits or 32) // 8) for p in matrices) + 4 * (others + alphas)
    assert found.parameters == sum(p.numel() for p in matrices) + model.V.numel()


def test_fastrnn_is_its_equation():
    model, x = make("fastrnn").double(), signal().double()
    assert isinstance(model, FastRNN)
    h = torch.zeros(4, 7, dtype=torch.float64)
    for t in range(x.shape[1]):
        c = torch.tanh(x[:, t] @ model.W.T + h @ model.U.T + model.b)
        h = torch.sigmoid(torch.tensor(3.0)) * h + torch.sigmoid(torch.tensor(-3.0)) * c
    assert torch.allclose(model(x)[1], h)


def test_fastgrnn_is_its_equation():
    model, x = make("fastgrnn").double(), signal().double()
    assert isinstance(model, FastGRNN)
    h = torch.zeros(4, 7, dtype=torch.float64)
    for t in range(x.shape[1]):
        pre = x[:, t] @ model.W.T + h @ model.U.T
        z, c = torch.sigmoid(pre + 1), torch.tanh(pre + 1)
        h = z * h + (torch.sigmoid(torch.tensor(1.0)) * (1 - z) + torch.sigmoid(torch.tensor(-4.0))) * c
    assert torch.allclose(model(x)[1], h)


def test_states_on_16_bits_stay_close_and_few_bits_do_not():
    x = signal()
    exact = make("fastgrnn")(x)[1].detach()
    assert 0 < float((make("fastgrnn", activation_bits=16)(x)[1].detach() - exact).abs().max()) < 1e-3
    assert float((make("fastgrnn", activation_bits=4)(x)[1].detach() - exact).abs().max()) > 1e-3
    with pytest.raises(SettingsError, match="fastgrnn"):
        make("lstm", activation_bits=16)


def test_diagnostics_tell_the_largest_state():
    from qornn.tasks.base import Batch

    model, x = make("lstm"), signal()
    assert diagnostics(model, Batch(x, torch.zeros(4)))["max_h"] == float(model(x)[1].detach().abs().max())


@pytest.mark.slow
def test_the_same_path_from_the_shell(qornn_command, tiny, tmp_path):
    words = [word for s in tiny for word in ("--set", s)]
    for kind, bits in (("lstm", "fp"), ("fastgrnn", "8")):
        out = tmp_path / kind
        qornn_command("train", "copy", "--model", kind, "--bits", bits, "--steps", 4, *words, "--out", out)
        figures = json.loads(qornn_command("eval", out, "--json").stdout)
        assert figures["value"] > 0
        assert figures["integer"] is None
    found = json.loads(qornn_command("size", "pmnist", "--model", "lstm", "--bits", "fp", "--json").stdout)
    assert found["parameters"] == 4 * 170 * 171 + 1700
