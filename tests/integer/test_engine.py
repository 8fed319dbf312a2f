"""The C engine equals `simulate` bit for bit: every kernel, layout and kind of program."""

import copy
import ctypes
import shutil
import subprocess
import timeit
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from single import single

from qornn.errors import QornnError, SettingsError
from qornn.integer import layout
from qornn.integer.activations import Identity, ModReLU, ReLU
from qornn.integer.engine import run, structs
from qornn.integer.engine import session as sessions
from qornn.integer.engine.library import library
from qornn.integer.factors import make_multiplier, make_per_row, make_table, make_thresholds
from qornn.integer.inputs import Codes, Samples
from qornn.integer.matrices import Dense, Matrix
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.simulate import SaturationWarning, simulate
from qornn.integer.state import State

RUNTIME = Path(__file__).parents[2] / "src" / "qornn" / "runtime"
SIZES = (1, 2, 3, 5, 17, 64, 65, 170)
WIDTHS = (1, 2, 3, 4, 5, 8, 17, 48)  # n_i
REQUANTS = ("multiplier", "thresholds", "per-row")
native = pytest.mark.skipif(library() is None, reason="installed without the native integer engine")


def build(
    seed=0, *, n_h=17, n_i=2, n_o=3, bits=4, bits_U=None, activation_bits=12, codes=False, plain=True, bits_x=9,
    requant="per-row", activation="relu", identity=False, readout="float", relu=False, steps="last",
):  # fmt: skip
    """A random program whose states neither die nor all saturate."""
    rng = np.random.default_rng(seed)
    bits_U = bits_U or bits
    alpha = 1.0 if n_h < 4 else 2.0 / np.sqrt(n_h)
    W = Dense(integers=_matrix(rng, bits, (n_h, n_h)), bits=bits, alpha=alpha, identity=identity)
    U = Matrix(integers=_matrix(rng, bits_U, (n_h, n_i)), bits=bits_U, alpha=1.0)
    state = State(bits=activation_bits, alpha=1.0)
    if codes:
        inputs = Codes(size=n_i)
    elif plain:
        zero = np.zeros(n_i, np.int32)
        top = 2 ** (bits_x - 1)
        inputs = Samples(bits=bits_x, alpha=1.0, low=-top, high=top - 1, offset=zero, multiplier=zero + 1, shift=zero)
    else:
        inputs = Samples(
            bits=9, alpha=1.0, low=-(2**15), high=2**15 - 1, offset=rng.integers(-9000, 9000, n_i),
            multiplier=rng.integers(0, 2**24, n_i), shift=rng.choice([0, 1, 25, 31], n_i),
        )  # fmt: skip
    sums = np.stack([W.row_sums() * state.top, inputs.sum_bound(U.integers)], 1)
    reach = state.top / max(1, np.median(sums[:, 1]))  # the input alone drives a unit to about its top
    if requant == "per-row":
        c_W, c_U = rng.uniform(0.5, 1.5, (2, n_h)) * np.array([[alpha / 2 ** (bits - 1)], [reach]])
        bias = rng.uniform(-0.2, 0.2, n_h) * state.top
        made, wide_bias, _ = make_per_row(c_W, c_U, bias, sums, identity=identity, top=state.top)
    else:
        c = Fraction(alpha / 2 ** (bits - 1))
        shifts = {"shift_W": 0, "shift_U": max(0, min(6, int(np.log2(max(reach / float(c), 1)))))}
        limit = (2**31 - 1) // 2 // max(1, int((sums[:, 0] + (sums[:, 1] << shifts["shift_U"])).max()))
        shifts["shift_W"] = min(2, max(0, limit.bit_length() - 1))
        c /= 2 ** shifts["shift_W"]
        make = {"multiplier": make_multiplier, "thresholds": make_thresholds, "table": make_table}[requant]
        made = make(c, **shifts) if requant == "multiplier" else make(c, state.top, **shifts)
        wide_bias = rng.integers(-(2**9), 2**9, n_h)
    kinds = {"relu": ReLU, "identity": Identity, "modrelu": lambda: ModReLU(bias=wide_bias)}
    if readout == "float":
        V = rng.normal(size=(n_o, n_h)).astype(np.float32)
        out = FloatReadout(V=V, b_o=rng.normal(size=n_o).astype(np.float32), scale=0.01, relu=relu)
    else:
        V = rng.integers(-128, 128, (n_o, n_h))
        out = IntReadout(V=V, bias=rng.integers(-(2**20), 2**20, n_o), scale=0.01, relu=relu)
    return single(
        W=W, U=U, state=state, input=inputs, activation=kinds[activation](), requant=made, readout=out, steps=steps
    )


