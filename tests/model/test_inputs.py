"""What lies past the end of a sequence is no input."""

import pytest
import torch

import qornn


def batch():
    generator = torch.Generator().manual_seed(1)
    x, lengths = torch.randn(8, 20, 3, generator=generator), torch.randint(3, 21, (8,), generator=generator)
    return x, lengths, (torch.arange(20) >= lengths[:, None])[..., None]


def trained(model, x, lengths):
    """Outputs of the third call in training, where steps have been set, and all gradients."""
    for _ in range(2):
        model(x, lengths=lengths)
    y, _ = model(x, lengths=lengths)
    y.square().sum().backward()
    return [y.detach(), *(parameter.grad for parameter in model.parameters())]


@pytest.mark.parametrize("padding", [1e6, float("nan"), float("inf")])
@pytest.mark.parametrize("pool", ["mean", "last"])
def test_training_does_not_see_padding(pool, padding):
    x, lengths, past = batch()
    zeros, other = (
        trained(
            qornn.Stack.rotations(3, 2, pool=pool, skip=True, generator=torch.Generator().manual_seed(0)), z, lengths
        )
        for z in (x.masked_fill(past, 0), x.masked_fill(past, padding))
    )
    assert all(map(torch.equal, zeros, other))


@pytest.mark.parametrize("bits", [None, 4])
def test_a_mix_alone_does_not_see_padding(bits):
    x, lengths, past = batch()
    zeros, other = (
        trained(qornn.Mix(3, 4, bits=bits, generator=torch.Generator().manual_seed(0)), z, lengths)
        for z in (x.masked_fill(past, 0), x.masked_fill(past, float("nan")))
    )
    assert all(map(torch.equal, zeros, other))


def test_what_every_layer_gives_does_not_depend_on_padding():
    x, lengths, past = batch()
    model = qornn.Stack.rotations(3, 2, generator=torch.Generator().manual_seed(0))
    model(x, lengths=lengths)
    with torch.no_grad():
        zeros, other = (model.eval().outputs(x.masked_fill(past, v), lengths) for v in (0.0, float("nan")))
    assert all(map(torch.equal, zeros, other))
