"""The native kernel against its specification: every output and gradient, on each instruction set this machine has."""

import itertools
import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn import functional as F

from qornn.errors import SettingsError
from qornn.recurrence import ACTIVATIONS, in_use, native, recurrence, recurrence_with_readout, reference

pytestmark = pytest.mark.skipif(native.library() is None, reason="qornn was installed without its native kernel")

TOLERANCE = 2e-5  # relative to the norm: float32 sums in another order


def problem(B, T, n_h, n_i, activation, codes, masked, seed=0):
    """Arguments of the recurrence, tame enough that two orders of summation agree, and a readout."""
    g = torch.Generator().manual_seed(seed)

    def draw(*shape, scale=0.5):
        return (scale * torch.randn(*shape, generator=g)).requires_grad_()

    x = torch.randint(0, n_i, (B, T), generator=g) if codes else draw(B, T, n_i, scale=1.0)
    W = torch.linalg.qr(torch.randn(n_h, n_h, generator=g)).Q.contiguous().requires_grad_()
    # b < 0: with b > 0 modReLU jumps at 0, where the last bit of z decides.
    b = (-0.25 * torch.rand(n_h, generator=g)).requires_grad_() if activation == "modrelu" else None
    lengths = torch.randint(1, T + 1, (B,), generator=g) if masked else None
    return (x, W, draw(n_h, n_i), b, draw(B, n_h), lengths, activation), draw(3, n_h), draw(3)


