import pytest
import torch

from qornn.errors import SettingsError
from qornn.maps.starts import haar
from qornn.quant import Uniform
from qornn.reproduce.gradients import ACTIVATIONS, gradient_norms

SMALL = {"n_h": 24, "T": 60, "batch": 6}


@pytest.fixture(scope="module")
def curves():
    return gradient_norms(**SMALL)


def test_curves_cover_every_step_and_end_at_the_unit_vector(curves):
    assert tuple(curves) == ACTIVATIONS
    for by_bits in curves.values():
        assert list(by_bits) == ["fp", "8", "5", "4"]
        for curve in by_bits.values():
            assert {len(values) for values in curve.values()} == {SMALL["T"]}
            assert curve["median"][-1] == pytest.approx(1, abs=1e-12)  # float64 round-off of a normalised vector
            assert all(
                low <= mid <= high for low, mid, high in zip(curve["low"], curve["median"], curve["high"], strict=True)
            )


def test_a_linear_orthogonal_recurrence_keeps_the_norm(curves):
    # 1e-12: float64 round-off of 60 products.
    assert curves["identity"]["fp"]["median"] == pytest.approx([1] * SMALL["T"], abs=1e-12)


def test_fewer_bits_stray_further_from_1(curves):
    stray = [max(abs(v - 1) for v in curves["identity"][bits]["median"]) for bits in ("fp", "8", "5", "4")]
    assert stray == sorted(stray)
    assert stray[1] > 1e-4


def test_relu_vanishes_whatever_the_bits(curves):
    assert all(curve["median"][0] < 1e-3 for curve in curves["relu"].values())


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("k", [None, 4])
def test_norms_equal_those_of_autograd(activation, k):
    n_h, T, batch, seed = 40, 40, 9, 5
    generator = torch.Generator().manual_seed(seed)
    W = haar(n_h, generator=generator, dtype=torch.float64)
    U = torch.randn(n_h, 1, generator=generator, dtype=torch.float64) * (2 / (n_h + 1)) ** 0.5  # Xavier-normal
    b = 0.02 * torch.rand(n_h, generator=generator, dtype=torch.float64) - 0.01
    x = torch.rand(T, batch, 1, generator=generator, dtype=torch.float64)
    v = torch.nn.functional.normalize(torch.randn(batch, n_h, generator=generator, dtype=torch.float64))
    if k is not None:
        W, U = Uniform(k)(W), Uniform(k)(U)
    sigma = {"identity": lambda z: z, "relu": torch.relu, "modrelu": lambda z: z.sign() * torch.relu(z.abs() + b)}
    h, states = torch.zeros(batch, n_h, dtype=torch.float64, requires_grad=True), []
    for x_t in x:
        h = sigma[activation](h @ W.mT + x_t @ U.mT)
        h.retain_grad()
        states.append(h)
    (v * h).sum().backward()
    expected = [float(state.grad.norm(dim=1).median()) for state in states]
    got = gradient_norms(n_h=n_h, T=T, batch=batch, seed=seed, ks=[k], activations=[activation])
    # 1e-9: float64 round-off of forty products.
    assert got[activation]["fp" if k is None else str(k)]["median"] == pytest.approx(expected, rel=1e-9)


def test_the_seed_decides():
    assert gradient_norms(**SMALL) == gradient_norms(**SMALL)
    assert gradient_norms(**SMALL) != gradient_norms(**SMALL, seed=1)


def test_bad_settings_are_refused_in_words():
    with pytest.raises(SettingsError, match="got 0, 60 and 6"):
        gradient_norms(**(SMALL | {"n_h": 0}))
    with pytest.raises(SettingsError, match="Did you mean 'modrelu'"):
        gradient_norms(**SMALL, activations=["modReLU"])
