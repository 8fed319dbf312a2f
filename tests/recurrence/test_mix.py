"""A mix and the scan of U x in one call: on every instruction set they equal plain torch."""

import itertools
import math

import pytest
import torch

from qornn.errors import SettingsError
from qornn.recurrence import driven_scan, mix, mixing, native, native_mix

pytestmark = pytest.mark.skipif(native.library() is None, reason="qornn was installed without its native kernel")

TOLERANCE = 2e-5  # of a gradient's norm: float32 sums in another order
MIXES = [
    (1, 1, 1, 1, 0),
    (3, 7, 5, 9, 0),
    (4, 40, 33, 17, 20),
    (64, 125, 32, 16, 16),
    (2, 5, 70, 90, 3),
    (3, 50, 130, 140, 0),
    (2, 9, 512, 256, 40),
]
SCANS = [
    (1, 1, 1, 1),
    (3, 7, 5, 9),
    (5, 40, 33, 17),
    (9, 70, 64, 32),
    (6, 150, 30, 65),
    (64, 33, 16, 16),
    (5, 20, 120, 128),
    (2, 9, 256, 256),
]


def whole(g, *shape, over=1):
    """Small whole numbers: sums of their products are exact in float32, whatever the order."""
    return (torch.randint(-7, 8, shape, generator=g) / over).requires_grad_()


def a_mix(B, T, n, d, m, seed=0):
    g = torch.Generator().manual_seed(seed)
    skip = (whole(g, B, T, m), whole(g, d, m)) if m else (None, None)
    return whole(g, B, T, n), whole(g, d, n), whole(g, d), *skip


def a_scan(B, T, n, p, masked, seed=0):
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, T + 1, (B,), generator=g) if masked else None
    a, b = ((torch.randint(-90, 91, (p,), generator=g) / 128).requires_grad_() for _ in range(2))
    return whole(g, B, T, n), whole(g, 2 * p, n, over=8), a, b, whole(g, B, 2 * p), lengths


def gradients(outputs, inputs, seed=7):
    g = torch.Generator().manual_seed(seed)
    loss = sum((t * torch.randn(t.shape, generator=g)).sum() for t in outputs)
    return torch.autograd.grad(loss, [t for t in inputs if t is not None and t.requires_grad])


def assert_near(ours, theirs):
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert float((a - b).detach().norm()) <= TOLERANCE * (float(b.detach().norm()) + 1), i


@pytest.mark.parametrize("step", [0.0, 4.0])
@pytest.mark.parametrize("shape", MIXES)
def test_a_mix_equals_plain_torch(isa, shape, step):
    inputs, step = a_mix(*shape), torch.tensor(step)
    y, peak = mix(*inputs, step, 100)
    want, largest = mixing.mix(*inputs, step, 100)
    assert torch.equal(y, want)
    assert torch.equal(peak, largest)
    assert not peak.requires_grad
    assert_near(gradients([y], inputs), gradients([want], inputs))


@pytest.mark.parametrize("shape", SCANS)
def test_a_scan_of_products_equals_plain_torch(isa, shape):
    for masked, top, scale in itertools.product((False, True), (0, 127), (1.0, 0.25)):
        inputs = a_scan(*shape, masked)
        ours, theirs = (f(*inputs, top, scale) for f in (driven_scan, mixing.driven_scan))
        if top:
            assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
        else:
            assert_near(ours, theirs)
        assert_near(gradients(ours[:2], inputs), gradients(theirs[:2], inputs))


def test_these_are_not_the_reference(monkeypatch):
    """What is compared above is the kernel."""
    called = []
    monkeypatch.setattr(native_mix, "call", lambda name, *_: called.append(name))
    mix(*a_mix(2, 3, 4, 5, 0))
    driven_scan(*a_scan(2, 3, 4, 5, False))
    assert called == ["qornn_mix_forward", "qornn_driven_scan"]


def test_all_sums_below_zero_have_their_largest_as_peak(isa):
    x, C, c, *_ = (None if t is None else t.detach() for t in a_mix(3, 7, 5, 9, 0))
    y, peak = mix(x, C, c - 1000, None, None, 0.5)
    assert not y.any()
    assert float(peak) == float((x @ C.T + c - 1000).max()) < 0


