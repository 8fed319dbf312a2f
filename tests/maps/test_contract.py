"""What every map promises; a new entry of MAPS gets these tests free."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from qornn.errors import SettingsError
from qornn.maps import MAPS, deviation, make_map, start

N = 16  # every structured map has this size
OPTIONS = {"delay": {"lines": 4}, "hadamard-block": {"block": 4}}


def make(name):
    return make_map(name, **OPTIONS.get(name, {}))


def raw(map_, n, seed=0):
    """A W_raw to map: a structured map's own, or an orthogonal start."""
    if map_.structured:
        return map_.raw(n).double()
    return start("haar", n, generator=torch.Generator().manual_seed(seed)).double()


def noise(W):
    return torch.randn(W.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("n", [1, 2, 7, 16, 32])
@pytest.mark.parametrize("name", [name for name, map_ in MAPS.items() if not map_.structured])
def test_output_is_orthogonal(name, n):
    map_ = make(name)
    W = raw(map_, n, seed=n)
    if not (map_.exact and not map_.retracts):  # the others keep what they are given
        assert deviation(map_(W)) < 1e-6  # the start itself, drawn in float32
        return
    assert deviation(map_(W + 0.02 * noise(W))) < 1e-5


@pytest.mark.parametrize("n", [N, 64])
@pytest.mark.parametrize("name", [name for name, map_ in MAPS.items() if map_.structured])
def test_a_structured_matrix_is_orthogonal_to_the_last_digit(name, n):
    map_ = make(name)
    W = map_(raw(map_, n))
    assert W.shape == (n, n)
    assert deviation(W) < 1e-14


@pytest.mark.parametrize("name", MAPS)
def test_gradient_equals_finite_differences(name):
    # float64: from a near-orthogonal start every map has converged, so σ_max drops out of the derivative.
    map_ = make(name)
    if map_.structured and map_.learned:
        pytest.skip("straight-through: its gradient is the identity's by choice, tested in test_structured.py")
    W = raw(map_, N if map_.structured else 5)
    W = W if map_.structured else W + 0.05 * noise(W)
    assert torch.autograd.gradcheck(map_, W.requires_grad_(), atol=1e-6)
    assert torch.autograd.gradcheck(lambda V: map_.penalty(V) + 0 * V.sum(), W)


@pytest.mark.parametrize("name", MAPS)
def test_state_dict_round_trip(name):
    map_, other = make(name), make(name)
    other.load_state_dict(map_.state_dict())
    W = raw(map_, N)
    assert torch.equal(map_(W), other(W))


@pytest.mark.parametrize("name", MAPS)
def test_registers_as_a_parametrization(name):
    layer = nn.Linear(N, N)
    layer.weight.data = start("haar", N, generator=torch.Generator().manual_seed(3))
    parametrize.register_parametrization(layer, "weight", make(name))
    assert deviation(layer.weight) < 1e-5  # float32
    layer(torch.ones(2, N)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None


def test_an_unknown_map_suggests_the_nearest():
    with pytest.raises(SettingsError, match=r"unknown map 'bjork'.*Did you mean 'bjorck'"):
        make_map("bjork")
