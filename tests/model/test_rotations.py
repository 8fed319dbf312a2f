"""Rotations and Mix: whole numbers on power-of-two grids while they train, and called like torch.nn.RNN."""

import copy

import pytest
import torch

import qornn
from qornn.errors import SettingsError
from qornn.model.entry import Entry, best_step
from qornn.model.steps import Steps, smallest_step
from qornn.quant import PowerOfTwo, on_disc, round_half_away


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def trained(steps=12, seed=0, lr=2e-2, lengths=None, **options):
    """A stack after some steps in which its grids have moved."""
    settings = {"width": 6, "pairs": 5, "layers": 2, "generator": generator(seed)} | options
    n_i, n_o = settings.pop("n_i", 3), settings.pop("n_o", 2)
    model = qornn.Stack.rotations(n_i, n_o, **settings)
    x = torch.randn(16, 20, n_i, generator=generator(1))
    y = torch.randint(n_o, (16,), generator=generator(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for _ in range(steps):
        out, _ = model(x, lengths=lengths)
        out = out if out.ndim == 2 else out.mean(1)
        loss = torch.nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), x


def is_power(values):
    return bool((torch.frexp(values)[0] == 0.5).all())


def whole(values, step):
    return bool((values / step == (values / step).round()).all())


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_units_of_rows_are_powers_of_two_and_nearest_in_ratio(bits):
    W = torch.randn(40, 7, generator=generator()) * torch.logspace(-9, 9, 40)[:, None]
    unit = PowerOfTwo(bits).unit(W)[:, 0]
    assert is_power(unit)
    ratio = W.abs().amax(1) / (2 ** (bits - 1) - 0.5) / unit
    assert float(ratio.min()) >= 0.5**0.5 - 1e-6
    assert float(ratio.max()) <= 2**0.5 + 1e-6


def test_a_row_of_zeros_stays_zero():
    W = torch.randn(3, 4)
    W[1] = 0
    assert not PowerOfTwo(4)(W)[1].any()
    assert not PowerOfTwo(4, scale="tensor")(torch.zeros(3, 4)).any()


@pytest.mark.parametrize("bits", [8, 10, 12])
def test_lambda_never_leaves_the_disc_and_moves_by_less_than_two_units(bits):
    angle = torch.linspace(-3.2, 3.2, 20001, dtype=torch.float64)
    top = 2 ** (bits - 1)
    for radius in (1.0, 0.999, 0.5):
        a, b = radius * angle.cos(), radius * angle.sin()
        A, B = on_disc(a, b, bits)
        assert bool((A.square() + B.square() <= top**2).all())
        assert float(A.min()) >= 1 - top
        assert float(A.max()) <= top
        assert float(B.min()) >= -top
        assert float(B.max()) <= top - 1
        assert float((A - top * a).abs().max()) < 1.6
        assert float((B - top * b).abs().max()) < 1.6
    assert [int(v) for v in on_disc(torch.tensor(1.0), torch.tensor(0.0), bits)] == [top, 0]


def test_steps_follow_the_running_maximum_by_one_power_at_a_time_and_stay_when_frozen():
    steps = Steps(127, 3)
    steps.see(torch.tensor([127.0, 128.0, 0.01]))
    assert steps.step.tolist() == [1, 2, 2**-13]  # the smallest that saturates nothing
    assert steps.move() is None
    steps.see(torch.tensor([1000.0, 3.0, 0.01]))
    assert steps.move().tolist() == [0.5, 1, 1]
    assert steps.step.tolist() == [2, 2, 2**-13]
    for _ in range(200):
        steps.see(torch.tensor([60.0, 3.0, 0.01]))
    while steps.move() is not None:
        pass
    assert steps.step.tolist() == [1, 2**-5, 2**-13]  # 60 is within 0.4 of the range and the range
    steps.freeze()
    steps.see(torch.full((3,), 1e9))
    assert steps.move() is None
    assert float(smallest_step(torch.tensor(0.0), 127)) > 0


def test_what_the_layers_give_lies_on_their_grids():
    model, x = trained(skip=True)
    with torch.no_grad():
        outputs = model.outputs(x)
    for layer, y in zip(model.layers, outputs, strict=True):
        grid = layer.gives()
        assert is_power(grid.step)
        assert whole(y, grid.step)
        assert float(y.abs().max()) <= grid.top * float(grid.step)
        assert is_power(layer.source_step)


def test_a_step_that_moves_changes_no_answer_but_for_rounding():
    """Columns of C move with the steps of the states that they read."""
    model, x = trained(bits=8, state_bits=12)
    before = model(x)[0].detach()
    model.train()
    for layer in model.layers:
        if hasattr(layer, "pairs"):
            layer.steps.peak.copy_(1.1 * layer.steps.top * layer.steps.step)  # all: rows keep their integers
    model._settle()
    model.eval()
    after = model(x)[0].detach()
    assert not torch.equal(before, after)  # something moved
    assert torch.allclose(before, after, atol=0.02 * float(before.abs().max()))


@pytest.mark.parametrize("options", [{}, {"skip": True}, {"pool": "last"}, {"state_bits": None, "bits": None}])
def test_a_sequence_goes_on_from_the_states_it_was_left_in(options):
    model, x = trained(**options)
    _, whole_states = model(x)
    _, middle = model(x[:, :9])
    _, end = model(x[:, 9:], middle)
    tolerance = 1e-5 if options.get("bits", 4) is None else 0.0  # integers go on exactly
    for a, b in zip(end, whole_states, strict=True):
        assert torch.allclose(a, b, atol=tolerance, rtol=tolerance)


def test_a_recurrence_after_rotations_keeps_its_answers_when_steps_move():
    turning = qornn.Rotations(3, 5, bits=8, state_bits=12, generator=generator())
    reading = qornn.OrthogonalRecurrence(10, 6, generator=generator(1))
    model = qornn.Stack([turning, reading], n_o=2, generator=generator(2))
    x = torch.randn(8, 20, 3, generator=generator(3))
    model(x)
    before = model.eval()(x)[0].detach()
    model.train()
    turning.steps.peak.copy_(1.1 * turning.steps.top * turning.steps.step)
    U = reading.U_raw.detach().clone()
    model._settle()
    assert torch.equal(reading.U_raw, 2 * U)
    after = model.eval()(x)[0].detach()
    assert torch.allclose(before, after, atol=0.02 * float(before.abs().max()))


@pytest.mark.parametrize("pool", ["mean", "last", "all"])
def test_padding_changes_nothing(pool):
    model, x = trained(pool=pool)
    lengths = torch.randint(1, 21, (16,), generator=generator(4))
    y, finals = model(x, lengths=lengths)
    for i, length in enumerate(lengths.tolist()):
        alone, ends = model(x[i : i + 1, :length])
        assert torch.equal(y[i, :length] if pool == "all" else y[i], alone[0])
        assert all(torch.equal(a[i], b[0]) for a, b in zip(finals, ends, strict=True))


def test_training_is_the_same_in_one_go_and_from_a_copy_of_the_state():
    settings = {"width": 6, "pairs": 5, "generator": generator()}
    model = qornn.Stack.rotations(3, 2, dropout=0.2, **settings)
    x = torch.randn(8, 15, 3, generator=generator(1))
    model(x)[0].sum().backward()
    other = qornn.Stack.rotations(3, 2, dropout=0.2, **(settings | {"generator": generator(9)}))
    other.load_state_dict(copy.deepcopy(model.state_dict()))
    model.eval(), other.eval()
    assert torch.equal(model(x)[0], other(x)[0])
    assert all(a.steps.started and b.steps.started for a, b in zip(model.layers, other.layers, strict=True))


def test_codes_read_columns():
    model = qornn.Stack.rotations(7, 3, width=6, pairs=4, layers=1, pool="all", generator=generator())
    codes = torch.randint(7, (4, 11), generator=generator(1))
    model(codes)
    model.eval()
    one_hot = torch.nn.functional.one_hot(codes, 7).float()
    stem = model.layers[0]
    assert torch.equal(stem(codes)[0], stem(one_hot)[0])


def test_codes_read_columns_of_rotations_alone():
    layer = qornn.Rotations(5, 4, generator=generator())
    codes = torch.randint(5, (2, 7), generator=generator(1))
    ours, theirs = layer(codes)[0], layer(torch.nn.functional.one_hot(codes, 5).float())[0]
    assert float(ours.detach().abs().max()) > 0
    assert torch.allclose(ours, theirs, atol=1e-6)  # sums of floats in another order


def test_alone_it_is_called_like_an_rnn_and_answers_in_its_own_units():
    layer = qornn.Rotations(3, 8, bits=8, state_bits=12, generator=generator())
    exact = qornn.Rotations(3, 8, generator=generator())
    x = torch.randn(4, 60, 3, generator=generator(1))
    for _ in range(3):
        states, last = (h.detach() for h in layer(x))
    assert states.shape == (4, 60, 16)
    assert torch.equal(states[:, -1], last)
    with torch.no_grad():
        exact.nu[:] = (-layer.eigenvalues()[0].hypot(layer.eigenvalues()[1]).log()).log()
        exact.phi[:] = torch.atan2(*layer.eigenvalues()[::-1]).log()  # λ as the other rounded it
        exact.U_raw.copy_(layer.U_q())
        want, _ = exact(x)
    assert float((states - want).abs().max()) < 0.03 * float(want.abs().max())
    whole_, end = layer(x[:, 30:], layer(x[:, :30])[1])
    assert torch.equal(end, layer(x)[1])
    assert torch.equal(whole_, layer(x)[0][:, 30:])


def test_integrators_sum_what_they_read():
    layer = qornn.Rotations(1, 3, integrators=1, bits=8, generator=generator()).eval()
    a, b = (v.detach() for v in layer.eigenvalues())
    assert (float(a[-1]), float(b[-1])) == (1, 0)
    x = torch.rand(2, 400, 1, generator=generator(1))
    states = layer(x)[0].detach()
    u = float(layer.U_q().detach()[2, 0])
    assert torch.allclose(states[:, -1, 2], u * x.sum(1)[:, 0], rtol=1e-4)


def test_full_precision_rounds_nothing():
    model, x = trained(bits=None, state_bits=None)
    assert model.entry is None
    y = model.outputs(x)[-1]
    assert not whole(y, 2.0**-8)


def test_gradients_reach_every_parameter():
    model, x = trained(skip=True)
    model.train()
    model(x)[0].square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in model.parameters())


