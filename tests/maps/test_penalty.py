import pytest
import torch

from qornn.errors import SettingsError
from qornn.maps import Penalty


def test_penalty_is_the_squared_frobenius_norm():
    # W Wᵀ − I = diag(3, 0) for W = diag(2, 1): λ·9.
    assert Penalty(strength=0.1).penalty(torch.diag(torch.tensor([2.0, 1.0]))).item() == pytest.approx(0.9)


def test_no_projection():
    W = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Penalty()(W), W)


def test_a_negative_strength_is_refused():
    with pytest.raises(SettingsError, match="at least 0, got -1"):
        Penalty(-1)