def _matrix(rng, bits, shape):
    top = 2 ** (bits - 1)
    return rng.integers(-top, top, shape)


def data(program, B=3, T=9, seed=1):
    rng = np.random.default_rng(seed)
    if isinstance(program.input, Codes):
        return rng.integers(0, program.n_i, (B, T))
    x = rng.integers(program.input.low, program.input.high + 1, (B, T, program.n_i))
    x[rng.random(x.shape) < 0.2] = program.input.high  # the ends, where a clamp or a sign goes wrong
    x[rng.random(x.shape) < 0.2] = program.input.low
    return x


def assert_equal(program, lengths=None):
    x = data(program)
    states, y = simulate(program, x, lengths)
    for how in layout_kernels(program):
        np.testing.assert_array_equal(run.states(program, x, lengths, **how), states, err_msg=str(how))
        got = run.run(program, x, lengths, **how)
        assert got.dtype == y.dtype
        np.testing.assert_array_equal(got, y, err_msg=str(how))
    return states


def layout_kernels(program):
    return [{"layout": kind, "kernel": k} for kind in ("bytes", "packed") for k in run.available(program, kind)]


@pytest.mark.slow
@native
@pytest.mark.parametrize("n_h", SIZES)
@pytest.mark.parametrize("bits", range(2, 9))
def test_every_width_and_size(bits, n_h):
    states = assert_equal(build(bits, n_h=n_h, bits=bits, bits_U=10 - bits))
    assert states.any() or n_h < 4


@native
@pytest.mark.parametrize("requant", REQUANTS)
@pytest.mark.parametrize("activation", ["relu", "modrelu", "identity"])
@pytest.mark.parametrize("n_h", [5, 65])
def test_every_activation_and_requantization(activation, requant, n_h):
    states = assert_equal(build(7, n_h=n_h, activation=activation, requant=requant))
    assert (states < 0).any() == (activation != "relu")


@native
@pytest.mark.parametrize("activation", ["relu", "modrelu", "identity"])
@pytest.mark.parametrize("n_h", [3, 17, 64])
def test_identity_offset(activation, n_h):
    assert_equal(build(8, n_h=n_h, activation=activation, identity=True))


@native
@pytest.mark.parametrize("activation_bits", [4, 8, 16])
def test_every_state_width(activation_bits):
    states = assert_equal(build(9, n_h=17, activation="identity", activation_bits=activation_bits))
    assert np.abs(states).max() == 2 ** (activation_bits - 1) - 1


@pytest.mark.slow
@native
@pytest.mark.parametrize("bits_U", range(2, 9))
@pytest.mark.parametrize("kind", [{"codes": True}, {"plain": False}, {"plain": True}, {"bits_x": 16}])
@pytest.mark.parametrize("n_i", WIDTHS)
def test_every_input(n_i, kind, bits_U):
    assert_equal(build(bits_U, n_i=n_i, n_h=19, bits_U=bits_U, **kind))


