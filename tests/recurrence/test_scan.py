"""The scan of rotations and the rounded ReLU: the reference worked by hand, and the kernels against the reference."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import SettingsError
from qornn.recurrence import native, native_rotations, rotations, rounded_relu, scan

needs_native = pytest.mark.skipif(native.library() is None, reason="qornn was installed without its native kernel")

# Relative to the norm: sums in another order, and fused multiply-adds.
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}
DTYPES = (torch.float32, torch.float64)


def problem(B, T, p, masked, dtype, seed=0):
    """Arguments whose sums are exact in float32, as training's are: λ in 128ths, the drive in 8ths."""
    g = torch.Generator().manual_seed(seed)

    def draw(most, *shape, over=1):
        return (torch.randint(-most, most + 1, shape, generator=g) / over).to(dtype).requires_grad_()

    lengths = torch.randint(1, T + 1, (B,), generator=g) if masked else None
    return (
        draw(400, B, T, 2 * p, over=8),
        draw(90, p, over=128),
        draw(90, p, over=128),
        draw(30, B, 2 * p),
        lengths,
    )


def run(function, arguments, top, reads="both", scale=1.0):
    """States, last state, peak, and the gradients of drive, a, b and z0."""
    states, last, peak = function(*arguments, top, scale)
    g = torch.Generator().manual_seed(7)
    loss = 0
    for name, t in (("states", states), ("last", last)):
        if reads in (name, "both"):
            loss = loss + (t * torch.randn(t.shape, generator=g, dtype=t.dtype)).sum()
    return [states.detach(), last.detach(), peak, *torch.autograd.grad(loss, arguments[:4])]


def assert_equal_to_the_reference(arguments, top, reads="both", scale=1.0):
    ours, theirs = (run(f, arguments, top, reads, scale) for f in (scan, rotations.scan))
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        if top and number < 2:  # whole numbers
            assert torch.equal(a, b), number
        else:  # 1: where terms cancel, the roundings of each stay
            assert float((a - b).norm()) <= TOLERANCE[a.dtype] * (float(b.norm()) + 1), number


def test_a_scan_worked_by_hand():
    # λ = i/2: (4, 0) → (0, 2) + (0.5, 0.5) rounds away from zero to (1, 3) → (−1.5, 0.5) + (0, 0) to (−2, 1)
    drive = torch.tensor([[[0.5, 0.5], [0.0, 0.0], [9.0, -9.0]]])
    states, last, peak = scan(drive, torch.zeros(1), torch.full((1,), 0.5), torch.tensor([[4.0, 0.0]]), None, 7)
    assert states.tolist() == [[[1, 3], [-2, 1], [7, -7]]]  # the last one saturates
    assert last.tolist() == [[7, -7]]
    assert peak.tolist() == [10.0]  # |−9 + (−2)/2|


def test_rounding_is_to_nearest_and_ties_go_away_from_zero():
    v = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.49, -0.49, 2.51, 126.5, -127.0, 300.0])
    drive = v.repeat_interleave(2).view(1, -1, 2)
    zero = torch.zeros(1)
    states, *_ = scan(drive, zero, zero, torch.zeros(1, 2), None, 127)
    assert states[0, :, 0].tolist() == [1, 2, 3, -1, -2, 0, 0, 3, 127, -127, 127]
    assert torch.equal(states[..., 0], states[..., 1])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("function", [scan, rotations.scan], ids=["chosen", "reference"])
def test_gradients_are_those_of_the_linear_scan_where_nothing_is_rounded(function, masked):
    *tensors, lengths = problem(5, 6, 3, masked, torch.float64)
    tensors = [(t.detach() / 10).requires_grad_() for t in tensors]
    assert torch.autograd.gradcheck(lambda *t: function(*t, lengths, 0)[:2], tensors)


