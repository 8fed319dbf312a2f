"""What every quantizer promises; a new entry of QUANTIZERS gets these tests free."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qornn.quant import QUANTIZERS

BITS = range(2, 9)


def matrix(seed, n=9):
    return torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("scale", ["tensor", "row"])
@pytest.mark.parametrize("name", QUANTIZERS)
def test_integers_are_on_k_bits_and_forward_is_their_dequantization(name, scale, bits):
    quantizer = QUANTIZERS[name](bits, scale=scale)
    W = matrix(bits).requires_grad_()
    integers, alpha = quantizer.to_int(W)
    assert torch.equal(integers, integers.round())
    assert -(2 ** (bits - 1)) <= integers.min()
    assert integers.max() <= 2 ** (bits - 1) - 1
    assert len(integers.unique()) <= 2**bits
    assert torch.equal(quantizer(W), quantizer.dequantize(integers, alpha))  # exactly, not to tolerance
    assert alpha.shape == ((9, 1) if scale == "row" else ())


@pytest.mark.parametrize("name", QUANTIZERS)
def test_float32_forward_is_exactly_the_dequantization_too(name):
    quantizer = QUANTIZERS[name](5)
    W = matrix(3).float().requires_grad_()
    assert torch.equal(quantizer(W), quantizer.dequantize(*quantizer.to_int(W)))


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("name", QUANTIZERS)
def test_every_entry_takes_the_nearest_level(name, bits):
    """Against a search over all 2^k levels."""
    quantizer = QUANTIZERS[name](bits)
    W = matrix(10 + bits)
    integers, alpha = quantizer.to_int(W)
    grid = torch.arange(-(2 ** (bits - 1)), 2 ** (bits - 1), dtype=torch.float64)
    levels = torch.stack([quantizer.dequantize(torch.full_like(W, level), alpha) for level in grid.tolist()])
    nearest = (levels - W).abs().min(0).values
    assert torch.allclose((quantizer(W) - W).abs(), nearest, rtol=0, atol=1e-15)
    assert torch.equal(integers, grid[(levels - W).abs().argmin(0)])


@pytest.mark.parametrize("name", QUANTIZERS)
def test_gradient_passes_unchanged_also_where_clipped(name):
    W = matrix(1).requires_grad_()
    upstream = matrix(2)
    QUANTIZERS[name](2)(W).backward(upstream)
    assert torch.equal(W.grad, upstream)


@given(st.integers(2, 8), st.integers(0, 10_000), st.floats(1e-30, 1e30), st.sampled_from(["tensor", "row"]))
def test_quantizing_does_not_depend_on_the_scale_of_w(bits, seed, factor, scale):
    quantizer = QUANTIZERS["uniform"](bits, scale=scale)
    W = matrix(seed, n=4)
    power = 2.0 ** round(torch.tensor(factor).log2().item())  # powers of two scale floats exactly
    assert torch.equal(quantizer.to_int(W * power)[0], quantizer.to_int(W)[0])


@pytest.mark.parametrize("name", QUANTIZERS)
def test_another_number_of_bits_keeps_everything_else(name):
    quantizer = QUANTIZERS[name](8, scale="row")
    other = quantizer.with_bits(3)
    assert (quantizer.bits, other.bits, other.scale) == (8, 3, "row")
    assert torch.equal(other(matrix(0)), QUANTIZERS[name](3, scale="row")(matrix(0)))
