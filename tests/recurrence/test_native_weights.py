"""Weights on their grids in one native call: the same bits as the plain torch that specifies them."""

import itertools
import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import qornn
from qornn.errors import SettingsError
from qornn.model.entry import Entry
from qornn.model.layer import Grid
from qornn.model.mix import Mix
from qornn.model.rotations import Rotations
from qornn.model.steps import Steps
from qornn.recurrence import native, native_weights

pytestmark = pytest.mark.skipif(native.library() is None, reason="qornn was installed without its native kernel")

BITS = range(2, 9)
STRANGE = (0.0, -0.0, 1e-45, 1e-30, 3e38, 0.5, 1.5, -2.5, 0.49999997, math.nan, math.inf, -math.inf)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def both(call):
    """What the native call gives and what plain torch does."""
    assert native_weights.usable(torch.zeros(()))
    ours = call()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_weights, "usable", lambda *_: False)
        return ours, call()


def same(ours, theirs):
    return all(
        a is b is None or (a.dtype == b.dtype and torch.equal(a.nan_to_num(7e7, 8e8), b.nan_to_num(7e7, 8e8)))
        for a, b in zip(ours, theirs, strict=True)
    )


def with_gradients(weights, parameters):
    """The weights, and the gradients of a sum of them."""
    g = generator(3)
    loss = sum((w * torch.randn(w.shape, generator=g)).sum() for w in weights if w is not None)
    return [*weights, *torch.autograd.grad(loss, parameters, allow_unused=True)]


def set_step_(steps, *exponents):
    steps.step.copy_(torch.tensor([2.0**e for e in exponents]).view(steps.step.shape))
    steps.started = True


def a_mix(bits, skip, started, seed=0):
    g = generator(seed)
    layer = Mix(9, 8, skip=skip, bits=bits, generator=g)
    scale = 2.0 ** torch.randint(-20, 4, (8, 1), generator=g)
    with torch.no_grad():
        layer.C_raw.mul_(scale)[0] = 0  # a row of zeros, and rows of all sizes
        layer.c.copy_(torch.randn(8, generator=g) * 10.0 ** torch.randint(-6, 6, (8,), generator=g))
        if layer.S_raw is not None:
            layer.S_raw.mul_(scale.flip(0))[:2] = 0  # with C, a row of nothing but zeros
    layer.reads(Grid(torch.tensor(2.0**-4), 127), Grid(torch.tensor(0.25), 128) if skip else None)
    if started:
        set_step_(layer.steps, -3)
    return layer


@pytest.mark.parametrize("bits", BITS)
def test_weights_of_a_mix(bits):
    for skip, started, seed in itertools.product((0, 5), (False, True), range(5)):
        layer = a_mix(bits, skip, started, seed)
        ours, theirs = both(lambda layer=layer: with_gradients(layer.weights(), list(layer.parameters())))
        assert same(ours, theirs), (skip, started, seed)


def rotations(bits, lambda_bits, started, read, seed=0):
    g = generator(seed)
    layer = Rotations(7, 6, bits=bits, state_bits=8, lambda_bits=lambda_bits, ring=(0, 1), integrators=1, generator=g)
    with torch.no_grad():
        layer.U_raw.mul_(2.0 ** torch.randint(-20, 4, (12, 1), generator=g))[3] = 0
    layer.reads(Grid(torch.tensor(2.0**-5), 127) if read else None, None)
    if started:
        set_step_(layer.steps, *range(-9, 3, 2))
    return layer


@pytest.mark.parametrize("bits", BITS)
def test_weights_of_rotations(bits):
    for lambda_bits, started, read, seed in itertools.product((8, 12), (False, True), (False, True), range(3)):
        layer = rotations(bits, lambda_bits, started, read, seed)
        step, raw = layer.steps.step if started else None, [layer.U_raw, layer.nu, layer.phi]
        ours, theirs = both(lambda a=(layer, step, raw): with_gradients(a[0].weights(a[1]), a[2]))
        assert same(ours, theirs), (lambda_bits, started, read, seed)


def test_lambda_on_the_whole_disc():
    """Radii up to 1 at all angles: many points round to outside of the disc."""
    for lambda_bits in range(8, 13):
        layer = Rotations(1, 20_000, bits=4, lambda_bits=lambda_bits, ring=(0.99, 1), generator=generator(lambda_bits))
        with torch.no_grad():
            layer.nu.sub_(5)
        ours, theirs = both(lambda layer=layer: layer.weights(None))
        assert same(ours, theirs)


@pytest.mark.parametrize("bits", BITS)
def test_weights_of_the_readout(bits):
    for seed, factor in itertools.product(range(3), (0.0, 1e-3, 1e4)):
        g = generator(seed)
        model = qornn.Stack.rotations(2, 3, width=5, bits=bits, generator=g)
        model.grid = Grid(torch.tensor(2.0**-6), 127)
        with torch.no_grad():
            model.V.mul_(factor)
            model.b_o.copy_(torch.randn(3, generator=g) * 100)
        ours, theirs = both(lambda model=model: with_gradients(model.readout_weights(), [model.V, model.b_o]))
        assert same(ours, theirs)