@pytest.mark.parametrize("function", [scan, rotations.scan], ids=["chosen", "reference"])
def test_gradients_go_straight_through_rounding_and_saturation(function):
    """They equal those of an unrounded scan, but for a and b, which multiply the rounded states."""
    arguments = problem(3, 5, 4, True, torch.float64)
    rounded, plain = (run(function, arguments, top) for top in (7, 0))
    assert torch.allclose(rounded[3], plain[3])
    assert torch.allclose(rounded[6], plain[6])
    states, G = rounded[0], rounded[3]
    before = torch.cat([arguments[3].detach()[:, None], states[:, :-1]], 1)
    (re, im), (Gre, Gim) = before.chunk(2, -1), G.chunk(2, -1)
    assert torch.allclose(rounded[4], (Gre * re + Gim * im).sum((0, 1)))
    assert torch.allclose(rounded[5], (Gim * re - Gre * im).sum((0, 1)))


def test_peak_is_the_largest_value_before_saturation_and_has_no_gradient():
    drive, a, b, z0, _ = problem(3, 4, 2, False, torch.float32)
    drive = drive.detach().clone()
    drive[1, 2, 3] = -1000
    drive[2, 3, 0] = 5000  # past the end
    states, _, peak = scan(drive, a, b, z0, torch.tensor([4, 4, 3]), 7)
    assert not peak.requires_grad
    assert 990 < float(peak[1]) < 1010
    assert float(peak[0]) < 100
    assert float(states.detach().abs().max()) == 7


@needs_native
@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("p", [1, 3, 16, 17, 33, 130])
def test_the_kernel_equals_the_reference(isa, p, dtype):
    for (B, T), top, masked in itertools.product([(1, 1), (5, 9), (4, 40)], [0, 7, 127], [False, True]):
        assert_equal_to_the_reference(problem(B, T, p, masked, dtype), top)


@needs_native
@pytest.mark.parametrize("reads", ["states", "last"])
def test_what_is_not_read_has_no_gradient(isa, reads):
    for p in (3, 16, 40):
        assert_equal_to_the_reference(problem(6, 7, p, True, torch.float32), 127, reads)


@needs_native
def test_the_kernel_scales_states_as_the_reference_does(isa):
    for p, masked, top, scale in itertools.product((3, 16, 40), (False, True), (0, 127), (2.0**-5, 4.0)):
        assert_equal_to_the_reference(problem(6, 7, p, masked, torch.float32), top, scale=scale)


def test_a_scale_changes_the_states_alone():
    arguments = problem(3, 5, 4, True, torch.float64)
    plain, scaled = (run(scan, arguments, 7, "last", scale) for scale in (1.0, 0.25))
    assert torch.equal(scaled[0], plain[0] / 4)
    assert all(torch.equal(a, b) for a, b in zip(plain[1:], scaled[1:], strict=True))


@needs_native
@given(
    st.integers(1, 13),
    st.integers(1, 12),
    st.integers(1, 150),
    st.integers(0, 200),
    st.booleans(),
    st.sampled_from(DTYPES),
    st.integers(0, 10**6),
)
def test_any_shape(B, T, p, top, masked, dtype, seed):
    assert_equal_to_the_reference(problem(B, T, p, masked, dtype, seed), top)


@needs_native
@pytest.mark.parametrize("lent", [False, True])
def test_the_number_of_threads_changes_no_bit(lent):
    """On threads of our own and on torch's."""
    arguments = problem(37, 40, 33, True, torch.float32)  # enough work for several threads
    acc = arguments[0].detach() - 60
    before, results = torch.get_num_threads(), []
    native.library().qornn_use_threads(native._torch_threads() if lent else None)
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append([*run(scan, arguments, 127), *rounded_relu(acc, 0.25)])
    finally:
        native.library().qornn_use_threads(native._torch_threads())
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@needs_native
@pytest.mark.parametrize("value", [math.nan, -math.nan, math.inf])
@pytest.mark.parametrize("top", [0, 127])
def test_nan_and_inf_propagate_as_in_the_reference(isa, value, top):
    drive, *rest = problem(5, 6, 20, False, torch.float32)
    drive = drive.detach().clone()
    drive[1, 2, 0] = value
    ours, theirs = (f(drive, *rest, top) for f in (scan, rotations.scan))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a.isnan(), b.isnan())
        assert torch.equal(a.isinf(), b.isinf())


