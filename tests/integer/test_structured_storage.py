"""Structured programs on disk: a few signs, packed; everything else about them is said and checked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_files import at, put, put_tensor, sealed, split
from strategies import random_input, same
from structured_programs import make_program, structured_programs

from qornn.errors import ProgramError
from qornn.integer.matrices import Cycle, Delay, Hadamard
from qornn.integer.simulate import simulate
from qornn.integer.storage import load, save


@pytest.mark.slow
@given(structured_programs(), st.integers(0, 99))
def test_what_is_loaded_is_what_was_saved(tmp_path, program, seed):
    path = tmp_path / "net.qornn"
    save(program, path)
    again = load(path)
    assert same(program, again)
    x = random_input(program, seed)
    assert all((a == b).all() for a, b in zip(simulate(program, x), simulate(again, x), strict=True))
    data = path.read_bytes()
    save(again, path)
    assert path.read_bytes() == data
    stored = split(data)[2]
    assert sum(t.nbytes for name, t in stored.items() if name.startswith("layers.0.W.")) == program.W.stored_bytes
    assert sum(t.nbytes for name, t in stored.items() if name in ("readout.V", "readout.bias")) in (
        program.readout.stored_bytes,
        program.readout.stored_bytes - 16,  # a float readout also has its scale, and b_o
    )


def test_signs_are_bits(tmp_path):
    signs = np.array([1, -1, 1, 1, -1, -1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1])
    save(make_program(Hadamard(signs=signs, block=16)), tmp_path / "net.qornn")
    _, facts, tensors = split((tmp_path / "net.qornn").read_bytes())
    assert facts["layers"][0]["W"] == {"kind": "hadamard", "signs": [16], "block": 16}
    assert tensors["layers.0.W.signs"].tolist() == [0b00110010, 0b10000000]


def test_integers_of_v_below_eight_bits_are_packed(tmp_path):
    for bits, dtype, shape in ((8, np.int8, (3, 5)), (3, np.uint8, (6,))):
        program = make_program(Cycle(units=5), bits_V=bits)
        save(program, tmp_path / "net.qornn")
        _, facts, tensors = split((tmp_path / "net.qornn").read_bytes())
        assert facts["readout"]["bits"] == bits
        assert (tensors["readout.V"].dtype, tensors["readout.V"].shape) == (dtype, shape)


def test_a_file_from_before_v_had_bits_is_read(tmp_path):
    """Such files say no bits: V are int8, as they lie."""
    program = make_program(Cycle(units=5), bits_V=8)
    save(program, tmp_path / "net.qornn")
    _, facts, tensors = split((tmp_path / "net.qornn").read_bytes())
    del facts["readout"]["bits"]
    (tmp_path / "old.qornn").write_bytes(sealed(facts, tensors))
    assert same(load(tmp_path / "old.qornn"), program)


BASES = {
    "hadamard": Hadamard(signs=[1, -1] * 6, block=4),
    "cycle": Cycle(units=5),
    "delay": Delay(units=12, signs=[1, -1, 1, 1]),
}


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("hadamard", put(*at("W"), "block", value=3), "must be a power of 2, got 3; the nearest: 2 or 4"),
        ("hadamard", put(*at("W"), "block", value=8), "multiple of block=8, got 12; take 8 or 16"),
        ("hadamard", put(*at("W"), "block", value=10**30), "block of W must be a whole number"),
        ("hadamard", put(*at("W"), "signs", value=12), "the shape of W.signs must be one number, got 12"),
        ("hadamard", put(*at("W"), "signs", value=[12, 1]), "the shape of W.signs must be one number"),
        ("hadamard", put(*at("W"), "signs", value=[2**40]), "each side of W.signs must be a whole number"),
        ("hadamard", put(*at("W"), "signs", value=[2**30]), "1073741824 integers of 1 bits take 134217728 bytes"),
        ("hadamard", put(*at("W"), "signs", value=[17]), "17 integers of 1 bits take 3 bytes, got uint8"),
        ("hadamard", put(*at("W"), "signs", value=[8]), "8 integers of 1 bits take 1 bytes, got uint8"),
        ("hadamard", put(*at("W"), "signs", value=[11]), "the bits that fill the last byte"),
        ("hadamard", put(*at("W"), "units", value=12), "W must have the fields block, got"),
        ("hadamard", put(*at("W"), "bits", value=1), "W must have the fields block, got"),
        ("hadamard", lambda facts, tensors: facts["layers"][0]["W"].pop("block"), "W must have the fields block, got"),
        (
            "hadamard",
            lambda facts, tensors: facts["layers"][0]["W"].pop("signs"),
            "the shape of W.signs must be one number",
        ),
        ("hadamard", lambda facts, tensors: tensors.pop("layers.0.W.signs"), "tensor W.signs is missing"),
        (
            "hadamard",
            put_tensor("layers.0.W.signs", lambda t: t | np.array([0, 128], np.uint8)),
            "the bits that fill the last",
        ),
        ("hadamard", put_tensor("layers.0.W.signs", lambda t: t.view(np.int8)), "W.signs must be uint8, got int8"),
        ("hadamard", put_tensor("layers.0.W.signs", lambda t: t[:1]), "12 integers of 1 bits take 2 bytes"),
        (
            "hadamard",
            put_tensor("layers.0.W.alpha", lambda t: np.array(1.0)),
            "belong to no part: layers.0.W.alpha",
        ),
        ("cycle", put(*at("W"), "units", value=6), r"U must be \(n_h, n_i\) = \(6, 3\), got \(5, 3\)"),
        ("cycle", put(*at("W"), "units", value=2**17), r"units of W must be a whole number in 2\.\.65536"),
        ("cycle", put(*at("W"), "kind", value="delay"), "tensor W.signs is missing"),
        ("delay", put(*at("W"), "units", value=9), "need n_h of at least 10, got 9"),
        ("delay", put(*at("W"), "signs", value=[3]), "must be a power of 4, got 3; the nearest: 4"),
        ("cycle", put(*at("readout"), "bits", value=5), "15 integers of 5 bits take 10 bytes, got uint8"),
        ("cycle", put(*at("readout"), "bits", value=9), "bits of readout must be a whole number"),
        ("cycle", put(*at("readout"), "bits", value=8), "readout.V must be int8, got uint8"),
        ("cycle", put(*at("readout"), "V", value=[5, 3]), r"b_o must have shape \(5\), got \(3,\)"),
        ("cycle", lambda facts, tensors: facts["readout"].pop("bits"), "readout.V must be int8, got uint8"),
        ("cycle", put_tensor("readout.V", lambda t: t | np.array([0] * 5 + [128], np.uint8)), "fill the last byte"),
        (
            "cycle",
            put_tensor("layers.0.activation.bias", lambda t: t.astype(np.int32)),
            "activation.bias must be int64",
        ),
        ("cycle", put_tensor("layers.0.activation.bias", lambda t: t[:3]), r"the bias must be \(5,\)"),
        ("delay", put_tensor("layers.0.activation.bias", lambda t: t + 1), "row 2 of the bias must be 0"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, kind, change, message):
    save(make_program(BASES[kind], "multiplier", "biased", bits_V=3), tmp_path / "net.qornn")
    _, facts, tensors = split((tmp_path / "net.qornn").read_bytes())
    change(facts, tensors)
    (tmp_path / "edited.qornn").write_bytes(sealed(facts, tensors))
    with pytest.raises(ProgramError, match=message):
        load(tmp_path / "edited.qornn")


def test_the_file_of_a_large_cycle_is_small(tmp_path):
    program = make_program(Cycle(units=512), bits_V=4, n_i=1)
    save(program, tmp_path / "net.qornn")
    assert program.true_bytes < (tmp_path / "net.qornn").stat().st_size < program.true_bytes + 2048  # the header
