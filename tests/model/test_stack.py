"""Stacked recurrences: trained, saved, lowered, run, exported and verified like one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import qornn
from qornn.errors import ProgramError, SettingsError
from qornn.integer.engine.run import states
from qornn.integer.requant import Multiplier
from qornn.integer.storage import load
from qornn.model import SequenceLayer
from qornn.recipe import TrainSettings
from qornn.tasks import make_task

DENSE = {"bits": 4}
KINDS = {
    "two dense": [(12, DENSE), (9, DENSE)],
    "three, one of them Hadamard": [(8, {"bits": 5, "scale": "row"}), (16, {"bits": 4, "map": "hadamard"}), (7, DENSE)],
    "a cycle over delay lines": [(12, {"bits": 4, "map": "delay", "lines": 4}), (10, {"bits": 3, "map": "cycle"})],
    "modReLU over blocks": [
        (16, {"bits": 4, "map": "hadamard-block", "block": 4}),
        (9, DENSE | {"activation": "modrelu"}),
    ],
    "Hadamard last": [(6, {"bits": 8}), (6, {"bits": 7}), (32, {"bits": 2, "map": "hadamard"})],
}


def stack(kind, n_i, n_o=3, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    layers, reads = [], n_i
    for n_h, settings in KINDS[kind]:
        layers.append(qornn.OrthogonalRecurrence(reads, n_h, generator=generator, **settings))
        reads = n_h
    return qornn.Stack(layers, n_o=n_o, generator=generator, **options)


def lowered(kind, *, codes=False, **options):
    """A program, and inputs for it."""
    n_i = 5 if codes else 2
    model = stack(kind, n_i, pool=options.pop("pool", "last")).eval()
    generator = torch.Generator().manual_seed(1)
    shape = (6, 20)
    x = torch.randint(n_i, shape, generator=generator) if codes else torch.randn(*shape, n_i, generator=generator)
    program = qornn.lower(model, x, quiet=True, **options)
    return model, program, x, x.numpy() if codes else program.input.clip(program.input.from_network(x.numpy()))


def test_each_layer_reads_the_states_of_the_one_before():
    model = stack("two dense", 2)
    x = torch.randn(3, 7, 2)
    first, _ = model.layers[0](x)
    _, last = model.layers[1](first)
    y, finals = model(x)
    assert torch.equal(y, last @ model.V.T + model.b_o)
    assert [h.shape for h in finals] == [(3, 12), (3, 9)]


@pytest.mark.parametrize("pool", ["last", "all"])
def test_a_sequence_goes_on_from_the_states_it_was_left_in(pool):
    model = stack("two dense", 2, pool=pool).eval()
    x = torch.randn(3, 8, 2)
    whole, want = model(x)
    _, middle = model(x[:, :5])
    rest, got = model(x[:, 5:], middle)
    assert torch.allclose(rest if pool == "last" else rest[:, -1], whole if pool == "last" else whole[:, -1], atol=1e-6)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(got, want, strict=True))
    with pytest.raises(SettingsError, match=r"h0 must be 2 states, one \(B, n_h\) for each layer; got one tensor"):
        model(x, middle[0])


def test_a_stack_that_does_not_fit_together_is_refused():
    layers = [qornn.OrthogonalRecurrence(1, 6), qornn.OrthogonalRecurrence(5, 4)]
    with pytest.raises(SettingsError, match="layer 1 reads 5 numbers, but layer 0 has 6 units; make it with n_i=6"):
        qornn.Stack(layers, n_o=2)
    with pytest.raises(SettingsError, match=r"layer 0 of a stack must be .* or another SequenceLayer, got Linear"):
        qornn.Stack([torch.nn.Linear(1, 2)], n_o=2)
    with pytest.raises(SettingsError, match="at least one"):
        qornn.Stack([], n_o=2)


def test_a_layer_that_cannot_follow_moving_scales_is_refused_at_once():
    class Plain(SequenceLayer):
        n_i = n_h = 8

    turning = qornn.Rotations(3, 4, bits=4, state_bits=8)
    with pytest.raises(SettingsError, match=r"layer 1 \(Plain\) cannot follow layer 0 \(Rotations\).* put a Mix"):
        qornn.Stack([turning, Plain()], n_o=2)
    qornn.Stack([qornn.Rotations(3, 4), Plain()], n_o=2)  # at full precision nothing moves


def test_training_moves_every_layer_and_goes_on_where_it_was(tmp_path):
    task = make_task("copy", T0=4, train_size=64, validation_size=8, test_size=8)
    settings = TrainSettings(steps=12, batch=8, lr=1e-2, checkpoint_every=6, state_penalty=1e-3)

    def trainer(model, out=None, steps=12):
        changed = TrainSettings(**{**{f: getattr(settings, f) for f in settings.__slots__}, "steps": steps})
        return qornn.Trainer(model, task, changed, out=out, quiet=True)

    def fresh():
        generator = torch.Generator().manual_seed(3)
        layers = [qornn.OrthogonalRecurrence(n_i, 12, bits=4, generator=generator) for n_i in (task.n_i, 12)]
        return qornn.Stack(layers, n_o=task.n_o, pool=task.readout, generator=generator)

    begun, model = fresh(), fresh()
    trainer(model, tmp_path / "run").run()
    for before, after in zip(begun.layers, model.layers, strict=True):
        assert not torch.equal(before.W_raw, after.W_raw)
        assert not torch.equal(before.U_raw, after.U_raw)
    again = fresh()
    again.load_state_dict(model.state_dict())
    x = torch.randint(task.n_i, (2, 9))
    assert torch.equal(again.eval()(x)[0], model.eval()(x)[0])
    program = qornn.lower(model, task.batch("train", 0, 8).x, quiet=True)
    assert len(program.layers) == 2


@pytest.mark.parametrize("pool", ["last", "all"])
@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_the_session_and_the_file_equal_the_law(kind, codes, pool, tmp_path):
    _, program, _, raw = lowered(kind, codes=codes, pool=pool)
    lengths = np.array([20, 1, 7, 20, 19, 2])
    want, y = qornn.simulate(program, raw, lengths)
    assert len(np.unique(want)) > 5
    for layout in ("bytes", "packed"):
        np.testing.assert_array_equal(states(program, raw, lengths, layout=layout), want)
    np.testing.assert_array_equal(program.run(raw, lengths), y)
    session = program.session()
    for t in range(7):
        answer = session.step(raw[2, t])
    np.testing.assert_array_equal(answer, y[2] if pool == "last" else y[2, 6])
    program.save(tmp_path / "stack.qornn")
    again = load(tmp_path / "stack.qornn")
    np.testing.assert_array_equal(again.run(raw, lengths), y)
    assert [layer.describe() for layer in again.layers] == [layer.describe() for layer in program.layers]


@pytest.mark.parametrize("kind", KINDS)
def test_integers_answer_as_the_network_does(kind):
    model, program, x, raw = lowered(kind, activation_bits=16, input_bits=16)
    with torch.no_grad():
        want = model(x)[0].numpy()
    got = program.readout.values(program.run(raw))
    assert np.abs(got - want).max() < 0.02 * np.abs(want).max()  # 16-bit states, twenty steps


@pytest.mark.parametrize("kind", KINDS)
def test_the_exported_C_is_exact(kind, tmp_path):
    from qornn.verify import verify

    _, program, _, _ = lowered(kind, codes=kind == "two dense", readout="int8" if "last" in kind else None)
    folder = qornn.export.c(program, tmp_path / "c", name="stack", vector_steps=8)
    assert verify(folder, target="host").exact
    text = (folder / "src" / "stack" / "stack.c").read_text()
    body = text[text.index("int stack_step(") :].split("}")[1 if kind == "two dense" else 0]
    assert [f"stack_step{i}(s, " in body for i in range(len(program.layers))] == [True] * len(program.layers)


@pytest.mark.parametrize("single_step", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_onnx_has_the_states_of_the_law(kind, single_step, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    _, program, _, raw = lowered(kind, codes=kind == "two dense", pool="all")
    want, _ = qornn.simulate(program, raw)
    qornn.export.onnx(program, tmp_path / "stack.onnx", single_step=single_step)
    session = runtime.InferenceSession(tmp_path / "stack.onnx")
    fed = raw.astype(np.int64 if raw.ndim == 2 else np.int32)
    if not single_step:
        np.testing.assert_array_equal(session.run(["states"], {"x": fed})[0], want)
        return
    h = {f"h{i}": np.zeros((len(raw), layer.n_state), np.int32) for i, layer in enumerate(program.layers)}
    for t in range(raw.shape[1]):
        *following, _ = session.run(None, {"x_t": fed[:, t], **h})
        h = dict(zip(h, following, strict=True))
        np.testing.assert_array_equal(h[f"h{len(h) - 1}"], want[:, t])


def test_the_parts_of_one_layer_are_asked_of_the_layer():
    _, program, _, _ = lowered("two dense")
    for name in ("W", "U", "state", "requant", "n_h"):
        with pytest.raises(ProgramError, match=rf"2 layers.*program\.layers\[i\]\.{name}"):
            getattr(program, name)
    report = program.provenance["lowering"]
    assert [layer["scheme"] for layer in report["layers"]] == ["per-row", "per-row"]
    parts = (program.input, *program.layers, program.readout)
    assert program.true_bytes == sum(part.stored_bytes for part in parts)


def test_what_is_wrong_with_a_layer_names_the_layer():
    _, program, _, _ = lowered("two dense")
    first, second = program.layers
    columns = np.concatenate([second.U.integers, second.U.integers[:, :1]], 1)
    wider = replace(second, U=replace(second.U, integers=columns))
    with pytest.raises(ProgramError, match=r"^layer 1: U must be \(n_h, n_i\)"):
        replace(program, layers=(first, wider))
    steep = Multiplier(multiplier=1, shift=1, shift_W=0, shift_U=30)
    with pytest.raises(
        ProgramError, match=r"^layer 1: a sum of this program can reach .* the 32-bit accumulator holds"
    ):
        replace(program, layers=(first, replace(second, requant=steep)))


@pytest.mark.parametrize(("kind", "n_i"), [("two dense", 5), ("Hadamard last", 2)])
def test_a_calibration_of_another_network_is_refused(kind, n_i):
    other, count = stack(kind, n_i), len(KINDS[kind])
    seen = qornn.calibrate(other, torch.rand(4, 5, n_i), quiet=True)
    message = rf"calibration saw {n_i} channels and {count} layers, the network has 2 and 2; calibrate this network"
    with pytest.raises(SettingsError, match=message):
        qornn.lower(stack("two dense", 2), calibration=seen, quiet=True)
