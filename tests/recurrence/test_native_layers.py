"""A layer as one autograd function: the same bits, forward and backward, as its weights and its kernel apart."""

import pytest
import torch

import qornn
from qornn.errors import SettingsError
from qornn.model.layer import Grid
from qornn.model.mix import Mix
from qornn.model.rotations import Rotations
from qornn.recurrence import native, native_layers, native_weights

pytestmark = pytest.mark.skipif(native.library() is None, reason="qornn was installed without its native kernel")

GRID = Grid(torch.tensor(2.0**-4), 127)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def whole(*shape, seed):
    return (GRID.step * torch.randint(-127, 128, shape, generator=generator(seed))).requires_grad_()


def both(call, module, name):
    """What `module.name` makes of it, having been called, and what is made without."""
    real, called = getattr(module, name), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, lambda *given, **named: called.append(1) or real(*given, **named))
        ours = call()
        assert called
        patch.setattr(native_layers, "usable", lambda *_: False)
        return ours, call()


def run(make, lengths, seen, **inputs):
    """Outputs, gradients of all inputs and weights, and the steps after so many batches."""
    layer = make()
    layer.reads(GRID, GRID)
    for _ in range(seen):
        outputs = layer(lengths=lengths, **inputs)
    loss = sum((t * torch.randn(t.shape, generator=generator(5))).sum() for t in outputs)
    wanted = [*inputs.values(), *layer.parameters()]
    return [*outputs, *torch.autograd.grad(loss, wanted), *layer.state_dict().values()]


def same(ours, theirs):
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


LENGTHS = pytest.mark.parametrize("lengths", [None, torch.tensor([4, 9, 1])], ids=["whole", "padded"])
SEEN = pytest.mark.parametrize("seen", [1, 2])  # the first batch is not rounded


@SEEN
@LENGTHS
@pytest.mark.parametrize("skip", [0, 3])
def test_a_mix(skip, lengths, seen):
    given = {"x": whole(3, 9, 6, seed=1)} | ({"skip": whole(3, 9, 3, seed=2)} if skip else {})

    def make():
        return Mix(6, 5, skip=skip, bits=4, generator=generator())

    assert same(*both(lambda: run(make, lengths, seen, **given), native_layers, "mix"))


@SEEN
@LENGTHS
@pytest.mark.parametrize("shape", [(600, 60, 33), (400, 130, 5), (300, 130, 200)])
def test_a_mix_whose_sums_float32_does_not_hold(isa, shape, lengths, seen):
    """Its two products are on grids far apart, and are added in float64: to the last bit what torch makes of it."""
    n, skip, d = shape
    x = (whole(3, 9, n, seed=1).detach() / 8).round() * GRID.step + 100 * GRID.step
    given = {"x": x.requires_grad_(), "skip": whole(3, 9, skip, seed=2)}

    def make():
        layer = Mix(n, d, skip=skip, bits=4, generator=generator())
        with torch.no_grad():
            layer.C_raw.abs_().add_(1)  # large sums of C x, and of S skip small ones
            layer.S_raw.mul_(2.0**-4)
        return layer

    layer = make()
    layer.reads(GRID, GRID)
    assert layer._types(torch.float32) == (torch.float32, torch.float64)
    ours, theirs = both(lambda: run(make, lengths, seen, **given), native_layers, "mix")
    kept = len(layer.state_dict())
    assert same([*ours[:2], *ours[-kept:]], [*theirs[:2], *theirs[-kept:]])  # outputs, and what the layer keeps
    for a, b in zip(ours[2:-kept], theirs[2:-kept], strict=True):  # gradients: float32 sums in another order
        assert float((a - b).norm()) <= 2e-5 * (float(b.norm()) + 1)


@SEEN
@LENGTHS
@pytest.mark.parametrize("stacked", [False, True])
def test_rotations(stacked, lengths, seen):
    given = {"x": whole(3, 9, 6, seed=1), "h0": whole(3, 10, seed=2)}

    def make():
        layer = Rotations(6, 5, bits=4, state_bits=8, generator=generator())
        if stacked:
            layer.enter_stack()
        return layer

    assert same(*both(lambda: run(make, lengths, seen, **given), native_layers, "driven_scan"))


@LENGTHS
@pytest.mark.parametrize("readout_activation", ["identity", "relu"])
def test_the_readout_of_a_mean(readout_activation, lengths):
    model = qornn.Stack.rotations(2, 4, width=5, readout_activation=readout_activation, generator=generator())
    model.grid, y = GRID, whole(3, 9, 5, seed=1)
    with torch.no_grad():
        model.b_o.copy_(torch.randn(4, generator=generator()))

    def read():
        out = model.read_mean(y, lengths)
        loss = (out * torch.randn(out.shape, generator=generator(5))).sum()
        return [out, *torch.autograd.grad(loss, (y, model.V, model.b_o))]

    ours = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_weights, "usable", lambda *_: False)
        assert same(ours, read())
    assert ours[0].grad_fn.name() == "_MeanReadoutBackward"


def test_inputs_that_are_not_dense():
    x = whole(9, 3, 6, seed=1)
    for make in (lambda: Mix(6, 5, bits=4, generator=generator()), lambda: Rotations(6, 5, bits=4, state_bits=8)):
        layer = make()
        layer.reads(GRID, None)
        layer.eval()
        assert torch.equal(layer(x.transpose(0, 1))[0], layer(x.transpose(0, 1).contiguous())[0])


def test_a_second_derivative_is_refused():
    x = whole(2, 4, 6, seed=1)
    for layer in (Mix(6, 5, bits=4), Rotations(6, 5, bits=4, state_bits=8)):
        layer.reads(GRID, None)
        with pytest.raises(SettingsError, match="no second derivatives"):
            torch.autograd.grad(layer(x)[0].square().sum(), x, create_graph=True)


def test_what_does_not_belong_together_is_refused():
    x, C, c, step = torch.zeros(2, 3), torch.zeros(4, 5), torch.zeros(4), torch.ones(())
    mixing = native_weights.MixGrids(step, step, None, 4, 1, 1, 1)
    turns = native_weights.TurnGrids(None, None, 4, 8, 0)
    with pytest.raises(SettingsError, match="x must be"):
        native_layers.mix(x, None, C, None, c, mixing, step, 127)
    with pytest.raises(SettingsError, match="x must be"):
        native_layers.driven_scan(x[None], C, c[:2], c[:2], x, None, turns, 127, 1.0)


def test_a_gradient_that_is_the_same_at_every_step():
    """A mean's gradient is a view with one row per sequence; it is read as such."""
    B, T = 7, 150  # sequences begin within the kernel's blocks of rows, and parts of sums within sequences
    x = whole(B, T, 6, seed=1)
    layer = Mix(6, 5, bits=4, generator=generator())
    layer.reads(GRID, None)
    layer(x)
    y, _ = layer(x)
    dy = torch.randn(B, 1, 5, generator=generator(3)).expand(B, T, 5)
    wanted = [x, *layer.parameters()]
    ours = torch.autograd.grad(y, wanted, dy, retain_graph=True)
    assert same(ours, torch.autograd.grad(y, wanted, dy.contiguous()))


def test_inputs_of_other_types_and_devices_go_to_torch():
    W, x = torch.zeros(3, 4), torch.zeros(2, 5, 4)
    assert native_layers.usable(W, x, None)
    assert not native_layers.usable(W, x.double())
    assert not native_layers.usable(W, x, x.to("meta"))
    assert not native_layers.usable(torch.zeros(1000, 1000), x)
