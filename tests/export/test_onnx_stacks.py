"""Stacks of rotations and mixes as ONNX, and readouts of the mean: bit for bit the law under onnxruntime."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.export.onnx_scan.scan import onnx
from qornn.integer.inputs import Codes, Samples
from qornn.integer.layers import Mix, Rotations
from qornn.integer.matrices import Matrix
from qornn.integer.program import IntegerProgram
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.simulate import simulate

ox = pytest.importorskip("onnx", reason="pip install 'qornn[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="pip install 'qornn[onnx]'")
sys.path.append(str(Path(__file__).parents[1] / "integer"))  # the random programs of tests/integer
from stacks import make_stack, stacks  # noqa: E402
from strategies import per_row, random_input, random_net  # noqa: E402

STEPS = ("mean", "last", "all")


def opened(program, folder, **options):
    onnx(program, folder / "program.onnx", **options)
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    return ort.InferenceSession(folder / "program.onnx", settings, providers=["CPUExecutionProvider"])


def run(running, fed):
    return dict(zip([output.name for output in running.get_outputs()], running.run(None, fed), strict=True))


def as_fed(program, x):
    return x.astype(np.int64 if isinstance(program.input, Codes) else np.int32)


def assert_outputs(program, y, law_y):
    assert (y.shape, y.dtype) == (law_y.shape, law_y.dtype)
    if isinstance(program.readout, FloatReadout):
        reach = program.readout.scale * program.layers[-1].output.top * np.abs(program.readout.V).sum(1).max()
        assert np.abs(y - law_y).max() <= 1e-5 * reach + 1e-6  # a float32 sum in another order
    else:
        assert (y == law_y).all()


def assert_same(program, running, x):
    """What the file gives is what the law says; the law's states and outputs."""
    found = run(running, {"x": as_fed(program, x)})
    states, y = simulate(program, x)
    assert (found["states"] == states).all()
    assert_outputs(program, found["y"], y)
    assert ("count" in found) == program.readout.pooled
    if program.readout.pooled:
        counts = program.readout.counts(np.full(len(x), x.shape[1]))
        assert (found["count"] == counts[:, None]).all()
    return states, y


def assert_alive(y):
    """Answers differ; many random stacks saturate, and these would prove little."""
    assert len(np.unique(y.reshape(-1, y.shape[-1]), axis=0)) > 1


def with_readout(program, steps="mean", steps_max=6, layers=None, seed=0):
    """The first layers of the program, read out by integers of either sign."""
    layers, rng = program.layers[:layers], np.random.default_rng(seed)
    V = rng.integers(-128, 128, (3, layers[-1].output.n_i))
    readout = IntReadout(
        V=V, bias=rng.integers(-99, 99, 3), scale=0.125, steps=steps, steps_max=steps_max if steps == "mean" else None
    )
    return IntegerProgram(input=program.input, layers=layers, readout=readout)


def matrix(rows):
    return Matrix(integers=np.array(rows), bits=4, alpha=1.0)


@pytest.mark.parametrize(("steps", "codes", "skip", "stem"), [*product(STEPS, *[[False, True]] * 3)])
def test_states_and_outputs_are_those_of_the_law(steps, codes, skip, stem, tmp_path):
    program = make_stack(0, steps=steps, codes=codes, skip=skip, stem=stem, width=7, pairs=5, channels=3, narrow=False)
    states, y = assert_same(program, opened(program, tmp_path), random_input(program, 1, B=3, T=40))
    assert np.unique(states).size > 5  # neither all saturated nor all zero
    assert (states < 0).any()
    assert_alive(y)


@given(program=stacks(), seed=st.integers(0, 99))
def test_any_stack(program, seed, tmp_path):
    assert_same(program, opened(program, tmp_path), random_input(program, seed, T=20))


@pytest.mark.parametrize("lambda_bits", range(8, 13))
def test_every_grid_of_lambda(lambda_bits, tmp_path):
    program = make_stack(2, lambda_bits=lambda_bits, pairs=9, skip=True)
    assert_alive(assert_same(program, opened(program, tmp_path), random_input(program, 0, T=50))[1])


