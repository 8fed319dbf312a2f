"""Programs whose W is not stored, exported to C: exact everywhere, and as small and fast as they should be."""

import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from c_programs import STRICT, as_it_lies, compile_and_run, needs_gcc, sources_of
from c_structured import CASES, KINDS, MIXED, ODD, structured
from single import changed

from grids import covering, some
from qornn import export
from qornn.export.c99.make import make
from qornn.integer import layout as layouts
from qornn.integer.activations import Identity
from qornn.verify import measure, verify

pytestmark = needs_gcc
KB = 1024
DEVICES = ["cortex-m0", "cortex-m4", "rv32"]
SANITIZE = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def name_of(case):
    kind, form, parts = case
    return f"{kind}-{form}" + (f"-{parts['n_h']}" if "n_h" in parts else "")


def has_sanitizer():
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    return found.startswith("/")


def mcu():
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")


def ours(kind, n_h, **parts):
    """As on a device: 12-bit states, 9-bit samples of one channel, U and V of 4 bits, a bias."""
    settings = {"n_h": n_h, "n_o": 10, "k_a": 12, "k_i": 9, "shifts": (0, 1), **parts}
    return structured(kind, "multiplier" if n_h == 512 else "shift", **settings)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*some(CASES, 5), *ODD, *some(MIXED, 2)], ids=name_of)
def test_exact_and_without_a_complaint_of_compiler_or_sanitizer(tmp_path, case):
    kind, form, parts = case
    options = [*STRICT, *(SANITIZE if has_sanitizer() else [])]
    folder = export.c(structured(kind, form, **parts), tmp_path / "out", name="net", vector_steps=4)
    sources = sources_of(folder, replay=True)
    assert compile_and_run(tmp_path, sources, *options) == "exact steps=40\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_cpp_is_exact_too(tmp_path, kind):
    program = structured(kind, "multiplier", n_i=2)
    folder = export.c(program, tmp_path / "out", name="net", vector_steps=9)
    assert verify(folder).exact
    cpp = ["-x", "c++", "-std=c++17", *STRICT[1:], "-O2"]
    assert compile_and_run(tmp_path, sources_of(folder, replay=True), *cpp) == "exact steps=50\n"


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize(("kind", "target"), covering(KINDS, DEVICES, together=1))
def test_exact_on_emulated_devices(tmp_path, kind, target):
    mcu()
    for number, (form, parts) in enumerate((("shift", {}), ("per-row", {"n_i": 2, "k_U": 3}))):
        program = structured(kind, form, k_a=8, gain=1.25 if number else 1.0, **parts)
        folder = export.c(program, tmp_path / str(number), name="net", vector_steps=6)
        result = verify(folder, target)
        assert result.exact
        assert result.steps == 2 * 6 + 32


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize(("case", "target"), covering([MIXED[i] for i in (0, 3, 6, 7, 9)], DEVICES, together=1))
def test_a_mixed_readout_is_exact_on_emulated_devices(tmp_path, case, target):
    mcu()
    kind, form, parts = case
    folder = export.c(structured(kind, form, **parts), tmp_path / "out", name="net", vector_steps=4)
    assert verify(folder, target).exact


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
def test_a_mixed_readout_is_small_and_takes_no_memory(tmp_path):
    """n = 512: some code and no RAM but the stack, and fewer than three instructions for each entry of S."""
    mcu()
    found = {}
    for mix in (False, True):
        program = ours("cycle", 512, k_a=8, shifts=(0, 0), bias=False, mix=mix)
        folder = export.c(program, tmp_path / str(mix), name="net", vector_steps=1)
        found[mix] = measure(folder, "cortex-m4")
    assert 512**2 < found[True]["instructions_per_readout"] < 3 * 512**2
    assert found[True]["flash_bytes"] - found[False]["flash_bytes"] < 300
    assert found[True]["ram_bytes"] == found[False]["ram_bytes"]
    assert found[True]["stack_bytes"] < 200
    header = (tmp_path / "True" / "src" / "net.h").read_text()
    assert "transformed by Walsh-Hadamard and read out" in header
    assert int(re.search(r"per readout: transform, additions alone +(\d+)", header)[1]) == 512**2 * 3 // 4


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("kind", "target", "most"),
    [
        ("hadamard", "cortex-m4", 8000),  # issue 8: the whole step at n = 256
        ("hadamard", "cortex-m0", 12000),
        ("cycle", "cortex-m4", 3000),
    ],
)
def test_instructions_of_a_step(tmp_path, kind, target, most, bias):
    mcu()
    found = measure(export.c(ours(kind, 256, bias=bias), tmp_path / "out", name="net", vector_steps=4), target)
    assert most / 3 < found["instructions_per_step"] <= most


@pytest.mark.usefixtures("one_emulator")
def test_delay_lines_cost_little_more_than_to_move_them(tmp_path):
    mcu()
    program = ours("delay", 256, lines=16)
    assert moves(program)
    found = measure(export.c(program, tmp_path / "out", name="net", vector_steps=4), "cortex-m4")
    assert 256 * 2 < found["instructions_per_step"] < 256 * 2 + 1000


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m0"])
def test_memory_of_512_units(tmp_path, target):
    mcu()
    program = ours("hadamard", 512)
    found = measure(export.c(program, tmp_path / "out", name="net", vector_steps=4), target)
    weights = 512 // 8 + 512 // 2 + 4 * 512 + 10 * 512 // 2 + 4 * 10  # signs, U, bias, V and its bias
    assert weights < found["flash_bytes"] <= 9 * KB
    assert 512 * 4 + 10 * 4 < found["ram_bytes"] <= 2.2 * KB
    assert found["stack_bytes"] < 200