@needs_native
def test_what_stands_past_an_end_is_never_read(isa):
    drive, *rest = problem(6, 7, 20, True, torch.float32)
    dirty = drive.detach().clone()
    dirty[torch.arange(7) >= rest[-1][:, None]] = math.nan
    clean, padded = (run(scan, (x.detach().requires_grad_(), *rest), 127) for x in (drive, dirty))
    assert all(torch.equal(a, b) for a, b in zip(clean, padded, strict=True))


def test_strided_and_expanded_tensors():
    drive, a, b, z0, _ = (None if t is None else t.detach() for t in problem(4, 6, 5, False, torch.float32))
    strided = (drive.transpose(0, 1).contiguous().transpose(0, 1), a[:1].expand(5), b, z0[:1].expand(4, 10))
    plain = (drive, a[:1].repeat(5), b, z0[:1].repeat(4, 1))
    for ours, theirs in zip(scan(*strided, None, 127), scan(*plain, None, 127), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("step", [0.0, 0.25, 2.0])
def test_rounded_relu(isa, step, dtype):
    g = torch.Generator().manual_seed(0)
    for shape in [(1,), (3, 5), (2, 16), (7, 9, 33), (70001,)]:
        acc = (torch.randint(-900, 900, shape, generator=g) / 16).to(dtype)
        for given_ in (acc, -acc.abs() - 1):  # all below zero: the largest is, too
            ours, theirs = given_.clone().requires_grad_(), given_.clone().requires_grad_()
            y, peak = rounded_relu(ours, step, 100)
            expected, largest = rotations.rounded_relu(theirs, torch.tensor(step, dtype=dtype), 100)
            assert torch.equal(y, expected)
            assert torch.equal(peak, largest)
            assert float(peak) == float(given_.max())
            assert not peak.requires_grad
            weights = torch.randn(shape, generator=g, dtype=dtype)
            gradients = (torch.autograd.grad((o * weights).sum(), t)[0] for o, t in ((y, ours), (expected, theirs)))
            for gradient in gradients:
                assert torch.equal(gradient, weights * (given_ > 0))


def test_rounded_relu_by_hand():
    acc = torch.tensor([-3.0, 0.124, 0.125, 0.375, 40.0])
    assert rounded_relu(acc, 0.25, 127)[0].tolist() == [0, 0, 0.25, 0.5, 31.75]
    assert rounded_relu(acc, torch.tensor(0.0))[0].tolist() == acc.relu().tolist()


def test_rounded_relu_keeps_nan(isa):
    for n in (5, 100):
        for at in (0, n - 1):
            acc = torch.linspace(-1, 1, n)
            acc[at] = -math.nan
            y, peak = rounded_relu(acc, 0.25)
            assert math.isnan(peak)
            assert y.isnan().nonzero().tolist() == [[at]]


@needs_native
def test_float64_and_float32_go_native_and_the_rest_to_the_reference(monkeypatch):
    called = []
    monkeypatch.setattr(rotations, "scan", lambda *a: called.append(a[0].dtype))
    for dtype in (*DTYPES, torch.bfloat16):
        drive, a, b, z0, _ = (None if t is None else t.detach() for t in problem(2, 3, 2, False, dtype))
        scan(drive, a, b, z0)
    assert called == [torch.bfloat16]


BAD = [
    ("a", torch.zeros(5), r"drive must be torch.float32 of shape \(3, 4, 10\)"),
    ("b", torch.zeros(5), r"b must be torch.float32 of shape \(6,\)"),
    ("z0", torch.zeros(2, 12), r"z0 must be torch.float32 of shape \(3, 12\)"),
    ("z0", torch.zeros(3, 12, dtype=torch.float64), "z0 must be torch.float32"),
    ("drive", torch.zeros(3, 0, 12), "at least one step"),
    ("lengths", torch.tensor([1, 2, 5]), r"lengths must lie in 1\.\.4, got 1\.\.5"),
    ("lengths", torch.tensor([0, 2, 4]), r"lengths must lie in 1\.\.4, got 0\.\.4"),
    ("lengths", torch.tensor([1, 2]), r"lengths must be int64 of shape \(3,\)"),
    ("top", -1, r"top must lie in 0\.\.8388607, got -1"),
    ("scale", 0.3, r"scale must be a power of two, got 0\.3"),
    ("scale", 0.0, r"scale must be a power of two, got 0\.0"),
    ("top", 1 << 23, r"top must lie in 0\.\.8388607, got 8388608"),
]


@pytest.mark.parametrize("native_too", [False, True], ids=["reference", "chosen"])
@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_wrong_shapes_and_values_are_refused(monkeypatch, native_too, name, value, message):
    if not native_too:
        monkeypatch.setattr(native_rotations, "usable", lambda *_: False)
    drive, a, b, z0, lengths = problem(3, 4, 6, True, torch.float32)
    arguments = {"drive": drive, "a": a, "b": b, "z0": z0, "lengths": lengths, "top": 127} | {name: value}
    with pytest.raises(SettingsError, match=message):
        scan(**arguments)


def test_an_empty_acc_and_a_wrong_top_are_refused():
    with pytest.raises(SettingsError, match="acc must hold at least one value"):
        rounded_relu(torch.zeros(0), 0.5)
    with pytest.raises(SettingsError, match=r"top must lie in 1\.\.8388607, got 0"):
        rounded_relu(torch.zeros(3), 0.5, 0)


@needs_native
def test_the_backward_operator_called_alone_checks_what_it_reads():
    _, a, b, z0, _ = problem(3, 4, 6, False, torch.float32)
    states = torch.zeros(3, 4, 12)
    with pytest.raises(SettingsError, match=r"dstates must be torch.float32 of shape \(3, 4, 12\)"):
        native_rotations.scan_backward_op(torch.zeros(3, 3, 12), None, a, b, z0, None, states, 1.0)
    with pytest.raises(SettingsError, match=r"dlast must be torch.float32 of shape \(3, 12\)"):
        native_rotations.scan_backward_op(None, torch.zeros(3, 6), a, b, z0, None, states, 1.0)


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True])
def test_opcheck(masked):
    drive, a, b, z0, lengths = problem(3, 4, 6, masked, torch.float32)
    torch.library.opcheck(native_rotations.scan_op, (drive, a, b, z0, lengths, 127, 0.25))
    torch.library.opcheck(native_rotations.rounded_relu_op, (drive, torch.tensor(0.25), 127))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        tensors = problem(3, 4, 6, False, torch.float32)[1:4]
        self.a, self.b, self.z0 = (torch.nn.Parameter(t.detach().clone()) for t in tensors)
        self.register_buffer("step", torch.tensor(0.25))

    def forward(self, drive):
        states, last, peak = scan(drive, self.a, self.b, self.z0, None, 127)
        y, most = rounded_relu(states, self.step)
        return y.sum() + last.sum(), peak, most


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # dynamo's own
def test_under_torch_compile_and_torch_export():
    layer, drive = Layer(), problem(3, 4, 6, False, torch.float32)[0].detach()
    results = []
    for function in (layer, torch.compile(layer, backend="aot_eager", fullgraph=True)):
        loss, peak, most = function(drive)
        results.append([loss.detach(), peak, most, *torch.autograd.grad(loss, list(layer.parameters()))])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    exported = torch.export.export(layer, (drive,)).module()
    loss, _, most = exported(drive)  # a program has no largest values of states: training alone needs them
    assert torch.equal(most, layer(drive)[2])
    assert torch.allclose(loss, layer(drive)[0], rtol=1e-6, atol=0)  # sums of y may be taken in another order