@given(st.lists(st.sampled_from(STRANGE), min_size=18, max_size=18))
def test_strange_numbers_and_nan_are_treated_alike(values):
    """NaN stays where it was, and an infinity makes its row NaN."""
    mixing, turning = Mix(3, 2, skip=3, bits=4), Rotations(3, 2, bits=4, state_bits=8)
    given = torch.tensor(values)
    with torch.no_grad():
        mixing.C_raw.copy_(given[:6].view(2, 3))
        mixing.S_raw.copy_(given[6:12].view(2, 3))
        mixing.c.copy_(given[12:14])
        turning.U_raw.copy_(given[:12].view(4, 3))
        turning.nu.copy_(given[14:16])
        turning.phi.copy_(given[16:18])
    grid = Grid(torch.tensor(2.0**-4), 127)
    mixing.reads(grid, grid)
    turning.reads(grid, None)
    set_step_(turning.steps, -4, 2)
    assert same(*both(mixing.weights))
    assert same(*both(lambda: turning.weights(turning.steps.step)))


GAINS = (1.0, 128.0, 0.3, 37.123456789, 1e6, math.nextafter(0.5, 0))  # the last leaves 1 just below a tie


@given(st.lists(st.floats(width=32), min_size=1, max_size=40), st.sampled_from(GAINS))
def test_inputs_are_rounded_alike(values, gain):
    for bits in (2, 8, 16):
        entry = Entry(bits)
        entry.hold(gain, 2.0**-3)
        x = torch.tensor([*values, 1.0, 0.5 / gain, -1.5 / gain, math.nan]).view(1, -1, 1)
        ours, theirs = both(lambda entry=entry, x=x: entry(x))
        assert same([ours], [theirs])


@given(st.lists(st.tuples(st.floats(0, 2.0**120, width=32), st.integers(-61, 61)), min_size=1, max_size=9))
@example([(2.0**100, 59), (2.0**100, 60), (0.0, -59), (0.0, -60)])  # the largest and the smallest stay
def test_steps_move_alike(drawn):
    def moved():
        steps = Steps(127, len(drawn))
        set_step_(steps, *(exponent for _, exponent in drawn))
        steps.peak.copy_(torch.tensor([peak for peak, _ in drawn]))
        factors = [steps.move(), steps.step.clone()]
        steps.see(torch.full((len(drawn),), 3.0), in_steps=True)
        steps.see(torch.linspace(0, 1, len(drawn)))
        return *factors, steps.peak, steps.step

    assert same(*both(moved))


def test_a_nan_peak_stays_one():
    steps = Steps(127, 2)
    set_step_(steps, 0, 0)
    steps.see(torch.tensor([127.0, 127.0]))
    steps.see(torch.tensor([1.0, math.nan]))
    assert steps.peak.isnan().tolist() == [False, True]
    steps.peak[0] = 1.0
    assert steps.move().tolist() == [2, 1]


@given(st.lists(st.floats(0, 2.0**120, width=32), min_size=1, max_size=9))
def test_what_was_silent_is_seen_alike(values):
    def seen():
        steps = Steps(127, len(values))
        for _ in range(2):
            steps.see(torch.tensor(values))
        steps.see(torch.flip(torch.tensor(values), [0]))
        return steps.step, steps.peak

    assert same(*both(seen))


@pytest.mark.parametrize("options", [{}, {"skip": True}, {"bits": 2}, {"bits": 8, "state_bits": 12}, {"pool": "last"}])
def test_a_training_has_the_same_bits(options):
    def trained():
        g = generator(0)
        model = qornn.Stack.rotations(3, 2, width=8, generator=g, **options)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
        x, target = torch.randn(8, 30, 3, generator=g), torch.randint(2, (8,), generator=g)
        for _ in range(25):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x)[0], target).backward()
            optimizer.step()
        return list(model.state_dict().values())

    assert same(*both(trained))


def test_a_backward_pass_after_steps_have_moved_uses_those_of_its_own_forward_pass():
    layer = rotations(4, 8, started=True, read=True)

    def gradient(moving):
        set_step_(layer.steps, *range(-9, 3, 2))
        U, _, _ = layer.weights(layer.steps.step)
        if moving:
            layer.steps.step.mul_(2)
        return torch.autograd.grad(U.sum(), layer.U_raw)[0]

    assert torch.equal(gradient(False), gradient(True))


def test_these_are_not_the_reference(monkeypatch):
    """What is compared above is native."""
    called = []
    real = native_weights._function
    monkeypatch.setattr(native_weights, "_function", lambda name: called.append(name) or real(name))
    model = qornn.Stack.rotations(3, 2, layers=1)
    for _ in range(2):
        model(torch.rand(2, 5, 3))[0].sum().backward()
    assert set(called) == set(native_weights._TYPES)


def test_other_types_and_strides_go_to_torch():
    assert not native_weights.usable(torch.zeros(2, dtype=torch.float64))
    assert not native_weights.usable(torch.zeros(2), torch.zeros(3, 4).T)
    assert not native_weights.usable(torch.zeros(2, device="meta"))


def test_what_does_not_belong_together_is_refused():
    C, c, step = torch.zeros(3, 4), torch.zeros(2), torch.ones(())
    with pytest.raises(SettingsError, match=r"do not belong together: \(3, 4\), \(2,\)"):
        native_weights.mix_weights(C, None, c, native_weights.MixGrids(step, step, None, 4, 1, 1, 1))
    with pytest.raises(SettingsError, match="do not belong together"):
        native_weights.turn_weights(C, c, c, native_weights.TurnGrids(None, None, 4, 8, 0))
    with pytest.raises(SettingsError, match="do not belong together"):
        native_weights.readout_weights(C, c, step, bits=4)
    with pytest.raises(SettingsError, match="do not belong together"):
        native_weights.see_peak_(c, c, C, 127, 0.5, (0.0, 1.0), in_steps=False)
    with pytest.raises(SettingsError, match="do not belong together"):
        native_weights.move_steps(c, C, 127, 0.4, (0.0, 1.0))
