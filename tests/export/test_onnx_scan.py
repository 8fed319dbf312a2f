import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from single import changed

from qornn.errors import QornnError, SettingsError, WriteError
from qornn.export.onnx_scan import scan as onnx_scan
from qornn.export.onnx_scan.scan import onnx
from qornn.integer.activations import ModReLU
from qornn.integer.inputs import Codes, Samples
from qornn.integer.readout import FloatReadout
from qornn.integer.requant import PerRow
from qornn.integer.simulate import simulate

ox = pytest.importorskip("onnx", reason="pip install 'qornn[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="pip install 'qornn[onnx]'")
sys.path.append(str(Path(__file__).parents[1] / "integer"))  # the random programs of tests/integer
from strategies import paper, per_row, programs, random_input, random_net, random_readout  # noqa: E402

FORMS = ("multiplier", "thresholds", "per-row", "per-row+I")
ACTIVATIONS = ("relu", "modrelu", "identity")
ALPHAS = (0.40625, 0.75, 1.25)
# A float32 sum in another order: n_h roundings of terms up to top·|V|, then the scale.
FLOAT = 1e-5


def make(form="per-row", activation="relu", *, codes=False, integer=False, steps="last", relu=False, seed=0, **sizes):
    settings = {"n_i": 3, "n_h": 13, "n_o": 3, "k": 4, "k_U": 4, "k_a": 9, "e": 2, "m": 0, **sizes}
    net = random_net(seed, alphas=ALPHAS, activation=activation, codes=codes, **settings)
    readout = random_readout(np.random.default_rng(seed), net.W.shape[0], relu) if integer else None
    if form.startswith("per-row"):
        program, _ = per_row(net, form.endswith("I"), readout, steps)
    else:
        program = paper(net, form, readout, steps)
    return program if integer else changed(program, readout=replace(program.readout, relu=relu))


def normalised(program, seed=0):
    """The same, fed raw samples with an offset, a multiplier and a shift of each channel."""
    rng = np.random.default_rng(seed)
    n_i = program.n_i
    shift = rng.integers(20, 45, n_i)
    shift[0] = 0  # no rounding there
    multiplier = np.where(shift, rng.integers(0, 2**31, n_i), 1)
    offset = rng.integers(-1000, 1000, n_i)
    return changed(
        program, input=replace(program.input, low=-30000, high=32000, offset=offset, multiplier=multiplier, shift=shift)
    )


def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def kind(program):
    return np.int64 if isinstance(program.input, Codes) else np.int32


def opened(program, folder, **options):
    onnx(program, folder / "program.onnx", **options)
    return session(folder / "program.onnx")


def assert_same(program, running, x):
    y, states = running.run(["y", "states"], {"x": x.astype(kind(program))})
    law_states, law_y = simulate(program, x)
    assert (states == law_states).all()
    assert_outputs(program, y, law_y)
    return law_states


def assert_outputs(program, y, law_y):
    assert y.shape == law_y.shape
    assert y.dtype == law_y.dtype
    if isinstance(program.readout, FloatReadout):
        reach = program.readout.scale * program.state.top * np.abs(program.readout.V).sum(1).max()
        assert np.abs(y - law_y).max() <= FLOAT * reach
    else:
        assert (y == law_y).all()


@pytest.mark.parametrize(("form", "activation", "codes"), [*product(FORMS, ACTIVATIONS, [True, False])])
def test_states_are_those_of_the_law(form, activation, codes, tmp_path):
    # The readouts and the steps read are spread over the forms, so that each meets several.
    turn = FORMS.index(form) + len(activation) + codes
    program = make(form, activation, codes=codes, integer=turn % 2 == 0, steps=("last", "all")[turn % 3 == 0])
    states = assert_same(program, opened(program, tmp_path), random_input(program, 1, B=3, T=40))
    assert np.unique(states).size > 5  # neither all saturated nor all zero
    assert (states < 0).any() == (activation != "relu")


@pytest.mark.slow
@given(program=programs(tables=False), seed=st.integers(0, 2**32 - 1))
def test_any_program(program, seed, tmp_path):
    assert_same(program, opened(program, tmp_path), random_input(program, seed))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", [1, 2])
def test_normalised_samples(form, seed, tmp_path):
    program = normalised(make(form, "modrelu", seed=seed, n_i=5), seed)
    x = random_input(program, seed, B=4, T=30)
    x_i = program.input.integers(x)
    assert (x_i < 0).any()
    assert (x_i > 0).any()
    assert_same(program, opened(program, tmp_path), x)


def test_the_largest_offset_multiplier_and_shift(tmp_path):
    """Nothing overflows 64 bits in the lifted division."""
    program = make("per-row", n_i=4)
    ends = {
        "offset": [2**30, -(2**30), 2**30, -(2**30)],
        "multiplier": [2**31 - 1] * 4,
        "shift": [61, 61, 20, 0],
    }
    extreme = Samples(bits=16, alpha=1.0, low=-(2**15), high=2**15 - 1, **{k: np.array(v) for k, v in ends.items()})
    program = changed(program, input=extreme)
    x = random_input(program, 0, B=5, T=8)
    assert_same(program, opened(program, tmp_path), x)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_rows_far_past_saturation(activation, tmp_path):
    """Sums that are past 32 bits after the shift too: their low halves mean nothing."""
    program = make("per-row", activation, n_h=33)
    rng = np.random.default_rng(0)
    M_W, M_U = rng.integers(2**20, 2**29, (2, 33))
    program = changed(program, requant=PerRow(M_W=M_W, M_U=M_U, shift=rng.integers(1, 6, 33)))
    if program.bias is not None:
        program = changed(program, activation=ModReLU(bias=rng.integers(-(2**50), 2**50, 33)))
    states = assert_same(program, opened(program, tmp_path), random_input(program, 0, T=30))
    assert (np.abs(states) == program.state.top).any()


@pytest.mark.parametrize("k", range(2, 9))
def test_every_width_of_weights(k, tmp_path):
    program = make("per-row", k=k, k_U=10 - k, n_h=15, integer=True)  # 15² entries: half a byte is left over
    assert_same(program, opened(program, tmp_path), random_input(program, k, B=2, T=20))


@pytest.mark.parametrize("k_a", [4, 12, 16])
@pytest.mark.parametrize("form", ["multiplier", "thresholds", "per-row"])
def test_narrow_and_wide_states(form, k_a, tmp_path):
    program = make(form, "modrelu", k_a=k_a, codes=True, steps="all")
    assert_same(program, opened(program, tmp_path), random_input(program, k_a, T=30))


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("steps", ["last", "all"])
def test_a_readout_behind_a_relu(integer, steps, tmp_path):
    program = make("per-row", "identity", integer=integer, steps=steps, relu=True)
    states = assert_same(program, opened(program, tmp_path), random_input(program, 0, T=12))
    assert (states[:, -1] < 0).any()


@pytest.mark.parametrize("form", ["multiplier", "per-row"])
def test_784_steps_of_a_network_of_the_papers_size(form, tmp_path):
    program = make(form, "modrelu", n_i=1, n_h=170, n_o=10, k_a=12, integer=True)
    states = assert_same(program, opened(program, tmp_path), random_input(program, 0, B=2, T=784))
    assert states[:, -1].any()


def test_one_file_serves_every_batch_and_length(tmp_path):
    program = make("per-row", steps="all")
    running = opened(program, tmp_path)
    for B, T in [(1, 1), (1, 9), (7, 1), (4, 33)]:
        assert_same(program, running, random_input(program, B, B=B, T=T))


@pytest.mark.parametrize(("form", "codes"), [*product(FORMS, [True, False])])
def test_streaming_step_by_step_equals_the_scan(form, codes, tmp_path):
    program = make(form, "modrelu", codes=codes, integer=True, steps="all")
    program = program if codes else normalised(program)
    x = random_input(program, 3, B=2, T=25)
    law_states, law_y = simulate(program, x)
    running = opened(program, tmp_path, single_step=True)
    h = np.zeros((2, program.n_h), np.int32)
    for t in range(25):
        h, y = running.run(["h_next", "y"], {"x_t": x[:, t].astype(kind(program)), "h": h})
        assert (h == law_states[:, t]).all()
        assert (y == law_y[:, t]).all()


def test_samples_outside_the_range_are_clipped(tmp_path):
    program = make("per-row")
    x = np.array([[[-(2**31), 2**31 - 1, 0]] * 4])
    y, states = opened(program, tmp_path).run(["y", "states"], {"x": x.astype(np.int32)})
    with pytest.warns(UserWarning, match="clipped"):
        law_states, law_y = simulate(program, x, saturate=True)
    assert (states == law_states).all()
    assert_outputs(program, y, law_y)


@pytest.mark.parametrize("code", [-1, 3, 2**40])
def test_a_code_outside_the_table_is_refused(code, tmp_path):
    running = opened(make(codes=True), tmp_path)
    with pytest.raises(Exception, match="out of data bounds"):
        running.run(None, {"x": np.array([[0, code]])})


def test_four_bit_weights_take_half_a_byte(tmp_path):
    sizes = {}
    for k in (3, 4, 5):
        onnx(make(k=k, n_h=64, n_i=1, n_o=1), tmp_path / f"{k}.onnx")
        model = ox.load(tmp_path / f"{k}.onnx")
        stored = {tensor.name: tensor for tensor in model.graph.initializer}
        assert stored["W"].data_type == (ox.TensorProto.INT4 if k <= 4 else ox.TensorProto.INT8)
        sizes[k] = (tmp_path / f"{k}.onnx").stat().st_size
    assert sizes[4] < 64 * 64 / 2 + 6000  # with nodes and the per-row multipliers
    assert sizes[5] - sizes[4] > 64 * 64 / 2 * 0.95
    assert abs(sizes[3] - sizes[4]) < 100


def test_the_file_says_what_it_is(tmp_path):
    program = make("per-row").with_provenance(task="smnist", trained={"metric": "accuracy", "value": 97.25})
    onnx(program, tmp_path / "a.onnx", command="qornn export a.qornn --to onnx")
    model = ox.load(tmp_path / "a.onnx")
    ox.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 21)]
    facts = {prop.key: prop.value for prop in model.metadata_props}
    assert facts["metric"] == "accuracy"
    assert facts["value"] == "97.25"
    assert facts["command"] == "qornn export a.qornn --to onnx"
    assert facts["version"] == model.producer_version
    assert facts["exact"] == "states"  # a float readout is summed in the runtime's own order
    assert {node.op_type for node in model.graph.node} >= {"Scan", "MatMul"}
    again = tmp_path / "b.onnx"
    onnx(program, again, command="qornn export a.qornn --to onnx")
    assert again.read_bytes() == (tmp_path / "a.onnx").read_bytes()