@pytest.mark.slow
@native
@pytest.mark.parametrize("in_rows", [False, True])
@pytest.mark.parametrize("n_h", [1, 3, 13, 66])
def test_the_order_of_U_changes_nothing(n_h, in_rows, monkeypatch):
    """Rows for few inputs and columns for many too, whatever pays."""
    monkeypatch.setattr(layout, "in_rows", lambda n_i, bits: in_rows)
    for n_i in WIDTHS:
        for bits_U in (2, 4, 7, 8):
            program = build(n_i, n_h=n_h, n_i=n_i, bits_U=bits_U, bits_x=16)
            x = data(program)
            for kernel in run.available(program, "packed"):
                got = run.states(program, x, layout="packed", kernel=kernel)
                np.testing.assert_array_equal(got, simulate(program, x)[0], err_msg=f"{n_i} {bits_U} {kernel}")


def test_U_lies_in_rows_where_that_pays():
    """From half a group on, where a row takes at most twice its bits."""
    for bits in range(2, 9):
        rows = [n_i for n_i in range(1, 99) if layout.in_rows(n_i, bits)]
        assert rows == list(range(layout.LEAST_INPUTS[bits], 99))
        assert all(32 * layout.row_words(n_i, bits) <= 2 * n_i * bits for n_i in rows)
    for codes in (False, True):
        program = build(n_i=48, codes=codes)
        assert ("U_planes" in program.layers[0].fields(program.input, layout.DEVICE)) is not codes


@native
@pytest.mark.parametrize("steps", ["last", "all"])
@pytest.mark.parametrize("readout", ["float", "int"])
@pytest.mark.parametrize("relu", [False, True])
def test_readouts_and_lengths(readout, relu, steps):
    program = build(11, n_h=21, n_o=11, activation="identity", readout=readout, relu=relu, steps=steps)
    assert_equal(program)
    assert_equal(program, lengths=[1, 9, 4])


@pytest.mark.slow
@native
@given(
    seed=st.integers(0, 2**32),
    n_h=st.integers(1, 70),
    n_i=st.integers(1, 50),
    bits=st.integers(2, 8),
    bits_U=st.integers(2, 8),
    activation_bits=st.integers(4, 12),
    codes=st.booleans(),
    plain=st.booleans(),
    requant=st.sampled_from(REQUANTS),
    activation=st.sampled_from(["relu", "modrelu", "identity"]),
    readout=st.sampled_from(["float", "int"]),
    relu=st.booleans(),
    steps=st.sampled_from(["last", "all"]),
)
def test_any_program(**kind):
    assert_equal(build(**kind))


@native
@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("steps", ["last", "all"])
def test_session_goes_step_by_step_as_a_run_does(codes, steps):
    program = build(12, codes=codes, steps=steps)
    x = data(program, B=1)
    states, _ = simulate(program, x)
    session = program.session()
    for _ in range(2):  # twice: reset gives back the zero state
        for t in range(x.shape[1]):
            y = session.step(x[0, t])
            np.testing.assert_array_equal(session.h, states[0, t])
            np.testing.assert_array_equal(y, program.readout.outputs(states[0, t]))
        session.reset()
        assert not session.h.any()


@native
def test_a_session_keeps_nothing_of_what_it_gave_or_took():
    program = build(12, n_i=20)
    x = data(program, B=1)[0]
    session = program.session()
    first = session.step(x[0])
    kept = first.copy()
    fork = copy.deepcopy(session)
    second = session.step(x[1])
    assert not (second == kept).all()
    np.testing.assert_array_equal(first, kept)
    session.step(x[2])  # the copy has a state of its own
    np.testing.assert_array_equal(fork.step(x[1].tolist()), second)
    with pytest.warns(SaturationWarning, match="1 of 20"):
        clipped = program.session().step(np.where(np.arange(20) == 3, 300, x[0]), saturate=True)
    want = program.run(np.where(np.arange(20) == 3, 255, x[0])[None, None])[0]
    np.testing.assert_array_equal(clipped, want)


