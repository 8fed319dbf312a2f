"""What every map promises; a new entry of MAPS gets these tests free."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from qornn.errors import SettingsError
from qornn.maps import MAPS, deviation, make_map, start

SIZES = [1, 2, 7, 32]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", MAPS)
def test_output_is_orthogonal(name, n):
    map_ = make_map(name)
    W = start("haar", n, generator=torch.Generator().manual_seed(n)).double()
    if not (map_.exact and not map_.retracts):  # the others keep what they are given
        assert deviation(map_(W)) < 1e-6  # the start itself, drawn in float32
        return
    noisy = W + 0.02 * torch.randn(n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert deviation(map_(noisy)) < 1e-5


@pytest.mark.parametrize("name", MAPS)
def test_gradient_equals_finite_differences(name):
    # n = 5, float64: from a near-orthogonal start every map has converged, so σ_max drops out of the derivative.
    map_ = make_map(name)
    W = start("haar", 5, generator=torch.Generator().manual_seed(0)).double()
    W = W + 0.05 * torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.autograd.gradcheck(map_, W.requires_grad_(), atol=1e-6)
    assert torch.autograd.gradcheck(lambda V: map_.penalty(V) + 0 * V.sum(), W)


@pytest.mark.parametrize("name", MAPS)
def test_state_dict_round_trip(name):
    map_, other = make_map(name), make_map(name)
    other.load_state_dict(map_.state_dict())
    W = start("haar", 6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(map_(W), other(W))


@pytest.mark.parametrize("name", MAPS)
def test_registers_as_a_parametrization(name):
    layer = nn.Linear(6, 6)
    layer.weight.data = start("haar", 6, generator=torch.Generator().manual_seed(3))
    parametrize.register_parametrization(layer, "weight", make_map(name))
    assert deviation(layer.weight) < 1e-5  # float32
    layer(torch.ones(2, 6)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None


def test_an_unknown_map_suggests_the_nearest():
    with pytest.raises(SettingsError, match=r"unknown map 'bjork'.*Did you mean 'bjorck'"):
        make_map("bjork")
