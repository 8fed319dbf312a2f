"""The specification, held against a loop under autograd and finite differences."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from qornn.recurrence import ACTIVATIONS, recurrence


def activate(z, b, activation):
    if activation == "modrelu":
        return z.sign() * torch.relu(z.abs() + b)
    return {"relu": torch.relu, "tanh": torch.tanh, "identity": lambda z: z}[activation](z)


def plain_loop(x, W, U, b, h0, lengths, activation):
    """The equations, one step at a time, gradients by autograd."""
    if x.ndim == 2:
        x = F.one_hot(x, U.shape[1]).to(W.dtype)
    h, states = h0, []
    for t in range(x.shape[1]):
        h = activate(h @ W.T + x[:, t] @ U.T, b, activation)
        states.append(h)
    states = torch.stack(states, 1)  # (B, T, n_h)
    if lengths is None:
        return states, states[:, -1]
    inside = torch.arange(x.shape[1]) < lengths[:, None]
    return states * inside[..., None], states[torch.arange(len(x)), lengths - 1]


def problem(B, T, n_h, n_i, activation, codes, masked, seed=0):
    g = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()

    x = torch.randint(0, n_i, (B, T), generator=g) if codes else draw(B, T, n_i)
    b = draw(n_h) if activation == "modrelu" else None
    lengths = torch.randint(1, T + 1, (B,), generator=g) if masked else None
    return x, draw(n_h, n_h), draw(n_h, n_i), b, draw(B, n_h), lengths, activation


GRID = list(itertools.product(ACTIVATIONS, [False, True], [False, True], [(1, 1, 1, 1), (3, 5, 4, 2), (2, 9, 7, 3)]))


@pytest.mark.parametrize(("activation", "codes", "masked", "shape"), GRID)
def test_states_and_every_gradient_equal_the_plain_loop(activation, codes, masked, shape):
    arguments = problem(*shape, activation, codes, masked)
    wanted = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
    results = []
    for function in (recurrence, plain_loop):
        states, last = function(*arguments)
        weights = torch.linspace(-1, 1, states.numel(), dtype=states.dtype).view(states.shape)
        loss = (states * weights).sum() + (last**2).sum()
        results.append((states.detach(), last.detach(), *torch.autograd.grad(loss, wanted)))
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)  # float64, sums in another order


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_equal_finite_differences(activation):
    x, W, U, b, h0, lengths, _ = problem(2, 4, 3, 2, activation, codes=False, masked=True)
    inputs = (x, W, U, b, h0) if b is not None else (x, W, U, h0)

    def states(*given):
        x, W, U, *rest = given
        return recurrence(x, W, U, rest[0] if b is not None else None, rest[-1], lengths, activation)

    assert torch.autograd.gradcheck(states, inputs)


def test_codes_equal_one_hot_vectors():
    x, W, U, b, h0, _, activation = problem(3, 6, 5, 4, "modrelu", codes=True, masked=False)
    dense = F.one_hot(x, 4).double()
    for ours, theirs in zip(
        recurrence(x, W, U, b, h0, None, activation), recurrence(dense, W, U, b, h0, None, activation), strict=True
    ):
        assert torch.allclose(ours, theirs)


def test_only_the_states_are_saved_for_the_backward_pass():
    x, W, U, b, h0, _, activation = problem(2, 50, 8, 1, "modrelu", codes=False, masked=False)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        recurrence(x, W, U, b, h0, None, activation)
    assert sum(t.numel() >= 2 * 50 * 8 for t in saved) == 1


def test_padding_of_any_kind_changes_nothing():
    x, W, U, b, h0, _, activation = problem(2, 6, 4, 3, "relu", codes=False, masked=False)
    lengths = torch.tensor([6, 3])
    dirty = x.detach().clone()
    dirty[1, 3:] = float("nan")
    results = []
    for inputs in (x.detach(), dirty):
        states, last = recurrence(inputs, W, U, b, h0, lengths, activation)
        results.append((states, last, *torch.autograd.grad(states.sum() + last.sum(), (W, U, h0))))
    for clean, padded in zip(*results, strict=True):
        assert torch.equal(clean, padded)
    assert not results[0][0][1, 3:].any()


def test_nan_inside_a_sequence_propagates():
    x, W, U, b, h0, _, activation = problem(1, 4, 3, 2, "identity", codes=False, masked=False)
    broken = x.detach().clone()
    broken[0, 2, 0] = float("nan")
    states, _ = recurrence(broken, W, U, b, h0, None, activation)
    assert states[0, :2].isfinite().all()
    assert states[0, 2:].isnan().all()


def test_modrelu_is_zero_at_zero_and_clips_the_magnitude():
    one = torch.ones(1, 1, dtype=torch.float64)
    x = torch.tensor([[[0.0]], [[2.0]], [[-2.0]], [[0.4]]], dtype=torch.float64)
    zero = torch.zeros(4, 1, dtype=torch.float64)
    _, last = recurrence(x, 0 * one, one, torch.tensor([-0.5], dtype=torch.float64), zero, None, "modrelu")
    assert last[:, 0].tolist() == [0.0, 1.5, -1.5, 0.0]
    _, last = recurrence(x, 0 * one, one, torch.tensor([0.5], dtype=torch.float64), zero, None, "modrelu")
    assert last[:, 0].tolist() == [0.0, 2.5, -2.5, 0.9]
