import pytest
import torch

from qornn.errors import SettingsError
from qornn.quant import IdentityOffset, Uniform


@pytest.mark.parametrize("bits", range(2, 9))
def test_the_identity_is_kept_exactly(bits):
    """The plain quantizer shrinks it, to 0.3 % after 750 steps at k = 8."""
    identity = torch.eye(5, dtype=torch.float64)
    assert torch.equal(IdentityOffset(bits)(identity), identity)
    assert torch.linalg.matrix_power(Uniform(8)(identity), 750)[0, 0].item() == pytest.approx(0.0028, abs=2e-4)


def test_it_is_the_identity_plus_the_quantized_rest():
    W = torch.eye(6) + 0.01 * torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    assert torch.equal(IdentityOffset(4)(W), torch.eye(6) + Uniform(4)(W - torch.eye(6)))


def test_only_square_matrices():
    with pytest.raises(SettingsError, match="square"):
        IdentityOffset(4)(torch.ones(2, 3))
