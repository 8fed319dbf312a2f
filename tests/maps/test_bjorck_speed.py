"""The short form of the Björck map against the 15 iterations: same W, same gradient, fewer matrix products."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from qornn.maps import bjorck
from qornn.maps.base import polar_factor
from qornn.maps.bjorck import Bjorck, polar_by_products
from qornn.maps.starts import haar

SIZES = [1, 2, 33, 256]
PLAIN = (30, 60)  # products of 15 iterations: 2 each forward, 4 each backward


class Products(TorchDispatchMode):
    """Counts products of square matrices, the map's only cost of order n_h³."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.addmm_):
            self.count += args[-1].shape[0] == args[-1].shape[1]
        return func(*args, **(kwargs or {}))


def run(map_, W, G):
    """W, its gradient, and the products of the forward and of the backward pass."""
    W = W.clone().requires_grad_()
    with Products() as products:
        Q = map_(W)
        forward = products.count
        Q.backward(G)
    return Q.detach(), W.grad, (forward, products.count - forward)


def same_as_exact(W, size=1.0):
    """The products of the short form, once W and its gradient are found equal to the exact one's."""
    G = size * torch.randn(W.shape, generator=torch.Generator().manual_seed(1), dtype=W.dtype)
    Q, dW, products = run(Bjorck(), W, G)
    Q_exact, dW_exact, products_exact = run(Bjorck(exact=True), W, G)
    assert products_exact == PLAIN
    assert (Q - Q_exact).norm() <= 1e-5 * Q_exact.norm()  # asked: 1e-4, in float32; found: 2e-6 at most
    dW, dW_exact = dW / size, dW_exact / size
    assert (dW - dW_exact).norm() <= 3e-5 * dW_exact.norm()  # asked: 1e-4; found: 1e-5 at most
    return products


def with_singular_values(s, seed=0):
    generator = torch.Generator().manual_seed(seed)
    left, right = (haar(len(s), generator=generator, dtype=torch.float64) for _ in range(2))
    return (left * s.double() @ right).float()


def noisy(n, noise, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return haar(n, generator=generator) + noise / math.sqrt(n) * torch.randn(n, n, generator=generator)


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.02, 0.05, 0.1, 0.2, 0.3])
def test_near_orthogonal_and_noisy_starts_give_the_same_for_a_quarter_of_the_products(n, noise):
    assert sum(same_as_exact(noisy(n, noise))) < sum(PLAIN) / 4


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_badly_scaled_starts_give_the_same(n, scale):
    assert sum(same_as_exact(scale * noisy(n, 0.1))) < sum(PLAIN) / 4


@pytest.mark.parametrize("size", [0.0, 1e-25, 1e25])
def test_badly_scaled_gradients_give_the_same(size):
    W = noisy(33, 0.1)
    if size:
        same_as_exact(W, size)
    else:
        assert not run(Bjorck(), W, torch.zeros_like(W))[1].any()


@pytest.mark.parametrize("n", SIZES[1:])
@pytest.mark.parametrize("ends", [(0.9, 1.1), (0.6, 1.4), (0.3, 1.7), (0.1, 1.0)])
def test_wide_spectra_give_the_same(n, ends):
    assert sum(same_as_exact(with_singular_values(torch.linspace(*ends, n)))) < sum(PLAIN) / 2


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES[1:])
@pytest.mark.parametrize("one", [5.0, 0.05, 0.02, 0.01, 1e-4, 1e-8])
def test_one_singular_value_apart_gives_the_same(n, one):
    s = torch.ones(n)
    s[0] = one
    forward, backward = same_as_exact(with_singular_values(s))
    if one <= 0.01:  # 15 iterations do not converge: theirs is the result, and theirs the gradient
        assert (forward, backward) == (1 + PLAIN[0], PLAIN[1])
    if one >= 0.05:
        assert forward + backward < sum(PLAIN) / 3


@pytest.mark.parametrize("n", SIZES[2:])
def test_a_gaussian_start_falls_back_on_the_iterations(n):
    W = torch.randn(n, n, generator=torch.Generator().manual_seed(n))
    _, backward = same_as_exact(W)
    assert backward == PLAIN[1]


