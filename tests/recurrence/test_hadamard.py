"""A 1-D W, u of diag(u) S/√n_h: as the specification has it, as a dense matrix, and native; and what came with it."""

import itertools
import math

import pytest
import torch
from torch.nn import functional as F

from qornn.errors import SettingsError
from qornn.recurrence import ACTIVATIONS, native, recurrence, recurrence_with_readout, reference

TOLERANCE = 2e-5  # relative to the norm: float32 sums in another order
EXACT = 1e-11  # the same in float64
needs_native = pytest.mark.skipif(native.library() is None, reason="qornn was installed without its native kernel")


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def sylvester(n):
    S = torch.ones(1, 1, dtype=torch.float64)
    while len(S) < n:
        S = torch.cat([torch.cat([S, S], 1), torch.cat([S, -S], 1)])
    return S


def written_out(u):
    """W = diag(u) S/√n_h as a dense matrix, differentiable in u."""
    return u[:, None] * sylvester(len(u)).to(u.dtype) / math.sqrt(len(u))


def problem(B, T, n_h, n_i, activation, *, codes=False, masked=False, bias=True, seed=0, dtype=torch.float32):
    """Everything recurrence_with_readout takes, signs u for W; all that has a gradient asks for it."""
    g = torch.Generator().manual_seed(seed)

    def draw(*shape, scale=0.5):
        return (scale * torch.randn(*shape, generator=g, dtype=torch.float64)).to(dtype).requires_grad_()

    # b < 0: with b > 0 modReLU jumps at 0, where the last bit of z decides.
    b = (-0.25 * torch.rand(n_h, generator=g, dtype=torch.float64)).to(dtype).requires_grad_() if bias else None
    return {
        "x": torch.randint(0, n_i, (B, T), generator=g) if codes else draw(B, T, n_i, scale=1.0),
        "W": (2.0 * torch.randint(0, 2, (n_h,), generator=g) - 1).to(dtype).requires_grad_(),
        "U": draw(n_h, n_i),
        "b": b,
        "V": draw(3, n_h),
        "b_o": draw(3),
        "h0": draw(B, n_h),
        "lengths": torch.randint(1, T + 1, (B,), generator=g) if masked else None,
        "activation": activation,
    }


def results(function, given, relu):
    """y, the last state, and the gradient of everything that asks for one."""
    y, last = function(**given, readout_relu=relu)
    weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view(y.shape)
    wanted = [v for v in given.values() if isinstance(v, torch.Tensor) and v.requires_grad]
    return [y.detach(), last.detach(), *torch.autograd.grad((y * weights).sum() + (last**2).sum(), wanted)]


def specification(x, W, U, b, V, b_o, h0, lengths, activation, readout_relu):
    states, last = reference.recurrence(x, W, U, b, h0, lengths, activation)
    return F.linear(states.relu() if readout_relu else states, V, b_o), last


def dense(W, **rest):
    return specification(W=written_out(W), **rest)


def plain_loop(x, W, U, b, V, b_o, h0, lengths, activation, readout_relu):
    """The equations one step at a time, W written out, gradients by autograd."""
    x = F.one_hot(x, U.shape[1]).to(W.dtype) if x.ndim == 2 else x
    h, states = h0, []
    for t in range(x.shape[1]):
        z = h @ written_out(W).T + x[:, t] @ U.T
        if activation == "modrelu":
            h = z.sign() * torch.relu(z.abs() + b)
        else:
            z = z if b is None else z + b
            h = {"relu": torch.relu, "tanh": torch.tanh, "identity": lambda z: z}[activation](z)
        states.append(h)
    states = torch.stack(states, 1)  # (B, T, n_h)
    if lengths is None:
        last = states[:, -1]
    else:
        last = states[torch.arange(len(x)), lengths - 1]
        states = states * (torch.arange(x.shape[1]) < lengths[:, None])[..., None]
    return F.linear(torch.relu(states) if readout_relu else states, V, b_o), last


def assert_close(ours, theirs, tolerance):
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert a.shape == b.shape, number
        assert float((a - b).norm()) <= tolerance * (float(b.norm()) + 1e-3), number


CASES = list(itertools.product(ACTIVATIONS, [False, True], [False, True], [False, True]))  # codes, masked, relu


def test_transform_is_sylvesters_matrix():
    for n in (1, 2, 4, 64):
        assert torch.equal(reference.transform(torch.eye(n, dtype=torch.float64)), sylvester(n))