def test_nan_stays_visible(isa):
    x, C, c, *_ = (None if t is None else t.detach().clone() for t in a_mix(3, 7, 5, 9, 0))
    x[1, 2, 3] = math.nan
    y, peak = mix(x, C, c, None, None, 0.5)
    assert math.isnan(peak)
    assert y.isnan().any(-1).nonzero().tolist() == [[1, 2]]
    z, U, a, b, z0, _ = (None if t is None else t.detach().clone() for t in a_scan(3, 7, 5, 9, False))
    z[1, 2, 3] = math.nan
    states, _, _ = driven_scan(z, U, a, b, z0, None, 127)
    assert states.isnan().any(-1).nonzero().tolist() == [[1, t] for t in range(2, 7)]


def test_what_stands_past_an_end_is_never_read(isa):
    x, *rest = a_scan(6, 70, 20, 20, True)
    dirty = x.detach().clone()
    dirty[torch.arange(70) >= rest[-1][:, None]] = math.nan
    found = []
    for given in (x.detach().clone().requires_grad_(), dirty.requires_grad_()):
        outputs = driven_scan(given, *rest, 127)
        found.append([*outputs, *gradients(outputs[:2], (given, *rest))])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_the_number_of_threads_changes_no_bit():
    before, found = torch.get_num_threads(), []
    mixed, scanned = a_mix(64, 125, 32, 33, 16), a_scan(37, 90, 33, 40, True)
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            y, states = mix(*mixed, 4.0), driven_scan(*scanned, 127)
            found.append([*y, *states, *gradients(y[:1], mixed), *gradients(states[:2], scanned)])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_wide_matrices_and_other_types_go_to_torch(monkeypatch):
    monkeypatch.setattr(native_mix, "call", lambda *_: pytest.fail("native"))
    mix(*a_mix(1, 2, 400, 400, 0))
    driven_scan(*a_scan(1, 2, 400, 200, False))
    mix(*(None if t is None else t.double() for t in a_mix(2, 3, 4, 5, 0)))


@pytest.mark.parametrize("native_too", [False, True])
def test_what_does_not_fit_together_is_refused(monkeypatch, native_too):
    if not native_too:
        monkeypatch.setattr(native_mix, "usable", lambda *_: False)
    x, C, c, skip, S = a_mix(2, 3, 4, 5, 6)
    with pytest.raises(SettingsError, match=r"x must be torch.float32 of shape \(2, 3, 4\)"):
        mix(x[..., :3], C, c)
    with pytest.raises(SettingsError, match="both a skip and S"):
        mix(x, C, c, skip)
    with pytest.raises(SettingsError, match=r"skip must be torch.float32 of shape \(2, 3, 6\)"):
        mix(x, C, c, skip[:1], S)
    y, U, a, b, z0, _ = a_scan(2, 3, 4, 5, False)
    with pytest.raises(SettingsError, match=r"U must be torch.float32 of shape \(10, 4\)"):
        driven_scan(y, U[:9], a, b, z0)
    with pytest.raises(SettingsError, match=r"z0 must be torch.float32 of shape \(2, 10\)"):
        driven_scan(y, U, a, b, z0[:1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # dynamo's own
def test_under_torch_compile():
    mixed, scanned = a_mix(2, 3, 4, 5, 6), a_scan(2, 3, 4, 5, False)

    def both(mixed, scanned):
        return mix(*mixed, 0.5)[0], *driven_scan(*scanned, 127)[:2]

    found = []
    for function in (both, torch.compile(both, backend="aot_eager", fullgraph=True)):
        outputs = function(mixed, scanned)
        found.append([*outputs, *gradients(outputs, (*mixed, *scanned))])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.slow
def test_opcheck():
    torch.library.opcheck(native_mix.mix_op, (*a_mix(2, 3, 4, 5, 6), torch.tensor(0.5), 127))
    torch.library.opcheck(native_mix.scan_op, (*a_scan(2, 3, 4, 5, True), 127, 0.25))
