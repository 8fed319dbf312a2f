"""Structured matrices, linear biases and V of few bits as ONNX: bit for bit the law under onnxruntime."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.export.onnx_scan.scan import onnx
from qornn.integer.inputs import Codes
from qornn.integer.matrices import Cycle, Delay, Hadamard
from qornn.integer.readout import FloatReadout
from qornn.integer.simulate import simulate

ox = pytest.importorskip("onnx", reason="pip install 'qornn[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="pip install 'qornn[onnx]'")
sys.path.append(str(Path(__file__).parents[1] / "integer"))  # the random programs of tests/integer
from strategies import random_input  # noqa: E402
from structured_programs import KINDS, make_program, make_W, signs, structured_programs  # noqa: E402

FORMS = ("multiplier", "thresholds", "per-row")


def opened(program, folder, **options):
    onnx(program, folder / "program.onnx", **options)
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    return ort.InferenceSession(folder / "program.onnx", settings, providers=["CPUExecutionProvider"])


def as_fed(program, x):
    return x.astype(np.int64 if isinstance(program.input, Codes) else np.int32)


def assert_same(program, running, x):
    y, states = running.run(["y", "states"], {"x": as_fed(program, x)})
    law_states, law_y = simulate(program, x)
    assert (states == law_states).all()
    if isinstance(program.readout, FloatReadout):
        size = program.n_h if program.readout.mix else 1
        reach = program.readout.scale * program.state.top * size * np.abs(program.readout.V).sum(1).max()
        assert np.abs(y - law_y).max() <= 1e-5 * reach  # a float32 sum in another order
    else:
        assert (y == law_y).all()
    return law_states


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_states_are_those_of_the_law(kind, form, tmp_path):
    program = make_program(make_W(kind, np.random.default_rng(1)), form, "biased", bits_V=4)
    states = assert_same(program, opened(program, tmp_path), random_input(program, 1, B=3, T=30))
    assert np.unique(states).size > 5
    assert (states < 0).any()


@given(program=structured_programs(forms=FORMS), seed=st.integers(0, 99))
def test_any_program(program, seed, tmp_path):
    assert_same(program, opened(program, tmp_path), random_input(program, seed))


@pytest.mark.parametrize("kind", KINDS)
def test_streaming_step_by_step_equals_the_scan(kind, tmp_path):
    program = make_program(make_W(kind, np.random.default_rng(2)), "multiplier", "biased", bits_V=5, steps="all")
    x = random_input(program, 3, B=2, T=20)
    law_states, law_y = simulate(program, x)
    running = opened(program, tmp_path, single_step=True)
    h = np.zeros((2, program.n_h), np.int32)
    for t in range(20):
        h, y = running.run(["h_next", "y"], {"x_t": as_fed(program, x[:, t]), "h": h})
        assert (h == law_states[:, t]).all()
        assert (y == law_y[:, t]).all()


@pytest.mark.parametrize("bits_V", [None, 4])
@pytest.mark.parametrize("n", [2, 8, 32, 64])
def test_a_mixed_readout(n, bits_V, tmp_path):
    program = make_program(Cycle(units=n), bits_V=bits_V, mix=True)
    assert_same(program, opened(program, tmp_path), random_input(program, n, B=4, T=20))
    step = opened(program, tmp_path, single_step=True)
    x, h = random_input(program, n, B=1, T=6), np.zeros((1, n), np.int32)
    for t in range(6):
        h, y = step.run(["h_next", "y"], {"x_t": as_fed(program, x[:, t]), "h": h})
    assert np.allclose(y, simulate(program, x)[1], rtol=1e-5, atol=0 if bits_V else 1e-2)  # float32 in another order


def test_one_file_serves_every_batch_and_length(tmp_path):
    program = make_program(Hadamard(signs=signs(np.random.default_rng(0), 24), block=8), bits_V=4, steps="all")
    running = opened(program, tmp_path)
    for B, T in [(1, 1), (1, 9), (7, 1), (4, 33)]:
        assert_same(program, running, random_input(program, B, B=B, T=T))


def stored(path):
    return {tensor.name: tensor for tensor in ox.load(path).graph.initializer}


@pytest.mark.parametrize("bits", range(2, 9))
def test_v_has_as_many_bits_as_fit(bits, tmp_path):
    program = make_program(Cycle(units=15), bits_V=bits)
    assert_same(program, opened(program, tmp_path), random_input(program, 0))
    kind = stored(tmp_path / "program.onnx")["V"].data_type
    assert kind == (ox.TensorProto.INT4 if bits <= 4 else ox.TensorProto.INT8)


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "kind"), [(16, "INT4"), (64, "INT8")])
def test_delay_lines_written_out_take_the_bits_they_need(lines, kind, tmp_path):
    """Entries reach √lines."""
    W = Delay(units=lines * (lines + 1) // 2, signs=np.ones(lines, int))
    assert np.abs(W.written_out()).max() == lines**0.5
    program = make_program(W, bits_V=4)
    assert_same(program, opened(program, tmp_path), random_input(program, 0, B=1, T=3))
    assert stored(tmp_path / "program.onnx")["W"].data_type == getattr(ox.TensorProto, kind)


def test_entries_past_eight_bits_are_stored_in_thirty_two():
    from qornn.export.onnx_scan.graph import Graph

    for value, kind in ((-128, "INT8"), (128, "INT32"), (-129, "INT32"), (7, "INT4"), (8, "INT8"), (-8, "INT4")):
        graph = Graph()
        entries = np.array([[0, value]])
        graph.weights("W", entries, bits_of(entries))
        assert graph.initializers[0].data_type == getattr(ox.TensorProto, kind)


def bits_of(entries):
    from qornn.export.onnx_scan.matrices import _bits

    return _bits(entries)


def test_a_transform_takes_no_matrix(tmp_path):
    """n = 512: two small tables in place of 512 × 512 entries; the ring has none."""
    for W, kind in ((Hadamard(signs=np.ones(512, int), block=512), "hadamard"), (Cycle(units=512), "cycle")):
        program = make_program(W, bits_V=4, n_i=1)
        assert_same(program, opened(program, tmp_path), random_input(program, 0, B=2, T=4))
        assert (tmp_path / "program.onnx").stat().st_size < program.true_bytes + 5000
        facts = {prop.key: prop.value for prop in ox.load(tmp_path / "program.onnx").metadata_props}
        assert (facts["W"], facts["weight_bits"]) == (kind, "1")