@pytest.mark.parametrize("trained", ["97 %", 97.25, ["accuracy"], None])
def test_whatever_the_program_says_about_itself(trained, tmp_path):
    onnx(make().with_provenance(task=["a", 1], trained=trained, metric=3), tmp_path / "a.onnx")
    facts = {prop.key for prop in ox.load(tmp_path / "a.onnx").metadata_props}
    assert "task" in facts
    assert "metric" not in facts


def test_the_graph_has_the_name_that_was_given(tmp_path):
    for name, want in ((None, "qornn"), ("pm5", "pm5")):
        onnx(make(), tmp_path / "a.onnx", name=name)
        assert ox.load(tmp_path / "a.onnx").graph.name == want
    with pytest.raises(SettingsError, match="name"):
        onnx(make(), tmp_path / "b.onnx", name=" ")


def test_names_that_are_not_utf8_are_marked_in_the_facts(tmp_path):
    odd = "caf\udce9"  # the bytes caf\xe9, as Python holds the name of a file
    file = tmp_path / f"{odd}.onnx"
    onnx(make().with_provenance(task=odd), file, command=f"qornn export {odd}.qornn")
    facts = {prop.key: prop.value for prop in ox.load_from_string(file.read_bytes()).metadata_props}
    assert (facts["task"], facts["command"]) == ("caf\ufffd", "qornn export caf\ufffd.qornn")


def test_command_line(qornn_command, tmp_path):
    program, out = tmp_path / "p.qornn", tmp_path / "p.onnx"
    make(n_h=5).save(program)
    words = ("export", program, "--to", "onnx", "-o", out)
    refused = qornn_command(*words, "--vector-steps", "64", check=False)
    assert refused.returncode != 0
    assert "--vector-steps is for C" in refused.stderr
    assert not out.exists()
    qornn_command(*words, "--name", "pm5")
    assert ox.load(out).graph.name == "pm5"


def test_no_half_written_file_is_left(tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(WriteError, match="could not write"):
        onnx(make(), tmp_path / "taken" / "a.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_without_the_package_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(QornnError, match=r"pip install 'qornn\[onnx\]'"):
        onnx(make(), tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


def test_neither_torch_nor_onnx_is_imported_before_it_is_needed():
    code = "import sys, qornn.export.onnx_scan.scan; print(*{'torch', 'onnx'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def test_a_place_that_cannot_be_written_is_told_before_the_work(monkeypatch):
    monkeypatch.setattr(onnx_scan, "_model", lambda *_: pytest.fail("the graph was made first"))
    with pytest.raises(WriteError, match="could not write"):
        onnx(make(), "/proc/none/model.onnx")
