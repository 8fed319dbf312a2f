"""Programs on disk: what is saved returns, what is wrong in a file is said, and what cannot be saved is refused."""

import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import given
from hypothesis import strategies as st
from program_files import as_old, at, bases, put, put_tensor, sealed, split
from single import changed
from strategies import paper, per_row, programs, random_input, random_net, same

from qornn.errors import ProgramError, WriteError
from qornn.integer.inputs import INPUTS, Samples
from qornn.integer.layers import LAYERS, Mix
from qornn.integer.packing import pack, unpack
from qornn.integer.program import IntegerProgram
from qornn.integer.readout import READOUTS
from qornn.integer.simulate import simulate
from qornn.integer.size import size
from qornn.integer.storage import FILE_LIMIT, HEADER_LIMIT, load, save, to_bytes
from qornn.train.checkpoint import Checkpoint
from qornn.train.checkpoint import save as save_checkpoint


@pytest.mark.slow
@given(programs(), st.integers(0, 99))
def test_what_is_loaded_is_what_was_saved(tmp_path, program, seed):
    path = tmp_path / "net.qornn"
    program.save(path)
    again = load(path)
    assert same(program, again)
    x = random_input(program, seed)
    for ours, theirs in zip(simulate(program, x), simulate(again, x), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()
    data = path.read_bytes()
    save(again, str(path))
    assert path.read_bytes() == data  # and the same program gives the same bytes
    assert safetensors.numpy.load(data)["layers.0.W.integers"].nbytes == program.W.stored_bytes


def test_equality_in_these_tests_sees_every_field():
    base = bases()[3]
    for part, change in [
        ("W", {"alpha": [0.1, 0.2, 0.4]}),
        ("U", {"integers": -1 - base.U.integers}),
        ("state", {"alpha": 9.0}),
        ("input", {"scale": None}),
        ("requant", {"M_U": base.requant.M_U // 2}),
        ("readout", {"relu": True}),
    ]:
        assert not same(base, changed(base, **{part: replace(getattr(base, part), **change)}))
    assert not same(base, changed(base, steps="last"))
    assert not same(base, base.with_provenance(a=1))


def test_a_file_of_schema_3_opens_as_it_was(tmp_path):
    """It says nothing of windows and of the steps of a mean."""
    path = tmp_path / "net.qornn"
    for program in (bases()[3], bases()[1]):
        program.save(path)
        _, facts, tensors = split(path.read_bytes())
        assert facts["schema"] == 5
        facts["schema"] = 3
        facts["input"].pop("window", None)
        facts["readout"].pop("steps_max", None)
        path.write_bytes(sealed(facts, tensors))
        assert same(load(path), program)


def without_raw_units():
    base = bases()[3]
    return replace(base, input=replace(base.input, raw_scale=None, scale=1.0))


def test_raw_units_are_of_schema_2(tmp_path):
    """A file of schema 1 that has them was made by nobody."""
    path = tmp_path / "net.qornn"
    base = without_raw_units()
    program = replace(base, input=replace(base.input, raw_scale=np.full(base.n_i, 0.25)))
    program.save(path)
    _, facts, tensors = split(path.read_bytes())
    path.write_bytes(sealed(*as_old(facts, tensors, 2)))
    assert same(load(path), program)
    path.write_bytes(sealed(*as_old(facts, tensors, 1)))
    with pytest.raises(ProgramError, match=r"schema 1 holds no input\.raw_scale"):
        load(path)


def save_old(program, path):
    """As schema 1."""
    program.save(path)
    _, facts, tensors = split(path.read_bytes())
    path.write_bytes(sealed(*as_old(facts, tensors, 1)))


def test_raw_units_of_schema_1_are_those_its_provenance_says(tmp_path):
    path, base = tmp_path / "net.qornn", without_raw_units()
    save_old(base.with_provenance(input={"raw_scale": [0.25] * base.n_i}), path)
    again = load(path)
    assert again.input.raw_scale.tolist() == [0.25] * base.n_i
    assert again.input.from_floats(np.full((1, base.n_i), 1.1)).tolist() == [[4] * base.n_i]
    x = random_input(base, 0)
    assert np.array_equal(simulate(again, x)[1], simulate(base, x)[1])
    for nonsense in ({"raw_scale": [0.3] * base.n_i}, {"raw_scale": [0.25]}, {"raw_scale": "x"}, [], 3):
        save_old(base.with_provenance(input=nonsense), path)
        assert load(path).input.raw_scale is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("more", value=1), "must have the fields format, schema, steps, parts and provenance"),
        (put("parts", value=[]), "its parts should be W, U, state"),
        (put("parts", "W", value=None), "W is of an unknown kind: None"),
        (put("parts", "readout", "steps", value="all"), "the readout should not say steps in schema 1"),
        (put("steps", value="first"), "steps read out are 'last', 'all' or 'mean'"),
    ],
)
def test_what_is_wrong_with_an_old_file_is_said(change, message, tmp_path):
    path = tmp_path / "net.qornn"
    without_raw_units().save(path)
    _, facts, tensors = split(path.read_bytes())
    facts, tensors = as_old(facts, tensors, 1)
    change(facts, tensors)
    path.write_bytes(sealed(facts, tensors))
    with pytest.raises(ProgramError, match=message):
        load(path)