@native
@pytest.mark.parametrize("n_i", [2, 20])
def test_a_session_refuses_what_a_run_refuses(n_i):
    session, codes = build(15, n_i=n_i).session(), build(15, n_i=n_i, codes=True).session()
    good = np.zeros(n_i, int)
    for bad, words in (
        (good[:-1], "raw samples"),
        (good.astype(float), "from_floats"),
        (np.where(good == 0, -257, 0), "saturate=True"),
        (np.where(good == 0, 2**16, 0), "saturate=True"),
        ([[1], [2, 3]], "ragged"),
    ):
        with pytest.raises(SettingsError, match=words):
            session.step(bad)
    for bad, words in (
        (-1, "codes must lie"),
        (n_i, "codes must lie"),
        (2**16, "codes"),
        (1.0, "codes"),
        ([1], "codes"),
    ):
        with pytest.raises(SettingsError, match=words):
            codes.step(bad)
    assert not session.h.any()
    assert not codes.h.any()


@native
def test_a_step_costs_little_more_than_the_engine():
    """22 µs once; 3 on the machine this was written on."""
    program = build(12, n_h=8)
    session, x = program.session(), data(program, B=1)[0, 0]
    best = min(timeit.repeat(lambda: session.step(x), number=200, repeat=15)) / 200
    slow = min(timeit.repeat(lambda: program.accept(x[None, None]), number=200, repeat=15)) / 200
    assert best < slow  # checking a whole batch alone takes longer, on any machine


def test_a_library_of_another_version_is_refused(tmp_path, monkeypatch):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    old = 'const char *qornn_digest(void) { return "%s"; }'
    for body in (old % ("0" * 64), "unsigned qornn_abi(void) { return 7; }", "int nothing;"):
        source, path = tmp_path / "old.c", tmp_path / f"old{len(body)}.so"
        source.write_text(body)
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", path], check=True)
        monkeypatch.setenv("QORNN_RUNTIME_LIBRARY", str(path))
        with pytest.raises(QornnError, match=r"another version.*install again"):
            library.__wrapped__()