@pytest.mark.parametrize("state_bits", range(4, 17))
def test_every_width_of_states(state_bits, tmp_path):
    program = make_stack(4, state_bits=state_bits, pairs=6, skip=True, steps="all")
    states, y = assert_same(program, opened(program, tmp_path), random_input(program, 0, T=50))
    assert_alive(y)
    assert np.abs(states).max() > 2 ** (state_bits - 3)


@pytest.mark.parametrize("bits", range(2, 9))
def test_every_width_of_weights(bits, tmp_path):
    program = make_stack(4, bits=bits, bits_V=10 - bits, skip=True, width=5, pairs=3)
    assert_alive(assert_same(program, opened(program, tmp_path), random_input(program, 0, T=20))[1])
    kinds = {tensor.name: tensor.data_type for tensor in ox.load(tmp_path / "program.onnx").graph.initializer}
    narrow = ox.TensorProto.INT4 if bits <= 4 else ox.TensorProto.INT8
    assert [kinds[name] for name in ("C0", "U1", "C2", "S2", "U3", "C4", "S4")] == [narrow] * 7


@pytest.mark.parametrize("steps_max", [2, 4, 6, 50])
@pytest.mark.parametrize("signed", [False, True])
def test_means_of_sequences_far_longer_than_steps_max(signed, steps_max, tmp_path):
    """One file for every length: sums are halved as often as the law halves them, to the same side."""
    program = with_readout(make_stack(5, pairs=8), steps_max=steps_max, layers=4 if signed else 5)
    running, totals = opened(program, tmp_path), []
    for T in (1, steps_max, steps_max + 1, 2 * steps_max, 301):
        _, y = assert_same(program, running, random_input(program, T, T=T))
        totals.append(y)
    assert (np.abs(totals[-1]) < 2**24).all()  # it is no plain sum
    assert np.unique(totals).size > 10


def test_a_mean_behind_a_relu_adds_what_the_relu_leaves(tmp_path):
    program = make_stack(6, pairs=6, relu=True, steps_max=8)
    program = IntegerProgram(
        input=program.input,
        layers=program.layers[:4],
        readout=IntReadout(
            V=np.eye(12, dtype=int), bias=np.zeros(12, int), scale=1.0, relu=True, steps="mean", steps_max=8
        ),
    )
    states, y = assert_same(program, opened(program, tmp_path), random_input(program, 0, T=7))
    assert (states < 0).any()
    assert (y == np.maximum(states, 0).sum(1)).all()


def test_means_whose_sums_fill_32_bits(tmp_path):
    """A sum that is as large as the proof allows, of either sign, is halved without overflow."""
    steps_max = (2**31 - 1 - 1) // 127 & ~1
    zero = np.zeros(1, int)
    layer = Mix(C=matrix([[1]]), bias=zero, shift=zero)
    program = IntegerProgram(
        input=Samples(bits=8, alpha=1.0, low=-128, high=127, offset=zero, multiplier=zero + 1, shift=zero),
        layers=(layer,),
        readout=IntReadout(V=np.array([[1]]), bias=zero, scale=1.0, steps="mean", steps_max=steps_max),
    )
    running = opened(program, tmp_path, single_step=True)
    for start in (127 * steps_max, 127 * steps_max - 1, 0, 1, -1, -2, -127 * steps_max, 1 - 127 * steps_max):
        kept = {"sum": np.array([[start]], np.int32), "count": np.array([[steps_max]], np.int32)}
        found = run(running, {"x_t": np.array([[127]], np.int32), **kept})
        total, count = program.readout.take((np.array([[start]]), np.array([steps_max])), np.array([127]))
        assert found["sum_next"] == total == ((start + 1) >> 1) + 127
        assert found["count_next"] == count == steps_max // 2 + 1
        assert found["y"] == total


