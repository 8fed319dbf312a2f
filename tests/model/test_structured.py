"""The linear network of a structured map: no unrolling where W is fixed, and what cannot be asked of it."""

import copy
import pickle
from itertools import pairwise

import pytest
import torch

from qornn.errors import SettingsError
from qornn.model import OrthogonalRNN
from qornn.recipe import TrainSettings, resolve
from qornn.train.build import build_model, build_task
from qornn.train.evaluate import quantized
from qornn.train.optim import learning_rate, make_optimizer

FIXED = [("hadamard", {}), ("hadamard-block", {"block": 4}), ("cycle", {}), ("delay", {"lines": 4})]
LEARNED = [("hadamard", {"learn": True})]


def make(name, options, **more):
    model = OrthogonalRNN(3, 16, 2, map=name, bits=4, generator=torch.Generator().manual_seed(0), **options, **more)
    if model.recurrence.b is not None:
        torch.nn.init.normal_(model.recurrence.b, generator=torch.Generator().manual_seed(1))
    return model


def inputs(codes, T=23):
    random = torch.Generator().manual_seed(5)
    return torch.randint(3, (4, T), generator=random) if codes else torch.rand(4, T, 3, generator=random)


@pytest.mark.parametrize("codes", [True, False])
@pytest.mark.parametrize("lengths", [None, torch.tensor([23, 5, 1, 23])])
@pytest.mark.parametrize(("name", "options"), FIXED + LEARNED)
def test_the_last_state_without_unrolling(name, options, lengths, codes):
    model = make(name, options)
    x = inputs(codes)
    weights = [p for p in model.recurrence.parameters() if p.requires_grad]
    short = model.recurrence.last(x, lengths=lengths)
    long = model.recurrence(x, lengths=lengths)[1]
    torch.testing.assert_close(short, long, atol=1e-5, rtol=1e-4)
    got, wanted = (torch.autograd.grad(h.sin().sum(), weights) for h in (short, long))
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=2e-4, rtol=1e-3)
    assert model.recurrence.closed_form == ((name, options) in FIXED)


@pytest.mark.parametrize(("name", "options"), FIXED)
def test_chunks_where_steps_are_dear(name, options, monkeypatch):
    layer = make(name, options).recurrence
    x, h0 = inputs(False, T=70), torch.randn(4, 16, generator=torch.Generator().manual_seed(3))
    lengths = torch.tensor([70, 33, 1, 64])
    wanted = layer(x, h0, lengths=lengths)
    monkeypatch.setattr("qornn.model.recurrence._steps_are_dear", lambda x: True)
    monkeypatch.setattr("qornn.model.recurrence.recurrence", None)  # must not be called
    torch.testing.assert_close(layer(x, h0, lengths=lengths), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["cycle", "delay"])
@pytest.mark.parametrize("codes", [True, False])
def test_wide_shifts_without_a_gradient_take_no_product(name, codes, monkeypatch):
    layer = OrthogonalRNN(3, 512, 2, map=name, bits=4, generator=torch.Generator().manual_seed(0)).recurrence
    x = inputs(codes, T=40)
    h0, lengths = torch.randn(4, 512, generator=torch.Generator().manual_seed(3)), torch.tensor([40, 33, 1, 40])
    wanted = [[part.detach() for part in layer(x, h0, lengths=given)] for given in (None, lengths)]
    monkeypatch.setattr("qornn.model.recurrence.recurrence", None)  # must not be called
    with torch.no_grad():
        found = [layer(x, h0, lengths=given) for given in (None, lengths)]
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, tuple(b), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("name", "options"), FIXED)
def test_a_product_is_that_of_the_matrix(name, options):
    layer = make(name, options).recurrence
    h = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer.map.product(layer.W_raw)(h), h @ layer.W().mT)


def test_a_state_to_go_on_from_is_not_forgotten():
    model = make("hadamard", {})
    x = inputs(False)
    _, middle = model(x[:, :10])
    y, h = model(x[:, 10:], middle)
    torch.testing.assert_close((y, h), model(x), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("name", "options"), FIXED)
def test_what_is_fixed_is_not_trained(name, options):
    model = make(name, options)
    optimizer = make_optimizer(model, TrainSettings())
    held = [p for group in optimizer.param_groups for p in group["params"]]
    assert not any(p is model.recurrence.W_raw for p in held)
    before = model.recurrence.W_raw.clone()
    model(inputs(False))[0].square().sum().backward()
    optimizer.step()
    assert torch.equal(model.recurrence.W_raw, before)


@pytest.mark.parametrize(("name", "options"), LEARNED)
def test_what_is_learned_moves_and_stays_orthogonal(name, options):
    model = make(name, options)
    before = model.recurrence.W_raw.clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
    for _ in range(3):
        optimizer.zero_grad()
        model(inputs(False))[0].square().sum().backward()
        optimizer.step()
    assert not torch.equal(model.recurrence.W_raw, before)
    W = model.recurrence.W().detach()
    torch.testing.assert_close(W @ W.T, torch.eye(16), atol=1e-5, rtol=0)


def test_powers_follow_the_weights():
    """W_raw loaded from another run must not be read through the powers of the old one."""
    model, other = make("hadamard", {}), make("hadamard", {"seed": 7})
    x = inputs(False)
    model(x)
    model.load_state_dict(other.state_dict())
    torch.testing.assert_close(model(x), other(x))
    torch.testing.assert_close(copy.deepcopy(model).double()(x.double())[0].float(), other(x)[0], atol=1e-4, rtol=1e-3)