def test_the_mirror_of_the_structs_is_as_the_compiler_lays_them_out(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    lines = [f"  P({name}, {field})" for name, fields in structs.declared().items() for field, *_ in fields]
    source = tmp_path / "offsets.c"
    source.write_text(
        '#include <stdio.h>\n#include "host/qornn_host_readout.h"\n#include "qornn_stream.h"\n'
        '#define P(s, f) printf("%s %s %zu %zu %zu\\n", #s, #f, offsetof(s, f), sizeof(((s *)0)->f), sizeof(s));\n'
        "int main(void) {\n" + "\n".join(lines) + "\n  return 0;\n}\n"
    )
    subprocess.run(["gcc", f"-I{RUNTIME}", source, "-o", tmp_path / "offsets"], check=True)
    said = subprocess.run([tmp_path / "offsets"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert {"qornn_input", "qornn_recurrent", "qornn_readout", "qornn_host_model", "qornn_batch"} <= {
        line.split()[0] for line in said
    }
    for line in said:
        name, field, offset, size, whole = line.split()
        mirror = structs.struct(name)
        place = getattr(mirror, field)
        assert (place.offset, place.size, ctypes.sizeof(mirror)) == (int(offset), int(size), int(whole)), line


def test_every_constant_has_the_value_of_the_compiler(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    names = list(structs.constants())
    source = tmp_path / "constants.c"
    source.write_text(
        '#include <stdio.h>\n#include "host/qornn_host.h"\nint main(void) {\n'
        + "".join(f'  printf("%d\\n", (int){name});\n' for name in names)
        + "  return 0;\n}\n"
    )
    subprocess.run(["gcc", f"-I{RUNTIME}", source, "-o", tmp_path / "constants"], check=True)
    said = subprocess.run([tmp_path / "constants"], check=True, capture_output=True, text=True).stdout.split()
    assert list(map(int, said)) == list(structs.constants().values())


def test_another_header_is_another_digest(monkeypatch):
    before, texts = structs.digest(), structs.headers()
    name = next(iter(texts))
    monkeypatch.setattr(structs, "headers", lambda: {**texts, name: texts[name] + b" "})
    assert structs.digest.__wrapped__() != before


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_bad_threads_are_refused(threads):
    program = build(14)
    with pytest.raises(SettingsError, match="threads must be"):
        program.run(data(program), threads=threads)


def test_ragged_lists_are_refused_with_the_way_out():
    program = build(15)
    for way in (program.run, lambda x: run.states(program, x)):
        with pytest.raises(SettingsError, match=r"ragged.*pad.*lengths"):
            way([[[1, 2], [3, 4]], [[1, 2]]])


def test_without_the_library_the_law_itself_runs(monkeypatch):
    for module in (run, sessions):
        monkeypatch.setattr(module, "library", lambda: None)
    program = build(13)
    x = data(program)
    states, y = simulate(program, x)
    assert run.in_use() == run.in_use(program) == "numpy"
    np.testing.assert_array_equal(program.run(x), y)
    np.testing.assert_array_equal(run.states(program, x), states)
    session = program.session()
    for t in range(x.shape[1]):
        last = session.step(x[0, t])
    np.testing.assert_array_equal(last, y[0])


@pytest.mark.parametrize("activation", ["relu", "modrelu", "identity"])
def test_a_table_is_run_by_the_law_itself(activation):
    program = build(7, n_h=17, activation=activation, requant="table", activation_bits=6)
    x, lengths = data(program), [9, 1, 5]
    states, y = simulate(program, x, lengths)
    assert run.in_use(program) == "numpy"
    assert run.available(program, "bytes") == []
    np.testing.assert_array_equal(program.run(x, lengths), y)
    np.testing.assert_array_equal(run.states(program, x, lengths), states)


@native
def test_threads_share_the_batch():
    program = build(14, n_h=33)
    x = data(program, B=7)
    for threads in (1, 2, 3, 20):
        np.testing.assert_array_equal(program.run(x, threads=threads), simulate(program, x)[1])


@native
def test_inputs_out_of_range_are_refused_or_clipped_and_counted():
    program = build(15)
    x = data(program)
    x[0, 0, 0] = 300
    with pytest.raises(SettingsError, match="saturate=True"):
        program.run(x)
    with pytest.raises(SettingsError, match="saturate=True"):
        program.session().step(x[0, 0])
    with pytest.warns(SaturationWarning, match="1 of 54"):
        got = program.run(x, saturate=True)
    np.testing.assert_array_equal(got, simulate(program, x.clip(-256, 255))[1])
    with pytest.raises(SettingsError, match="codes must lie"):
        build(16, codes=True).session().step(2)


@native
def test_the_portable_kernel_is_always_there_and_named():
    assert run.in_use().startswith("native (")
    for kind in ("bytes", "packed"):
        assert "portable" in run.available(build(17), kind)
    with pytest.raises(SettingsError, match="avx2"):
        run.run(build(17), data(build(17)), kernel="avx")


@pytest.mark.parametrize("bits", range(2, 9))
def test_planes_take_k_bits_a_weight_and_give_them_back(bits):
    W = _matrix(np.random.default_rng(bits), bits, (5, 45))
    packed = layout.pack_rows(W, bits)
    assert packed.shape == (5, layout.row_words(45, bits))
    back, start, shift = np.zeros((5, 45), np.int64), 0, 0
    for f in layout.PLANES[bits]:
        for j in range(45):  # weight j by its definition: word, half and field
            word, place = divmod(j, 32 // f)
            u = packed[:, start + word] >> np.uint32(f * (place // 2) + 16 * (place % 2))
            back[:, j] += (u.astype(np.int64) & (2**f - 1)) << shift
        start += layout.plane_words(45, f)
        shift += f
    np.testing.assert_array_equal(back - 2 ** (bits - 1), W)
    assert 32 * layout.row_words(64, bits) == 64 * bits