@pytest.mark.slow
@pytest.mark.parametrize("power", [4, 8, 12])
def test_spectra_that_crowd_at_zero_give_the_same(power):
    """Where Lanczos' method sees the low end of the spectrum worst."""
    for low in (0.002, 0.005, 0.01, 0.02, 0.04):
        same_as_exact(with_singular_values(low + torch.linspace(0, 1, 128) ** power))
        same_as_exact(with_singular_values(low + 1 - torch.linspace(0, 1, 128) ** power))


def test_a_missed_end_of_the_spectrum_falls_back(monkeypatch):
    """With an estimate that never sees the small singular value, W is still the exact form's."""
    s = torch.ones(33)
    s[0] = 0.004
    monkeypatch.setattr(bjorck, "spectrum", lambda B: (0.99, 1.01))
    assert same_as_exact(with_singular_values(s))[1] == PLAIN[1]


def test_a_spectrum_seen_late_falls_back(monkeypatch):
    """Missed at first, then seen: the short form would converge where 15 iterations do not."""
    s = torch.ones(33)
    s[0] = 0.004
    true, seen = bjorck.spectrum, iter([(0.03, 1.01)])
    monkeypatch.setattr(bjorck, "spectrum", lambda B: next(seen, None) or true(B))
    assert polar_by_products(with_singular_values(s), 15) is None


def test_a_solve_past_its_limit_falls_back(monkeypatch):
    monkeypatch.setattr(bjorck, "CG_LIMIT", 3)
    assert same_as_exact(noisy(33, 0.3))[1] == 2 + 3 + sum(PLAIN)  # iterated anew for their gradient


def test_fewer_iterations_than_needed_are_run_as_written():
    W = noisy(16, 0.3).double()
    assert torch.equal(Bjorck(iterations=2)(W), Bjorck(iterations=2, exact=True)(W))
    assert (Bjorck(iterations=2)(W) - polar_factor(W)).abs().max() > 1e-3


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_gradient_equals_finite_differences_in_float64(n, noise):
    W = noisy(n, noise).double()
    assert polar_by_products(W, 15) is not None
    assert torch.autograd.gradcheck(Bjorck(), W.requires_grad_(), atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("n", [2, 33, 100])
def test_float64_has_its_own_round_off(n):
    W = noisy(n, 0.2).double()
    G = torch.randn(n, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (Q, dW, products), (Q_exact, dW_exact, _) = run(Bjorck(), W, G), run(Bjorck(exact=True), W, G)
    assert (Q - Q_exact).norm() < 1e-14 * n
    assert (dW - dW_exact).norm() < 1e-12 * dW_exact.norm()
    assert sum(products) < sum(PLAIN) / 3


@pytest.mark.slow
def test_a_training_step_takes_at_most_an_eighth_of_the_products():
    """W_raw from Haar, moved by Adam at the speed that lr = 1e-3 has at n_h = 1024: 11 products against 90."""
    n, generator = 128, torch.Generator().manual_seed(0)
    W = torch.nn.Parameter(haar(n, generator=generator))
    adam = torch.optim.Adam([W], lr=1e-3 * math.sqrt(1024 / n))
    for _ in range(200):
        W.grad = None
        with Products() as products:
            Bjorck()(W).backward(torch.randn(n, n, generator=generator))
        assert products.count <= sum(PLAIN) / 8
        adam.step()
    s = torch.linalg.svdvals(W.detach())
    assert s.max() / s.min() > 1.1  # it did move


def test_the_same_w_gives_the_same_bits():
    W, G = noisy(64, 0.1), torch.ones(64, 64)
    assert all(torch.equal(a, b) for a, b in zip(run(Bjorck(), W, G)[:2], run(Bjorck(), W, G)[:2], strict=True))


def test_a_gradient_that_is_not_finite_stays_so():
    G = torch.ones(8, 8)
    G[0, 0] = math.nan
    assert not run(Bjorck(), noisy(8, 0.1), G)[1].isfinite().all()


def test_half_precision_runs_the_iterations_as_written():
    W = noisy(16, 0.1).bfloat16()
    assert torch.equal(Bjorck()(W), Bjorck(exact=True)(W))


def test_repr_says_which_form():
    assert repr(Bjorck()) == "Bjorck(iterations=15)"
    assert repr(Bjorck(exact=True)) == "Bjorck(iterations=15, exact=True)"
    assert Bjorck().exact
    assert Bjorck(exact=True).exact  # of every map: W is orthogonal