@pytest.mark.parametrize("bits", range(2, 9))
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 40))
def test_packing_is_a_stream_of_bits_and_is_undone(bits, seed, count):
    integers = np.random.default_rng(seed).integers(-(2 ** (bits - 1)), 2 ** (bits - 1), count).astype(np.int8)
    packed = pack(integers, bits)
    stream = sum((int(v) & (2**bits - 1)) << (i * bits) for i, v in enumerate(integers))  # one long number
    assert packed.tobytes() == stream.to_bytes(-(-count * bits // 8), "little")
    got = unpack(packed, bits, count)
    assert got.dtype == np.int8
    assert got.tolist() == integers.tolist()


@pytest.mark.parametrize(
    ("n_i", "n_h", "n_o", "k", "codes"),
    [(1, 170, 10, 4, False), (10, 256, 9, 5, True), (1, 170, 10, 8, False)],  # Table "Model sizes": 20.8, 50.6, 35.0 kB
)
def test_the_file_is_about_the_papers_size(tmp_path, n_i, n_h, n_o, k, codes):
    shape = {"n_i": n_i, "n_h": n_h, "n_o": n_o, "k": k, "k_U": k, "k_a": 12}
    net = random_net(0, e=4, m=0, alphas=(0.5, 0.5, 1.0), activation="relu", codes=codes, **shape)
    path = tmp_path / "net.qornn"
    paper(net, "multiplier").save(path)
    want = size(n_i, n_h, n_o, bits=k).paper_bytes
    # b_o, two alphas, an input's normalisation and the rounding to bytes; the header is JSON of about 1.5 kB.
    assert want < path.stat().st_size < want + 2048
    per_row(net)[0].save(path)
    assert want < path.stat().st_size < want + 2048 + 9 * n_h  # two multipliers and one shift per row


def edit(saved, which, change):
    """The path of a file with the right digest whose facts and tensors were changed in place."""
    pairs, folder = saved
    _, facts, tensors = split(pairs[which][1])
    change(facts, tensors)
    path = folder / "edited.qornn"
    path.write_bytes(sealed(facts, tensors))
    return path


def test_the_digest_is_the_one_stated(saved):
    """`sealed` computes it on its own; were it another, every test of a resealed file would test nothing."""
    for which, (program, _) in enumerate(saved[0]):
        assert same(load(edit(saved, which, lambda facts, tensors: None)), program)


def filled(packed):
    return packed | np.array([0] * (len(packed) - 1) + [0x80], np.uint8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("schema", value=6), "was made by a newer qornn, schema 6; this one reads up to 5: upgrade"),
        (put("schema", value=0), "schema 0, where a number up to 5 should be"),
        (put("schema", value="1"), "schema '1', where a number"),
        (put("schema", value=True), "schema True, where a number"),
        (put("format", value="gguf"), "is a safetensors file, but not a program of qornn"),
        (put("more", value=1), "must have the fields format, schema, input, layers, readout, provenance"),
        (put("readout", "steps", value="first"), "steps read out are 'last', 'all' or 'mean'"),
        (put("provenance", value=[]), "provenance cannot be a list"),
        (put("layers", value=[]), r"its layers should be a list of 1 to 64, not \[\]"),
        (put("layers", 0, value=3), "layer 0 is of an unknown kind, None; known kinds are recurrent, rotations, mix"),
        (put("layers", 0, "more", value={}), "layer 0 should have W, U, state, activation, requant, not U, W"),
        (
            put(*at("W"), value=None),
            "of an unknown kind, None; known kinds are dense, hadamard, cycle, delay",
        ),
        (put(*at("W"), "kind", value="fourier"), "W is of an unknown kind, 'fourier'; known kinds are"),
        (put(*at("W"), "kind", value=["dense"]), "W is of an unknown kind"),
        (put(*at("W"), "shape", value=[3]), "the shape of W must be two numbers"),
        (
            put(*at("W"), "shape", value=[2**30, 2**30]),
            "integers of 3 bits take 432345564227567616 bytes, got uint8",
        ),
        (put(*at("W"), "shape", value=[10**40, 3]), "each side of W must be a whole number"),
        (put(*at("W"), "shape", value=[1, 9]), r"W must be square, got shape \(1, 9\)"),
        (put(*at("W"), "bits", value=9), "bits of W must be a whole number"),
        (put(*at("W"), "bits", value=4), "9 integers of 4 bits take 5 bytes, got uint8"),
        (put(*at("W"), "bits", value=3.0), "bits of W must be a whole number"),
        (put(*at("W"), "identity", value=0), "the identity of W must be True or False"),
        (put(*at("W"), "colour", value="red"), "W must have the fields bits, identity, got bits, colour, identity"),
        (put(*at("state"), "bits", value=6), "6-bit states take 31 thresholds, got 15"),
        (put(*at("state"), "alpha", value="1"), "alpha_h must be positive and finite"),
        (put(*at("readout"), "scale", value=1e300), "readout scale .as float32. must be positive"),
        (put(*at("input"), "low", value=None), "input low must be a whole number"),
        (put(*at("requant"), "shift_U", value=30), "the 32-bit accumulator holds at most"),
        (put_tensor("layers.0.W.integers", filled), "the bits that fill the last byte of packed integers must be zero"),
        (put_tensor("layers.0.W.integers", lambda t: t[:-1]), "9 integers of 3 bits take 4 bytes, got uint8"),
        (put_tensor("layers.0.W.integers", lambda t: t.reshape(2, 2)), r"take 4 bytes, got uint8\(2, 2\)"),
        (put_tensor("layers.0.W.integers", lambda t: t.view(np.int8)), "W.integers must be uint8, got int8"),
        (put_tensor("layers.0.W.alpha", lambda t: np.array(-t)), "alpha of W must be positive"),
        (put_tensor("layers.0.W.alpha", lambda t: t.astype(np.float32)), "W.alpha must be float64, got float32"),
        (put_tensor("readout.V", lambda t: t * np.float32(np.nan)), "V must be finite"),
        (put_tensor("readout.W", lambda t: np.zeros(3)), "tensors that belong to no part: readout.W"),
        (put_tensor("layers.0.requant.values", lambda t: t[::-1].copy()), "thresholds must not decrease"),
        (
            put_tensor("layers.0.requant.M_I", lambda t: np.ones(3, np.int32)),
            "belong to no part: layers.0.requant.M_I",
        ),
        (lambda facts, tensors: tensors.pop("layers.0.activation.bias"), "tensor activation.bias is missing"),
        (lambda facts, tensors: tensors.pop("layers.0.U.integers"), "tensor U.integers is missing"),
    ],
)
def test_what_is_wrong_is_said(saved, change, message):
    with pytest.raises(ProgramError, match=message) as caught:
        load(edit(saved, 0, change))
    assert "edited.qornn" in str(caught.value)


