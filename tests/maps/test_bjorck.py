import math

import pytest
import torch

from qornn.errors import SettingsError
from qornn.maps.base import deviation, polar_factor
from qornn.maps.bjorck import STARTS, Bjorck, iterate, largest_singular_value
from qornn.maps.starts import haar


def noisy_orthogonal(n, noise=0.01, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    W = haar(n, generator=generator, dtype=dtype)
    return W + noise * torch.randn(n, n, generator=generator, dtype=dtype)


@pytest.mark.parametrize("n", [3, 64, 170, 256])
def test_output_is_orthogonal_to_1e_5(n):
    assert deviation(Bjorck()(noisy_orthogonal(n))) < 1e-5  # float32, max-abs of AᵀA − I


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_output_is_the_polar_factor_whatever_the_scale(scale):
    W = noisy_orthogonal(40, noise=0.02, dtype=torch.float64)
    assert (Bjorck()(scale * W) - polar_factor(W)).abs().max() < 1e-9  # 15 iterations leave 1e-12 from this start


def test_gradient_keeps_every_iteration():
    """From a start that 15 iterations do not bring to convergence, with σ_max held constant as the paper does."""
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(6, 6, dtype=torch.float64, generator=generator)
    A = A / torch.linalg.matrix_norm(A, 2)
    assert deviation(iterate(A, 3)) > 0.1  # really not converged
    assert torch.autograd.gradcheck(lambda A: iterate(A, 3), A.requires_grad_())


def test_sigma_max_is_a_constant_of_the_gradient():
    W = torch.diag(torch.tensor([2.0, 1.0], dtype=torch.float64)).requires_grad_()
    one = Bjorck(iterations=1)
    one(W)[0, 0].backward()
    # A_0 = W/2: d(1.5 a − 0.5 a³)/dw with a = w/2 = 1 and σ constant is (1.5 − 1.5)/2 = 0.
    assert W.grad[0, 0].item() == pytest.approx(0.0, abs=1e-12)
    assert W.grad[1, 1].item() == 0.0


def test_sigma_max_is_never_so_underestimated_that_directions_flip():
    for seed in range(30):
        generator = torch.Generator().manual_seed(seed)
        W = torch.randn(20, 20, generator=generator)
        exact = torch.linalg.matrix_norm(W, 2)
        assert 1 - 1e-5 < exact / largest_singular_value(W) < 1.05


def test_sigma_max_survives_a_start_orthogonal_to_it():
    """The largest direction is at right angles to the first of the map's own starts."""
    v = torch.randn(64, STARTS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[:, 0]
    u = torch.randn(64, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    u = u - v * (u @ v) / (v @ v)
    u = u / u.norm()
    W = 0.1 * torch.eye(64, dtype=torch.float64) + 10 * torch.outer(u, u)
    assert 10.1 / largest_singular_value(W) < math.sqrt(3)


@pytest.mark.parametrize("bad", [torch.zeros(4, 4), torch.full((4, 4), math.nan), torch.full((4, 4), math.inf)])
def test_zero_or_nan_sigma_max_is_an_error_with_the_way_out(bad):
    with pytest.raises(SettingsError, match=r"σ_max.*init='haar'"):
        Bjorck()(bad)


@pytest.mark.parametrize("shape", [(3, 4), (3,), (0, 0)])
def test_anything_but_a_square_matrix_is_refused(shape):
    with pytest.raises(SettingsError, match="square matrix"):
        Bjorck()(torch.ones(shape))