@pytest.mark.parametrize("n_h", [2, 8, 32])
@pytest.mark.parametrize(("activation", "codes", "masked", "relu"), CASES)
def test_the_specification_equals_the_matrix_written_out(n_h, activation, codes, masked, relu):
    given = problem(3, 6, n_h, 2, activation, codes=codes, masked=masked, dtype=torch.float64)
    ours = results(recurrence_with_readout, given, relu)
    assert_close(ours, results(dense, given, relu), EXACT)
    assert_close(ours, results(plain_loop, given, relu), EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_equal_finite_differences(activation, relu):
    given = problem(2, 4, 4, 2, activation, masked=True, dtype=torch.float64)
    names = ("x", "W", "U", "b", "V", "b_o", "h0")

    def outputs(*tensors):
        return recurrence_with_readout(**(given | dict(zip(names, tensors, strict=True))), readout_relu=relu)

    assert torch.autograd.gradcheck(outputs, tuple(given[name] for name in names))


@pytest.mark.slow
@needs_native
@pytest.mark.parametrize("n_h", [2, 4, 8, 16, 32, 64, 128])
def test_native_outputs_and_every_gradient_equal_the_specification(isa, threads, n_h):
    for activation, codes, masked, relu in CASES:
        given = problem(19, 5, n_h, 2, activation, codes=codes, masked=masked, bias=activation != "tanh")
        assert_close(results(recurrence_with_readout, given, relu), results(specification, given, relu), TOLERANCE)


@pytest.mark.slow
@needs_native
@pytest.mark.parametrize("n_h", [256, 512, 1024, 2048])
def test_native_equals_the_matrix_written_out_in_float64(isa, threads, n_h):
    """Two passes over a row and more, many channels, and on two threads work enough for both."""
    given = problem(33, 12, n_h, 6, "identity", masked=True)
    exact = {
        k: v.detach().double().requires_grad_() if v is not None and k not in ("lengths", "activation") else v
        for k, v in given.items()
    }
    theirs = [t.float() for t in results(dense, exact, True)]
    assert_close(results(recurrence_with_readout, given, True), theirs, TOLERANCE)


@needs_native
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_the_states_and_of_dense_weights_with_bias_and_relu(isa, masked):
    for activation, square in itertools.product(ACTIVATIONS, [False, True]):
        given = problem(9, 7, 32, 3, activation, masked=masked)
        if square:
            given["W"] = written_out(given["W"]).detach().requires_grad_()
        assert_close(results(recurrence_with_readout, given, True), results(specification, given, True), TOLERANCE)
        x, W, U, b, _, _, h0, lengths, _ = given.values()
        gradients = []
        for function in (recurrence, reference.recurrence):
            states, last = function(x, W, U, b, h0, lengths, activation)
            gradients.append(torch.autograd.grad((states**2).sum() + last.sum(), (x, W, U, b, h0)))
        assert_close(*gradients, TOLERANCE)


@needs_native
@pytest.mark.parametrize("square", [False, True])
def test_a_frozen_W_changes_no_other_gradient_and_its_own_is_not_computed(isa, monkeypatch, square):
    given = problem(9, 7, 32, 6, "relu")
    W = written_out(given["W"]).detach() if square else given["W"].detach()
    learned = results(recurrence_with_readout, given | {"W": W.clone().requires_grad_()}, True)
    made = []
    real = native.backward_op
    monkeypatch.setattr(native, "backward_op", lambda *a: made.append(real(*a)) or made[-1])
    frozen = results(recurrence_with_readout, given | {"W": W}, True)
    del learned[3]  # y, last, x, W, …
    assert all(torch.equal(a, b) for a, b in zip(frozen, learned, strict=True))
    assert made[0][0].numel() == 0


@needs_native
def test_the_same_bits_every_time(threads):
    given = problem(64, 200, 64, 2, "identity", masked=True)
    first, second = (results(recurrence_with_readout, given, True) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@needs_native
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_inf_propagate_as_in_the_specification(isa, value):
    given = problem(3, 6, 16, 2, "identity")
    given["x"] = given["x"].detach().clone()
    given["x"][1, 2, 0] = value
    ours, theirs = (f(**given, readout_relu=True)[0].detach() for f in (recurrence_with_readout, specification))
    assert torch.equal(ours.isnan(), theirs.isnan())
    assert ours[[0, 2]].isfinite().all()
    assert ours[1, :2].isfinite().all()


@needs_native
def test_what_stands_past_an_end_is_never_read(isa):
    given = problem(5, 7, 16, 6, "identity", masked=True)
    clean = given["x"].detach()
    past = (torch.arange(7) >= given["lengths"][:, None])[..., None]
    dirty = clean.masked_fill(past, math.nan)
    ours, theirs = (results(recurrence_with_readout, given | {"x": x}, True) for x in (clean, dirty))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.slow
@needs_native
@pytest.mark.parametrize("learned", [False, True])
def test_opcheck(learned):
    given = problem(3, 4, 8, 2, "identity", masked=True)
    given["W"].requires_grad_(learned)
    torch.library.opcheck(native.forward_op, (*given.values(), True))


@pytest.mark.slow
@needs_native
@pytest.mark.filterwarnings("ignore")  # dynamo's own
def test_under_torch_compile():
    given = problem(3, 4, 8, 2, "identity", masked=True)
    compiled = torch.compile(recurrence_with_readout, backend="aot_eager")
    assert_close(results(compiled, given, True), results(recurrence_with_readout, given, True), TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_n_h_must_be_a_power_of_two(dtype):
    given = problem(3, 4, 12, 2, "identity", dtype=dtype)
    with pytest.raises(SettingsError, match="must be a power of 2, got 12; the nearest: 8 or 16"):
        recurrence_with_readout(**given)