def test_a_missing_M_I_is_missed(saved):
    path = edit(saved, 3, lambda facts, tensors: tensors.pop("layers.0.requant.M_I"))
    with pytest.raises(ProgramError, match="the identity offset needs the multipliers M_I"):
        load(path)


def test_hostile_shapes_make_nothing_large(saved):
    """A shape of 2^60 weights is held against four bytes before anything is made of it."""
    import tracemalloc

    path = edit(saved, 0, put(*at("U"), "shape", value=[2**30, 2**30]))
    tracemalloc.start()
    with pytest.raises(ProgramError, match="bytes, got uint8"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


def test_paths_that_hold_no_file(tmp_path):
    with pytest.raises(ProgramError, match=r"no program at .*nothing\.qornn; `qornn lower` makes one"):
        load(tmp_path / "nothing.qornn")
    with pytest.raises(ProgramError, match="is not a file; a program is one file"):
        load(tmp_path)
    with pytest.raises(ProgramError, match=r"cannot read|no program at"):
        load("a\0b")
    with pytest.raises(ProgramError, match=r"cannot read|no program at"):
        load("a" * 5000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ProgramError, match="is not a file"):
        load(tmp_path / "pipe")


def test_a_file_larger_than_any_program_is_not_read_on(tmp_path, monkeypatch):
    monkeypatch.setattr("qornn.integer.storage.FILE_LIMIT", 1000)
    (tmp_path / "large.qornn").write_bytes(b"\0" * 1001)
    with pytest.raises(ProgramError, match="is larger than any program"):
        load(tmp_path / "large.qornn")
    with pytest.raises(ProgramError, match="a program file holds at most 1000 bytes"):
        save(bases()[0], tmp_path / "net.qornn")
    assert FILE_LIMIT > 2**29


def test_a_training_checkpoint_is_named_as_such(tmp_path):
    path = save_checkpoint(tmp_path, Checkpoint(7, {"W": torch.eye(2)}))
    with pytest.raises(
        ProgramError, match="is a training checkpoint, not a program; `qornn lower` makes one of its run"
    ):
        load(path)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="could not write"):
        save(bases()[0], tmp_path / "folder")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder"]


