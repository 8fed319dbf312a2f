"""The linear recurrence without unrolling equals one step after another, forward and gradient."""

import pytest
import torch

from qornn.maps import make_map
from qornn.recurrence import linear
from qornn.recurrence.reference import transform

MAPS = [("hadamard", 16, {}), ("cycle", 7, {}), ("delay", 12, {"lines": 4}), ("hadamard-block", 16, {"block": 4})]


def problem(name, n, options, *, T, codes, seed=0):
    random = torch.Generator().manual_seed(seed)
    map_ = make_map(name, **options)
    W = map_(map_.raw(n).double())
    U = torch.randn(n, 3, dtype=torch.float64, generator=random).requires_grad_()
    b = torch.randn(n, dtype=torch.float64, generator=random).requires_grad_()
    x = torch.randint(3, (4, T), generator=random) if codes else torch.randn(4, T, 3, generator=random).double()
    return W, U, b, x


def one_by_one(x, W, U, b, h0, lengths):
    """States (B, T, n_h), zero past the end, and the last of each, with no shared code."""
    T = x.shape[1]
    x = torch.nn.functional.one_hot(x, U.shape[1]).double() if x.ndim == 2 else x
    h, last, states = h0, h0, []
    for t in range(T):
        h = h @ W.T + x[:, t] @ U.T + (0 if b is None else b)
        running = torch.tensor([t < int(n) for n in lengths])[:, None]
        last = torch.where(running, h, last)
        states.append(h * running)
    return torch.stack(states, 1), last


@pytest.mark.slow
@pytest.mark.parametrize("codes", [True, False])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize(("name", "n", "options"), MAPS)
@pytest.mark.parametrize("T", [1, 5, 64, 77])
def test_both_forms_are_the_recurrence(name, n, options, T, codes, biased, padded):
    W, U, b, x = problem(name, n, options, T=T, codes=codes)
    b = b if biased else None
    lengths = torch.tensor([T, max(1, T // 2), 1, T]) if padded else None
    ends = [T] * 4 if lengths is None else lengths
    weights = [U] if b is None else [U, b]
    for h0 in (torch.zeros(4, n).double(), torch.randn(4, n, generator=torch.Generator().manual_seed(9)).double()):
        states, last = one_by_one(x, W, U, b, h0, ends)
        found, found_last = linear.all_states(x, linear.Powers(W), U, b, h0, lengths)
        torch.testing.assert_close(found, states, atol=1e-11, rtol=1e-10)
        torch.testing.assert_close(found_last, last, atol=1e-11, rtol=1e-10)
        wanted = torch.autograd.grad(states.sin().sum() + last.cos().sum(), weights)
        got = torch.autograd.grad(found.sin().sum() + found_last.cos().sum(), weights)
        for a, b_ in zip(got, wanted, strict=True):
            torch.testing.assert_close(a, b_, atol=1e-9, rtol=1e-9)
    _, last = one_by_one(x, W, U, b, torch.zeros(4, n).double(), ends)
    found_last = linear.last_state(x, linear.Powers(W), U, b, lengths)
    torch.testing.assert_close(found_last, last, atol=1e-11, rtol=1e-10)
    got, wanted = (torch.autograd.grad(h.sin().sum(), weights) for h in (found_last, last))
    for a, b_ in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b_, atol=1e-9, rtol=1e-9)


def test_powers_are_made_once():
    W = make_map("cycle").raw(4).diag()
    powers = linear.Powers(W)
    third = powers[3]
    assert powers[3] is third
    assert torch.equal(third, torch.linalg.matrix_power(W, 8))


def test_response_takes_logarithmically_many_products(monkeypatch):
    products = []
    real = torch.Tensor.__matmul__
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: products.append(a.shape) or real(a, b))
    linear.response(linear.Powers(torch.eye(4)), torch.ones(4, 1), 1000)
    assert len(products) <= 2 * 10


def test_transform_is_sylvesters_matrix():
    x = torch.randn(3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    S = make_map("hadamard")(torch.ones(8, dtype=torch.float64)) * 8**0.5
    torch.testing.assert_close(transform(x), x @ S.T)


@pytest.mark.parametrize("T", [1, 2, 33])
def test_fast_transforms_give_the_same_response(T):
    map_ = make_map("hadamard", seed=2)
    u = map_.raw(32)
    U = torch.randn(32, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    found = [linear.response(powers, U, T) for powers in (linear.Powers(map_(u)), linear.Powers(map_(u), u))]
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-4)
    gradients = [torch.autograd.grad(A.sin().sum(), U)[0] for A in found]
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-4, rtol=1e-3)


def test_what_stands_past_an_end_leaks_nowhere():
    W, U, b, x = problem("cycle", 7, {}, T=40, codes=False)
    lengths = torch.tensor([40, 5, 1, 40])
    x[1, 5:] = torch.nan
    states, last = linear.all_states(x, linear.Powers(W), U, b, torch.zeros(4, 7).double(), lengths)
    assert not states.isnan().any()
    gradients = torch.autograd.grad(states.sum() + last.sum(), [U, b])
    assert not any(g.isnan().any() for g in gradients)