def test_weights_looked_at_in_inference_mode_can_still_be_trained():
    for name, options in FIXED:
        model, x = make(name, options), inputs(False)
        with torch.inference_mode():
            model(x)
        model(x)[0].sum().backward()
        assert model.recurrence.U_raw.grad is not None


def test_copies_carry_no_powers():
    model = make("cycle", {})
    model(inputs(False))
    assert model.recurrence._powers is not None
    assert copy.deepcopy(model).recurrence._powers is None
    assert pickle.loads(pickle.dumps(model)).recurrence._powers is None


def test_an_array_is_refused_in_words():
    with pytest.raises(SettingsError, match="x must be a torch tensor, got ndarray"):
        make("cycle", {})(inputs(False).numpy())


def test_quantizers_off_are_off_for_V_too():
    model = make("hadamard", {})
    with quantized(model, None):
        assert torch.equal(model.V_q(), model.V)
        assert model.recurrence.q_W is model.recurrence.q_U is None
    with quantized(model, 3):
        assert len(model.V_q().unique()) <= 8
        assert model.recurrence.q_W is None
    assert model.q_V.bits == 4


def test_noise_is_for_training_alone():
    model = make("hadamard", {}, noise=0.3)
    x = inputs(False)
    assert not torch.equal(model(x)[0], model(x)[0])
    model.eval()
    assert torch.equal(model(x)[0], model(x)[0])


def test_mix_reads_a_transform_of_the_last_state():
    model = make("cycle", {}, mix=True)
    x = inputs(False)
    y, h = model(x)
    S = make("hadamard", {}).recurrence.map(torch.ones(16))
    torch.testing.assert_close(y, (h @ S.T).relu() @ model.V_q().T + model.b_o, atol=1e-5, rtol=1e-4)


def test_inputs_reach_the_heads_of_delay_lines_alone():
    layer = make("delay", {"lines": 4}).recurrence
    reached = (layer.U_q().abs().sum(1) > 0).nonzero().flatten()
    assert reached.tolist() == layer.driven.tolist() == [0, 2, 5, 10]
    assert layer.b is None


def test_bits_are_of_U_and_V():
    model = make("hadamard", {})
    assert (model.recurrence.bits, model.q_V.bits, model.recurrence.q_W) == (4, 4, None)
    assert OrthogonalRNN(1, 8, 2, map="hadamard").q_V is None
    assert OrthogonalRNN(1, 8, 2, map="hadamard", bits=4, bits_V=2).q_V.bits == 2
    assert OrthogonalRNN(1, 8, 2, map="hadamard", bits=4, bits_U=2).q_V.bits == 4
    assert OrthogonalRNN(1, 8, 2, bits=4).q_V is None  # the paper's V is float


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map": "hadamard", "bits_W": 4}, "no weights of W to quantize, got bits_W=4"),
        ({"map": "cycle", "bits": 4, "quantizer": "identity-offset"}, "no weights of W to quantize"),
        ({"map": "cycle", "mix": True, "n_h": 12}, "power of 2, got 12; the nearest: 8 or 16"),
        ({"map": "hadamard", "mix": True, "readout": "all"}, "mix=True transforms the last state"),
        ({"map": "hadamard", "noise": -1.0}, "0 or more, as a share of the size of the states, got -1.0"),
        ({"map": "hadamard", "noise": "much"}, "0 or more, as a share of the size of the states, got 'much'"),
        ({"map": "hadamard", "noise": float("inf")}, "0 or more, as a share of the size of the states, got inf"),
        ({"map": "hadamard", "readout_activation": "tanh"}, "unknown readout_activation"),
        ({"map": "hadamard", "n_h": 100}, "the nearest: 64 or 128"),
    ],
)
def test_what_cannot_be_is_refused_in_words(options, message):
    with pytest.raises(SettingsError) as error:
        OrthogonalRNN(1, options.pop("n_h", 16), 2, **options)
    assert message in str(error.value)


def test_a_cosine_goes_down_to_nothing():
    settings = TrainSettings(lr=2.0, schedule="cosine", epochs=2, warmup=0)
    rates = [learning_rate(step, 50, settings) for step in range(101)]
    assert rates[0] == 2.0
    assert rates[50] == pytest.approx(1.0)
    assert rates[100] == pytest.approx(0.0)
    assert all(a > b for a, b in pairwise(rates))
    half = TrainSettings(lr=2.0, schedule="cosine", epochs=2, fraction=0.5)
    assert learning_rate(25, 50, half) == pytest.approx(1.0)
    with pytest.raises(SettingsError, match=r"unknown train\.schedule 'cosinus'"):
        TrainSettings(schedule="cosinus")


def test_what_stands_for_all_structured_maps_is_none_itself():
    with pytest.raises(SettingsError, match="not one map; use hadamard"):
        resolve("digits", map="structured")


@pytest.mark.parametrize("name", ["hadamard-block", "bjorck"])
def test_learned_signs_are_for_those_who_have_them(name):
    with pytest.raises(SettingsError, match=r"model\.learn=true is for map='hadamard'"):
        resolve("digits", map=name, settings=["model.learn=true"])
    recipe = resolve("digits", map=name, settings=["model.map_options.learn=true"])
    with pytest.raises(SettingsError, match=f"unknown option of the map '{name}' 'learn'"):
        build_model(recipe, build_task(recipe))