@pytest.mark.parametrize("bad", [object(), {1, 2}, np.float32(1), b"bytes"])
def test_a_provenance_that_is_not_json_is_refused(tmp_path, bad):
    with pytest.raises(ProgramError, match="provenance must be plain JSON to be saved"):
        save(bases()[0].with_provenance(bad=bad), tmp_path / "net.qornn")
    assert not list(tmp_path.iterdir())


def test_a_provenance_too_long_is_refused(tmp_path):
    with pytest.raises(ProgramError, match=r"at most .* bytes, 1048576 of them provenance and names"):
        save(bases()[0].with_provenance(log="x" * HEADER_LIMIT), tmp_path / "net.qornn")


def test_figures_that_json_lacks_are_null(tmp_path):
    save(bases()[0].with_provenance(loss=float("nan"), shape=(1, 2)), tmp_path / "net.qornn")
    assert load(tmp_path / "net.qornn").provenance["loss"] is None
    assert load(tmp_path / "net.qornn").provenance["shape"] == [1, 2]


def test_floats_return_exactly(tmp_path):
    base = bases()[0]
    awkward = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, float(np.nextafter(1, 2))]
    for alpha in awkward:
        save(changed(base, state=replace(base.state, alpha=alpha)), tmp_path / "net.qornn")
        assert Fraction(load(tmp_path / "net.qornn").state.alpha) == Fraction(alpha)


def test_every_kind_of_part_is_saved_by_these_tests():
    parts = {(IntegerProgram, "input"): INPUTS, (IntegerProgram, "readout"): READOUTS}
    parts |= {(layer, name): kinds for layer in LAYERS.values() for name, kinds in layer.parts.items()}
    wholes = [whole for program in bases() for whole in (program, *program.layers)]
    seen = {(cls, name, type(getattr(whole, name))) for whole in wholes for cls, name in parts if type(whole) is cls}
    optional = {(Mix, "S", type(None))}
    assert seen == {(*place, cls) for place, kinds in parts.items() for cls in kinds.values()} | optional
    assert any(isinstance(program.input, Samples) and program.input.scale for program in bases())


def test_saving_and_loading_need_no_torch(tmp_path):
    save(bases()[0], tmp_path / "net.qornn")
    code = "import sys; from qornn.integer.storage import load; p = load(sys.argv[1]); p.save(sys.argv[1]); "
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "net.qornn")], check=False).returncode == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            put("layers", 1, "kind", value="lstm"),
            r"program: layer 1 is of an unknown kind, 'lstm'; known kinds are recurrent, rotations, mix",
        ),
        (put("layers", 1, "more", value={}), "program: layer 1 should have W, U, state, activation, requant, not"),
        (put("layers", 1, "W", "bits", value=9), "program: layer 1: bits of W must be a whole number in 2..8, got 9"),
        (put("layers", 1, "requant", "shift_U", value=30), "program: layer 1: a sum of this program can reach"),
    ],
)
def test_a_wrong_layer_of_several_is_named_once(tmp_path, change, message):
    sizes = {
        "k": 4,
        "k_U": 4,
        "k_a": 5,
        "e": 1,
        "m": 0,
        "alphas": (0.7, 1.3, 1.0),
        "activation": "relu",
        "codes": False,
    }
    first, second = (paper(random_net(1, n_i=n_i, n_h=3, n_o=2, **sizes)) for n_i in (2, 3))
    program = replace(second, input=first.input, layers=first.layers + second.layers)
    _, facts, tensors = split(to_bytes(program))
    path = tmp_path / "stack.qornn"
    path.write_bytes(sealed(facts, tensors))
    assert same(load(path), program)
    change(facts, tensors)
    path.write_bytes(sealed(facts, tensors))
    with pytest.raises(ProgramError, match=message):
        load(path)