def run(functions, arguments, V, b_o, readout):
    """The output read, the last state, and the gradient of everything that has one."""
    x, W, U, b, h0, lengths, activation = arguments
    plain, with_readout = functions
    if readout == "y":
        out, last = with_readout(x, W, U, b, V, b_o, h0, lengths, activation)
    else:
        out, last = plain(*arguments)
    loss = (last * last).sum()
    if readout != "last":
        loss = loss + (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum()
    wanted = [t for t in (x, W, U, b, h0, V, b_o) if t is not None and t.requires_grad]
    return [out.detach(), last.detach(), *torch.autograd.grad(loss, wanted, allow_unused=True)]


def specification(x, W, U, b, V, b_o, h0, lengths, activation):
    states, last = reference.recurrence(x, W, U, b, h0, lengths, activation)
    return F.linear(states, V, b_o), last


def assert_equal_to_the_reference(arguments, V, b_o, readout):
    ours = run((recurrence, recurrence_with_readout), arguments, V, b_o, readout)
    theirs = run((reference.recurrence, specification), arguments, V, b_o, readout)
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert (a is None) == (b is None), number
        if a is not None:
            assert a.shape == b.shape
            # 0.05: where terms of order one cancel, their float32 roundings, some 1e-7 each, stay.
            assert float((a - b).norm()) <= TOLERANCE * (float(b.norm()) + 0.05), number


SHAPES = [(1, 1, 1, 1), (3, 5, 7, 2), (9, 4, 33, 6), (17, 6, 16, 4), (5, 40, 48, 11), (130, 9, 19, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_and_every_gradient_equal_the_reference(isa, shape):
    for activation, codes, masked, readout in itertools.product(
        ACTIVATIONS, [False, True], [False, True], ["states", "last", "y"]
    ):
        assert_equal_to_the_reference(*problem(*shape, activation, codes, masked), readout)


def test_n_h_1025(isa):
    assert_equal_to_the_reference(*problem(3, 3, 1025, 2, "modrelu", codes=False, masked=True), "y")


@given(
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(1, 70),
    st.integers(1, 9),
    st.sampled_from(ACTIVATIONS),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["states", "last", "y"]),
    st.integers(0, 10**6),
)
def test_any_shape(B, T, n_h, n_i, activation, codes, masked, readout, seed):
    arguments, V, b_o = problem(B, T, n_h, n_i, activation, codes, masked, seed)
    assume(to_a_kink(arguments) > 1e-6)  # there the slope jumps, and the last bit of z decides
    assert_equal_to_the_reference(arguments, V, b_o, readout)


@torch.no_grad()
def to_a_kink(arguments):
    """The least distance of any z to where the activation's slope jumps: 0 of ReLU, |z| = -b of modReLU."""
    x, W, U, b, h0, lengths, activation = arguments
    if activation == "identity":
        return math.inf
    states, _ = reference.recurrence(*arguments)
    before = torch.cat([h0[:, None], states[:, :-1]], 1)
    z = before @ W.T + (F.embedding(x, U.T) if x.ndim == 2 else x @ U.T)
    ended = torch.arange(x.shape[1]) >= (x.new_full((len(x),), x.shape[1]) if lengths is None else lengths)[:, None]
    distance = z.abs() if b is None else (z.abs() + b).abs()
    return distance.masked_fill(ended[..., None], math.inf).min()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_bits_every_time(threads):
    arguments, V, b_o = problem(37, 30, 65, 2, "modrelu", codes=False, masked=True)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        first, second = (run((recurrence, recurrence_with_readout), arguments, V, b_o, "y") for _ in range(2))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("lent", [False, True])
def test_no_weight_gradient_is_lost_between_threads(lent):
    """On threads of our own and on torch's, which give the same bits."""
    arguments, V, b_o = problem(64, 50, 64, 3, "tanh", codes=False, masked=False)  # enough work for several threads
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    own = run((recurrence, recurrence_with_readout), arguments, V, b_o, "y")
    native.library().qornn_use_threads(native._torch_threads() if lent else None)
    try:
        assert_equal_to_the_reference(arguments, V, b_o, "y")
        again = run((recurrence, recurrence_with_readout), arguments, V, b_o, "y")
    finally:
        native.library().qornn_use_threads(native._torch_threads())
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(own, again, strict=True))


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_nan_and_inf_propagate_as_in_the_reference(isa, activation, value):
    arguments, _, _ = problem(3, 6, 20, 2, activation, codes=False, masked=False)
    x = arguments[0].detach().clone()
    x[1, 2, 0] = value
    ours, theirs = (f(x, *arguments[1:])[0].detach() for f in (recurrence, reference.recurrence))
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert torch.equal(ours.isinf(), theirs.isinf())
    assert ours[[0, 2]].isfinite().all()


def test_what_stands_past_an_end_is_never_read(isa):
    arguments, V, b_o = problem(5, 7, 20, 6, "relu", codes=False, masked=True)
    dirty = arguments[0].detach().clone()
    past = torch.arange(7) >= arguments[5][:, None]
    dirty[past] = math.nan
    clean, padded = (
        run((recurrence, recurrence_with_readout), (x, *arguments[1:]), V, b_o, "states")
        for x in (arguments[0].detach(), dirty)
    )
    assert all(torch.equal(a, b) for a, b in zip(clean, padded, strict=True) if a is not None)


def test_strided_and_expanded_tensors():
    arguments, _, _ = problem(4, 6, 12, 3, "modrelu", codes=False, masked=False)
    x, W, U, b, h0, lengths, activation = (a.detach() if isinstance(a, torch.Tensor) else a for a in arguments)
    strided = (
        x.transpose(0, 1).contiguous().transpose(0, 1),
        W.T.contiguous().T,
        U.T.contiguous().T,
        b[:1].expand(12),
        h0[:1].expand(4, 12),
    )
    plain = (x, W, U, b[:1].repeat(12), h0[:1].repeat(4, 1))
    for ours, theirs in zip(
        recurrence(*strided, lengths, activation), recurrence(*plain, lengths, activation), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_everything_but_float32_on_the_cpu_goes_to_the_reference():
    arguments, _, _ = problem(2, 3, 4, 2, "relu", codes=False, masked=False)
    doubled = [a.double() if isinstance(a, torch.Tensor) else a for a in arguments]
    assert recurrence(*doubled)[0].dtype == torch.float64
    assert in_use().startswith("native")


@pytest.mark.slow
@pytest.mark.parametrize("codes", [False, True])
def test_opcheck(codes):
    (x, W, U, b, h0, lengths, activation), V, b_o = problem(3, 4, 6, 2, "modrelu", codes, masked=True)
    torch.library.opcheck(native.forward_op, (x, W, U, b, V, b_o, h0, lengths, activation, False))
    torch.library.opcheck(native.forward_op, (x, W, U, b, None, None, h0, None, activation, False))


BAD = [
    ("W", torch.zeros(6, 5), r"W must be float32 of shape \(6, 6\)"),
    ("U", torch.zeros(5, 2), r"U must be float32 of shape \(6, 2\)"),
    ("b", torch.zeros(5), r"b must be float32 of shape \(6,\)"),
    ("h0", torch.zeros(2, 6), r"h0 must be float32 of shape \(3, 6\)"),
    ("V", torch.zeros(4, 5), r"V must be float32 of shape \(4, 6\)"),
    ("b_o", torch.zeros(5), r"b_o must be float32 of shape \(3,\)"),
    ("h0", torch.zeros(3, 6, dtype=torch.float64), "h0 must be float32"),
    ("x", torch.zeros(3, 4, 5), r"x must be float32 of shape \(3, 4, 2\)"),
    ("x", torch.zeros(3, 0, 2), "at least one step"),
    ("x", torch.full((3, 4), 2), r"codes must lie in 0\.\.1, got 2\.\.2"),
    ("x", torch.full((3, 4), -1), r"codes must lie in 0\.\.1, got -1\.\.-1"),
    ("x", torch.zeros(3, 4, dtype=torch.int32), "codes must be int64"),
    ("lengths", torch.tensor([1, 2, 5]), r"lengths must lie in 1\.\.4, got 1\.\.5"),
    ("lengths", torch.tensor([0, 2, 4]), r"lengths must lie in 1\.\.4, got 0\.\.4"),
    ("lengths", torch.tensor([1, 2]), r"lengths must be int64 of shape \(3,\)"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_wrong_shapes_and_values_are_refused_before_native_code(name, value, message):
    (x, W, U, b, h0, lengths, activation), V, b_o = problem(3, 4, 6, 2, "modrelu", codes=False, masked=True)
    given = {"x": x, "W": W, "U": U, "b": b, "V": V, "b_o": b_o, "h0": h0, "lengths": lengths} | {name: value}
    with pytest.raises(SettingsError, match=message):
        native.forward_op(*given.values(), activation, False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # dynamo's own
def test_under_torch_compile():
    from qornn.model import OrthogonalRNN

    model = OrthogonalRNN(
        2, 12, 3, bits=4, readout="all", activation="modrelu", generator=torch.Generator().manual_seed(0)
    )
    x = torch.rand(3, 5, 2, generator=torch.Generator().manual_seed(1))
    results = []
    for run_model in (model, torch.compile(model, backend="aot_eager")):
        y, _ = run_model(x)
        results.append([y.detach(), *torch.autograd.grad(y.square().sum(), list(model.parameters()))])
    for plain, compiled in zip(*results, strict=True):
        assert torch.allclose(plain, compiled, atol=1e-5)


def test_no_gradient_tensor_of_every_step_is_made_for_the_last_state(monkeypatch):
    arguments, _, _ = problem(2, 5, 6, 1, "relu", codes=False, masked=False)
    seen = []
    real = native.backward_op
    monkeypatch.setattr(native, "backward_op", lambda *a: seen.append(a[:3]) or real(*a))
    x, *rest = arguments
    recurrence(x.detach(), *rest)[1].sum().backward()
    (dh, dy, dlast) = seen[0]
    assert dh is None
    assert dy is None
    assert dlast is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["native", "reference"])
@pytest.mark.parametrize("readout", ["last", "all"])
def test_codes_are_scanned_once_per_training_step(monkeypatch, dtype, readout):
    from qornn.model import OrthogonalRNN

    model = OrthogonalRNN(4, 6, 2, readout=readout, generator=torch.Generator().manual_seed(0)).to(dtype)
    x, scans, real = torch.tensor([[0, 3, 1], [2, 0, 3]]), [], torch.aminmax
    monkeypatch.setattr(torch, "aminmax", lambda t, **options: scans.append(t) or real(t, **options))
    model(x)[0].sum().backward()
    assert [t.tolist() for t in scans] == [x.tolist()]


def test_the_backward_operator_called_alone_checks_codes():
    (_, W, U, b, h0, _, activation), V, _ = problem(3, 4, 6, 2, "relu", codes=False, masked=False)
    x, h, dy = torch.full((3, 4), 2), torch.zeros(4, 3, 6), torch.zeros(4, 3, len(V))
    with pytest.raises(SettingsError, match=r"codes must lie in 0\.\.1, got 2\.\.2"):
        native.backward_op(None, dy, None, x, W, U, b, V, h0, None, h, activation, False, True, False, False)
