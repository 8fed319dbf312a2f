"""Maps without a stored matrix: what they are made of, what they refuse, and that the integers are the same matrix."""

import numpy as np
import pytest
import torch

from qornn import structure
from qornn.errors import SettingsError
from qornn.integer.matrices import Cycle, Delay, Hadamard
from qornn.maps import MAPS, deviation, make_map

KINDS = {"hadamard": Hadamard, "cycle": Cycle, "delay": Delay}
CASES = [
    ("hadamard", 32, {"seed": 3}),
    ("hadamard", 32, {"learn": True}),
    ("hadamard-block", 48, {"block": 8}),
    ("hadamard-block", 16, {"block": 16}),
    ("cycle", 7, {}),
    ("delay", 41, {"lines": 4, "seed": 1}),
]


def test_the_names_are_told_without_torch():
    assert set(structure.MAPS) == {name for name, map_ in MAPS.items() if map_.structured}


@pytest.mark.parametrize(("name", "n", "options"), CASES)
def test_integers_are_the_same_matrix(name, n, options):
    map_ = make_map(name, **options)
    W_raw = map_.raw(n).double()
    kind, parts = map_.made_of(W_raw)
    integer = KINDS[kind](**parts)
    assert integer.n_h == n
    np.testing.assert_allclose(integer.written_out() * integer.alpha, map_(W_raw).detach(), atol=1e-14)
    assert (integer.driven is None) == (map_.driven(n) is None)


def test_seeds_differ_and_repeat():
    u = [make_map("hadamard", seed=seed).raw(64) for seed in (0, 0, 1, 2**32 - 1)]
    assert torch.equal(u[0], u[1])
    assert all((a != b).sum() > 16 for a, b in [(u[0], u[2]), (u[0], u[3]), (u[2], u[3])])
    assert 16 < (u[0] > 0).sum() < 48


def test_hadamard_is_sylvesters_matrix():
    W = make_map("hadamard").forward(torch.ones(4, dtype=torch.float64)) * 2
    assert W.tolist() == [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]


def test_the_cycle_turns_round_once():
    """W^n = −I: what was put in comes back after n steps with its sign turned, so a constant cannot accumulate."""
    W = make_map("cycle")(make_map("cycle").raw(6))
    assert torch.equal(torch.linalg.matrix_power(W, 6), -torch.eye(6))


def test_blocks_mix():
    """Without the permutation a block would only ever see itself: powers of W must have no zeros left."""
    map_ = make_map("hadamard-block", block=4)
    W = map_(map_.raw(16).double())
    assert (W != 0).sum() == 16 * 4
    assert ((W @ W).abs() > 1e-9).all()


def test_learned_signs_move_and_stay_signs():
    map_ = make_map("hadamard", learn=True)
    W_raw = map_.raw(8).requires_grad_()
    target = -map_(W_raw.detach())
    ((map_(W_raw) - target) ** 2).sum().backward()
    assert (W_raw.grad.sign() == W_raw.detach().sign()).all()  # every sign should turn
    with torch.no_grad():
        flipped = map_(W_raw - 2 * W_raw)
    assert torch.equal(flipped, target)


def test_a_sign_pushed_too_far_learns_no_more():
    map_ = make_map("hadamard", learn=True)
    W_raw = torch.tensor([0.5, -1.5, 2.0, -0.2], requires_grad=True)
    map_(W_raw).sum().backward()
    assert (W_raw.grad[[1, 2]] == 0).all()
    assert deviation(map_(W_raw)) < 1e-6


@pytest.mark.parametrize(
    ("name", "n", "options", "message"),
    [
        ("hadamard", 100, {}, "power of 2, got 100; the nearest: 64 or 128"),
        ("hadamard", 1, {}, "the nearest: 2"),
        ("hadamard-block", 100, {}, "multiple of block=16, got 100; take 96 or 112"),
        ("hadamard-block", 64, {"block": 12}, "power of 2, got 12; the nearest: 8 or 16"),
        ("hadamard-block", 64, {"block": "8"}, "power of 2, got '8'"),
        ("hadamard-block", 64, {"block": 8.0}, "power of 2, got 8.0"),
        ("cycle", 1, {}, "at least two units"),
        ("delay", 100, {}, "at least 136, got 100"),
        ("delay", 100, {"lines": 8}, "power of 4, got 8; the nearest: 4 or 16"),
        ("cycle", 8, {"learn": True}, "no signs to learn"),
        ("delay", 200, {"learn": True}, "no signs to learn"),
        ("hadamard", 8, {"seed": -1}, "0..2^32"),
        ("hadamard", 8, {"block": 4}, "unknown option of the map 'hadamard'"),
    ],
)
def test_bad_input_is_refused_in_words(name, n, options, message):
    with pytest.raises(SettingsError) as error:
        make_map(name, **options).raw(n)
    assert message in str(error.value)