def test_the_best_step_of_inputs_clips_rare_outliers():
    x = torch.randn(100, 100, generator=generator())
    x[0, 0] = 60.0
    assert best_step(x, 8) < float(smallest_step(x.abs().max(), 127))
    assert best_step(x.clamp(-3, 3), 8) == float(smallest_step(torch.tensor(3.0), 127))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"width": 0}, "width must be at least 1, got 0"),
        ({"pairs": 0}, "pairs must be at least 1, got 0"),
        ({"layers": 0}, "layers must be at least 1, got 0"),
        ({"state_bits": 3}, "state_bits must be in 4..16, or None for float states, got 3"),
        ({"state_bits": 17}, "state_bits must be in 4..16"),
        ({"lambda_bits": 7}, "lambda_bits must be in 8..12, got 7"),
        ({"bits": 9}, "bits must be in 2..8, got 9"),
        ({"dropout": 1.0}, r"dropout must be a share in \[0, 1\), got 1.0"),
        ({"integrators": 17}, "integrators must be a number of pairs in 0..16, got 17"),
        ({"ring": (0.9, 0.1)}, "ring must be two radii"),
        ({"input_bits": 17}, "input_bits must be in 2..16, got 17"),
        ({"pool": "max"}, "unknown readout 'max'"),
    ],
)
def test_bad_settings_are_refused(options, said):
    with pytest.raises(SettingsError, match=said):
        qornn.Stack.rotations(3, 2, **options)


