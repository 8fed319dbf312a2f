import pytest
import torch

from qornn.errors import SettingsError
from qornn.maps import STARTS, deviation, start


@pytest.mark.parametrize("n", [1, 2, 5, 64])
@pytest.mark.parametrize("name", STARTS)
def test_starts_are_orthogonal_and_follow_the_generator(name, n):
    draw = [start(name, n, generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert deviation(draw[0]) < 1e-5
    assert torch.equal(draw[0], draw[1])
    assert name == "identity" or n == 1 or not torch.equal(draw[0], draw[2])


def test_haar_has_no_preferred_sign():
    """Without the sign fix, QR's own convention shows: the diagonal's mean is far from 0."""
    generator = torch.Generator().manual_seed(0)
    diagonal = torch.stack([start("haar", 8, generator=generator).diagonal() for _ in range(2000)])
    assert diagonal.mean().abs() < 0.01  # standard error 0.003


def test_henaff_is_blocks_of_rotations_and_a_one():
    W = start("henaff", 5, generator=torch.Generator().manual_seed(0))
    assert W[4].tolist() == [0, 0, 0, 0, 1]
    assert W[0, 0] == W[1, 1]
    assert W[0, 1] == -W[1, 0]
    assert not W[:2, 2:].any()
    assert not W[2:4, :2].any()


def test_henaff_quarter_turns_by_less_than_a_quarter_as_far():
    """cos θ > cos(π/4) for every angle, which is true of no other start of this size."""
    for name, slow in (("henaff-quarter", True), ("henaff", False)):
        cosines = start(name, 400, generator=torch.Generator().manual_seed(0)).diagonal()
        assert bool((cosines > 0.5**0.5).all()) == slow


def test_unknown_start_and_size_are_refused():
    with pytest.raises(SettingsError, match="Did you mean 'haar'"):
        start("har", 4)
    with pytest.raises(SettingsError, match="n_h must be at least 1, got 0"):
        start("haar", 0)
