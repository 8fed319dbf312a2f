"""The C engine equals `simulate` bit for bit: every kernel, layout and kind of program."""

import numpy as np
import pytest
from engine_programs import REQUANTS, SIZES, WIDTHS, assert_equal, build, data, native, random_matrix
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import SettingsError
from qornn.integer import layout
from qornn.integer.engine import run
from qornn.integer.engine import session as sessions
from qornn.integer.simulate import SaturationWarning, simulate


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
def test_planes_take_k_bits_per_weight_and_give_them_back(bits):
    W = random_matrix(np.random.default_rng(bits), bits, (5, 45))
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