def test_layers_that_do_not_fit_together_are_refused_with_both_named():
    mix, turn = qornn.Mix(3, 8, bits=4), qornn.Rotations(8, 4, bits=4, state_bits=8)
    with pytest.raises(SettingsError, match="layer 2 reads 9 numbers, but layer 1 has 8 units; make it with n_i=8"):
        qornn.Stack([mix, turn, qornn.Mix(9, 8, bits=4)], n_o=2)
    with pytest.raises(SettingsError, match="layer 2 has a skip of 5 numbers, but layer 1 reads 8; make it with"):
        qornn.Stack([mix, turn, qornn.Mix(8, 8, skip=5, bits=4)], n_o=2)
    with pytest.raises(SettingsError, match="this Mix reads a skip of 8 numbers, got none"):
        qornn.Mix(8, 8, skip=8)(torch.rand(1, 2, 8))


@pytest.mark.parametrize("bits", [8, 12])
def test_a_skip_does_not_make_the_weights_beside_it_coarser(bits):
    """States of more bits lie on a finer grid than the skip; float32 alone would not hold their sums."""
    model, _ = trained(2, width=32, pairs=32, bits=4, state_bits=bits, skip=True)
    for mix in model.layers[2::2]:
        unit_C, unit_S = mix.units()
        assert float((unit_C == mix.q.unit(mix.C_raw)).float().mean()) > 0.9
        assert float((unit_S == mix.q.unit(mix.S_raw)).float().mean()) > 0.9
        assert mix._types(torch.float32) == (torch.float32, torch.float64)


def test_inputs_without_dropped_bits_are_rounded_as_those_with_them():
    """With no bits to drop the second rounding changes nothing; large samples and ties included."""
    entry = Entry(8)
    entry.hold(gain=4.0, step=0.25)
    x = torch.cat([torch.arange(-2000, 2000) / 32, torch.tensor([1e30, -1e30, 0.12499999, torch.nan])])[None, :, None]
    units = torch.floor(round_half_away(x.double() * 4.0) / 1.0 + 0.5).clamp(-128, 127)
    assert torch.equal(entry(x).nan_to_num(7.0), (units * 0.25).float().nan_to_num(7.0))


def test_lambda_on_the_disc_is_what_three_steps_towards_zero_give():
    g = generator(5)
    for scale in (0.3, 1.0):  # none outside the disc, and some
        a, b = scale * (2 * torch.rand(2, 500, generator=g) - 1)
        got = on_disc(a, b, 8)
        A, B = round_half_away(a * 128).clamp(-127, 128), round_half_away(b * 128).clamp(-128, 127)
        for _ in range(3):
            outside, larger = A * A + B * B > 128 * 128, A.abs() >= B.abs()
            A, B = (
                torch.where(outside & larger, A - A.sign(), A),
                torch.where(outside & ~larger, B - B.sign(), B),
            )
        assert torch.equal(got[0], A)
        assert torch.equal(got[1], B)