def moves(program):
    """Whether units along a delay line only pass their values on."""
    return program.W.keeps(program.requant, program.state.top)


def ram_bytes(program):
    return make(program, name="net", vector_steps=1, command="").ram_bytes


@pytest.mark.slow
@pytest.mark.parametrize("case", [*((kind, "shift", {}) for kind in KINDS), *ODD], ids=name_of)
def test_the_stated_state_is_the_real_one(tmp_path, case):
    kind, form, parts = case
    program = structured(kind, form, **parts)
    folder = export.c(program, tmp_path / "out", name="net", vector_steps=1)
    main = tmp_path / "main.c"
    main.write_text('#include <stdio.h>\n#include "net.h"\nint main(void) { printf("%zu", sizeof(net_state)); }\n')
    assert int(compile_and_run(tmp_path, [main], f"-I{folder}/src")) == ram_bytes(program) - 4 * program.n_o


@pytest.mark.parametrize(
    ("kind", "parts", "fact", "stored", "work"),
    [
        ("hadamard", {"n_h": 256}, "signed Hadamard, 32 bytes of signs", 32, 256 * 8),
        ("hadamard-block", {"n_h": 24}, "signed Hadamard in 3 blocks of 8, 3 bytes of signs", 3, 24 * 3),
        ("cycle", {}, "one signed cycle, nothing stored", 0, 0),
        ("delay", {}, "4 delay lines mixed by a signed Hadamard, 1 bytes of signs", 1, 4 * 2),
    ],
)
def test_header_and_readme_say_what_W_is(tmp_path, kind, parts, fact, stored, work):
    program = structured(kind, **parts)
    folder = export.c(program, tmp_path / "out", name="net", vector_steps=1)
    header, readme = ((folder / name).read_text() for name in ("src/net.h", "README.md"))
    rows = 4 if kind == "delay" else program.n_h
    for text in (header, readme):
        assert f"U of 4 bits (packed), W: {fact}, states of 9 bits" in text
        assert "weights of 1 bits" not in text
        assert int(re.search(r"flash: W[ |]+(\d+)", text)[1]) == stored
        assert int(re.search(r"flash: U[ |]+(\d+)", text)[1]) == -(-rows // 8) * 4
        assert int(re.search(r"per step: W[a-z, ]*[ |]+(\d+)", text)[1]) == work
        assert int(re.search(r"per step: U[ |]+(\d+)", text)[1]) == rows
    assert "additions alone" in header


def test_a_flipped_sign_is_caught_with_its_unit(tmp_path):
    """The state that a step began from is gone when it differs: it is made once more."""
    folder = export.c(structured("hadamard", n_h=32), tmp_path / "out", name="net", vector_steps=20)
    text = (folder / "src/net/net.c").read_text()
    start = re.search(r"net_layer0_signs\[4\] = \{\s+\d+, ", text).end()
    byte = re.match(r"\d+", text[start:])[0]
    (folder / "src/net/net.c").write_text(text[:start] + str(int(byte) ^ 4) + text[start + len(byte) :])
    result = as_it_lies(folder)
    assert not result.exact
    assert result.difference.unit == 8 + 2
    assert result.difference.step < 40


def test_a_flipped_input_weight_is_found_late_as_well(tmp_path):
    """Past the steps whose states are stored whole, the unit is found by making the step again."""
    program = structured("cycle", n_h=20, bias=False, n_i=2)
    U = program.U.integers.copy()
    U[:, 1] = 0
    program = changed(program, U=replace(program.U, integers=U), activation=Identity())
    folder = export.c(program, tmp_path / "out", name="net", vector_steps=20)
    text = (folder / "test/net_vectors.h").read_text()
    hashes = re.search(r"net_state_hashes\[\d+\] = \{(.*?)\}", text, re.DOTALL)
    words = hashes[1].split(",")
    words[30] = "1u"
    (folder / "test/net_vectors.h").write_text(text.replace(hashes[1], ",".join(words)))
    result = as_it_lies(folder)
    assert result.difference.step == 30
    assert result.difference.unit is None  # the device is right: no unit differs from the law


@pytest.mark.parametrize("gain", [1.0, 0.5])
def test_lines_move_only_where_nothing_is_lost(gain):
    for form in ("shift", "multiplier", "thresholds", "table", "per-row"):
        assert moves(structured("delay", form, gain=gain)) == (gain == 1)
    assert moves(structured("delay", "per-row~", k_a=9))  # what the multipliers err by is rounded away
    assert not moves(structured("delay", "per-row~", k_a=16))


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_words_hold_every_field(bits):
    U = np.random.default_rng(0).integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (19, 3))
    words = layouts.pack_words(U, bits)
    assert words.shape == (3, -(-19 * bits // 32))
    for j in range(19):
        field = words[:, j * bits // 32].astype(np.int64) >> (j * bits % 32) & (2**bits - 1)
        assert (np.where(field >= 2 ** (bits - 1), field - 2**bits, field) == U[j]).all()
