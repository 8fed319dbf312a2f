import pytest
import torch

from qornn.errors import SettingsError
from qornn.maps.base import deviation, polar_factor
from qornn.maps.projunn import ProjUNN, lsi, project_low_rank
from qornn.maps.starts import haar


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 6, 50])
def test_projection_is_the_polar_factor(n, rank):
    g = generator(n)
    W = haar(n, generator=g, dtype=torch.float64)
    rank = min(rank, n)
    a, b = (torch.randn(n, rank, generator=g, dtype=torch.float64) for _ in range(2))
    b = torch.linalg.qr(b).Q
    assert (project_low_rank(W, 0.1 * a, b) - polar_factor(W + 0.1 * a @ b.mT)).abs().max() < 1e-10  # measured 3e-14


def test_a_whole_step_is_within_1e_6_of_the_polar_factor_in_float32():
    W = haar(64, generator=generator())
    moved = W + 1e-3 * torch.randn(64, 64, generator=generator(1))
    a, b = lsi(moved - W, 3, generator=generator(2))
    expected = polar_factor(W + a @ b.mT)
    ProjUNN(rank=3).retract_(moved, W, generator=generator(2))
    assert (moved - expected).abs().max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 4])
def test_still_orthogonal_after_2000_steps(rank):
    map_, W, g = ProjUNN(rank), haar(48, generator=generator()), generator(1)
    for _ in range(2000):
        before = W.clone()
        W += 1e-3 * torch.randn(48, 48, generator=g)
        map_.retract_(W, before, generator=g)
    assert deviation(W) < 1e-4  # float32 drift


def test_rank_one_lsi_samples_one_random_combination_of_rows():
    delta = torch.randn(30, 30, generator=generator(), dtype=torch.float64)
    a, b = lsi(delta, 1, generator=generator(1))
    rho = torch.randn(30, 1, generator=generator(1), dtype=torch.float64)
    direction = delta.mT @ (rho / rho.norm())
    assert torch.allclose(abs(b.mT @ direction / direction.norm()), torch.ones(1, 1, dtype=torch.float64))
    assert torch.allclose(a, delta @ b)


def test_full_rank_lsi_is_the_whole_update():
    delta = torch.randn(8, 8, generator=generator(), dtype=torch.float64)
    a, b = lsi(delta, 8, generator=generator(1))
    assert torch.allclose(a @ b.mT, delta, atol=1e-10)


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1.0])
def test_lsi_does_not_depend_on_the_size_of_the_update(size):
    delta = torch.randn(8, 8, generator=generator(), dtype=torch.float64)
    _, b = lsi(size * delta, 2, generator=generator(1))
    assert torch.allclose(b.mT @ b, torch.eye(2, dtype=torch.float64), atol=1e-9)


def test_no_update_leaves_w_as_it_is():
    W = haar(9, generator=generator())
    moved = W.clone()
    ProjUNN().retract_(moved, W, generator=generator())
    assert torch.equal(moved, W)


def test_a_singular_update_falls_back_to_the_svd():
    W = torch.eye(3, dtype=torch.float64)
    a, b = torch.tensor([[-1.0], [0], [0]], dtype=torch.float64), torch.tensor([[1.0], [0], [0]], dtype=torch.float64)
    assert deviation(project_low_rank(W, a, b)) < 1e-12  # W + abᵀ = diag(0, 1, 1), where (1+s)^(−1/2) is infinite


def test_project_repairs_a_start_off_the_manifold_and_leaves_others_alone():
    good = haar(6, generator=generator())
    kept = good.clone()
    ProjUNN().project_(kept)
    assert torch.equal(kept, good)
    bad = good + 0.1
    ProjUNN().project_(bad)
    assert deviation(bad) < 1e-6


def test_rank_below_one_is_refused():
    with pytest.raises(SettingsError, match="rank must be at least 1, got 0"):
        ProjUNN(0)