@pytest.mark.parametrize(("steps", "codes", "skip"), [*product(STEPS, *[[False, True]] * 2)])
def test_streaming_step_by_step_equals_the_law(steps, codes, skip, tmp_path):
    program = make_stack(11, steps=steps, codes=codes, skip=skip, stem=not codes, pairs=4, steps_max=6)
    x = random_input(program, 3, B=2, T=25)
    law_states, answers = simulate(program, x)
    assert_alive(answers)
    running = opened(program, tmp_path, single_step=True)
    shapes = {fed.name: fed.shape[1] for fed in running.get_inputs() if fed.name != "x_t"}
    layers = {f"h{i}": 8 for i in ((0, 2) if codes else (1, 3))}  # a mix keeps no state
    assert shapes == layers | ({"sum": 4, "count": 1} if steps == "mean" else {})
    kept = {name: np.zeros((2, width), np.int32) for name, width in shapes.items()}
    for t in range(25):
        found = run(running, {"x_t": as_fed(program, x[:, t]), **kept})
        kept = {name: found[f"{name}_next"] for name in kept}
        assert (kept[max(layers)] == law_states[:, t]).all()
        law_y = simulate(program, x[:, : t + 1])[1]
        assert (found["y"] == (law_y[:, -1] if steps == "all" else law_y)).all()


MEMORIES = [{"differences": True}, {"hold": True}, {"differences": True, "hold": True, "stem": False}]


@pytest.mark.parametrize("kind", MEMORIES)
@pytest.mark.parametrize(("steps", "window"), [*product(STEPS, [1, 3])])
def test_what_is_remembered_is_that_of_the_law(steps, window, kind, tmp_path):
    """Of whole sequences, and from step to step."""
    program = make_stack(11, steps=steps, window=window, channels=2, skip=True, pairs=4, steps_max=6, **kind)
    x = random_input(program, 3, B=2, T=25)
    x[0, :2] = -(2**15) if program.input.hold else x[0, :2]  # nothing was there to hold
    states, answers = assert_same(program, opened(program, tmp_path), x)
    assert np.unique(states).size > 5
    running = opened(program, tmp_path, single_step=True)
    shapes = {fed.name: fed.shape[1] for fed in running.get_inputs() if fed.name != "x_t"}
    assert shapes["kept"] == 2
    kept = {name: np.zeros((2, width), np.int32) for name, width in shapes.items()}
    for t in range(25):
        found = run(running, {"x_t": as_fed(program, x[:, t]), **kept})
        kept = {name: found[f"{name}_next"] for name in kept}
    session = program.session()
    for row in x[0]:
        session.step(row)
    assert (kept["kept"][0] == session.h[:2]).all()
    assert (found["y"] == (answers[:, -1] if steps == "all" else answers)).all()


@pytest.mark.parametrize("skip", [False, True])
def test_rotations_behind_another_kind_of_layer(skip, tmp_path):
    sizes = {"n_i": 3, "n_h": 8, "n_o": 1, "k": 4, "k_U": 4, "k_a": 8, "e": 2, "m": 0}
    net = random_net(1, alphas=(0.40625, 0.75, 1.25), activation="modrelu", codes=False, **sizes)
    first, _ = per_row(net)
    rest = make_stack(8, codes=False, stem=False, channels=8, skip=skip)  # whose first layer reads as many numbers
    program = with_readout(IntegerProgram(input=first.input, layers=first.layers + rest.layers, readout=rest.readout))
    assert [layer.kind for layer in program.layers][:3] == ["recurrent", "rotations", "mix"]
    assert_same(program, opened(program, tmp_path), random_input(program, 0, T=30))


def test_the_largest_shifts(tmp_path):
    """2^31 is no int32: a row that is shifted so far is 0, or becomes it."""
    zero = np.zeros(2, int)
    input = Samples(bits=4, alpha=1.0, low=-8, high=7, offset=zero, multiplier=zero + 1, shift=zero)
    # The second reaches 2^31 − 1 with its half, the third is shifted to the left by 31.
    stem = Mix(C=matrix([[1, 2], [7, -7], [0, 0]]), bias=[0, 2**30 - 113, 0], shift=[-1, 31, -31])
    states = Rotations(
        turns=[[1, 128, 0], [0, 0, 0]],
        U=matrix([[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [1, -1, 0], [0, 0, 0]]),
        shift=[-24, 4, 31, 31, 5, -24],
        bits=4,
    )
    last = Mix(
        C=matrix([[1] * 6, [0] * 6, [0] * 6, [1, 7, 1, 0, 7, 0]]),
        S=matrix([[0] * 3, [0] * 3, [1, 0, 1], [1, 2, 3]]),
        apart=[22, -31, -20, 3],
        bias=[0, 2**30 - 1, 0, 0],
        shift=[20, 31, 18, 2],
    )
    blank = IntReadout(V=np.eye(4, dtype=int), bias=np.zeros(4, int), scale=1.0, steps="all")
    program = IntegerProgram(input=input, layers=(stem, states, last), readout=blank)
    assert program.accumulator_bound == 2**31 - 1
    states, y = assert_same(program, opened(program, tmp_path), random_input(program, 0, T=60))
    assert [np.unique(states[..., j]).size > 1 for j in range(6)] == [False, True, False, False, True, False]
    assert [np.unique(y[..., j]).size > 1 for j in range(4)] == [True, False, True, True]


def test_a_program_without_states_has_no_such_output(tmp_path):
    for steps in STEPS:
        program = with_readout(make_stack(9, width=5), steps, layers=1)
        running, x = opened(program, tmp_path), random_input(program, 0, T=15)
        found = run(running, {"x": as_fed(program, x)})
        assert set(found) == ({"y", "count"} if steps == "mean" else {"y"})
        assert (found["y"] == simulate(program, x)[1]).all()


def test_one_file_serves_every_batch_and_length(tmp_path):
    program = make_stack(2, skip=True, steps_max=4)
    running = opened(program, tmp_path)
    for B, T in [(1, 1), (1, 9), (7, 1), (4, 33)]:
        assert_same(program, running, random_input(program, B, B=B, T=T))


def body_of(folder):
    (scan,) = [node for node in ox.load(folder / "program.onnx").graph.node if node.op_type == "Scan"]
    return next(attribute.g for attribute in scan.attribute if attribute.name == "body")


@pytest.mark.parametrize(("stem", "skip", "inside"), [(0, 0, 3), (0, 1, 4), (1, 0, 3), (1, 1, 4)])
def test_products_of_the_input_are_made_before_the_scan(stem, skip, inside, tmp_path):
    """Of two rotations and two mixes: U of the first, C of a stem before it, S of the first skip."""
    opened(make_stack(0, stem=bool(stem), skip=bool(skip)), tmp_path)
    assert sum(node.op_type == "MatMul" for node in body_of(tmp_path).node) == inside


@pytest.mark.parametrize("steps", STEPS)
def test_a_step_is_of_32_bits_alone(steps, tmp_path):
    opened(make_stack(0, steps=steps, skip=True), tmp_path)
    body = body_of(tmp_path)
    assert {tensor.data_type for tensor in body.initializer} == {ox.TensorProto.INT32}
    casts = {attribute.i for node in body.node if node.op_type == "Cast" for attribute in node.attribute}
    assert casts <= {ox.TensorProto.INT32}


@pytest.mark.parametrize("steps", STEPS)
def test_nothing_is_stored_that_no_node_reads(steps, tmp_path):
    """onnxruntime would warn about it whenever the file is opened."""
    opened(make_stack(0, steps=steps, skip=True, stem=False, codes=True), tmp_path)
    graph, body = ox.load(tmp_path / "program.onnx").graph, body_of(tmp_path)
    read = {name for node in (*graph.node, *body.node) for name in node.input}
    assert {tensor.name for tensor in (*graph.initializer, *body.initializer)} <= read


def test_the_file_says_how_values_are_made_of_a_mean(tmp_path):
    program = make_stack(11, steps_max=6, lambda_bits=9, state_bits=10)
    x = random_input(program, 0, T=20)
    found = run(opened(program, tmp_path), {"x": as_fed(program, x)})
    facts = {prop.key: prop.value for prop in ox.load(tmp_path / "program.onnx").metadata_props}
    assert (facts["layer"], facts["exact"]) == ("mix, rotations, mix, rotations, mix", "states, y")
    assert (facts["lambda_bits"], facts["state_bits"], facts["steps_max"]) == ("9, 9", "10, 10", "6")
    assert facts["y_value"] == "y_scale*y/count"
    values = (float(facts["y_scale"]) * found["y"] / found["count"]).astype(np.float32)
    law_y = simulate(program, x)[1]
    assert_alive(law_y)
    assert (values == program.readout.values(law_y, program.readout.counts(np.full(3, 20)))).all()
    opened(make_stack(11, steps="last"), tmp_path)
    facts = {prop.key: prop.value for prop in ox.load(tmp_path / "program.onnx").metadata_props}
    assert facts["y_value"] == "y_scale*y"
    assert "steps_max" not in facts
