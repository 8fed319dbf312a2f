"""The atmega328p by simavr: exact where int has 16 bits, constants in program memory, and what does not fit is said."""

import subprocess

import numpy as np
import pytest
from c_programs import DENSE, WIDE, as_it_lies, make
from c_stacks import CASES as STACKS
from c_structured import CASES as STRUCTURED
from c_structured import MIXED, ODD, structured
from hypothesis import given, settings
from hypothesis import strategies as st
from stacks import make_stack, stacks
from strategies import programs
from test_replay import flip

from grids import some
from qornn import export
from qornn.verify import VerifyError, build, measure, simavr, verify
from qornn.verify.folder import find

CHIP = "atmega328p"
missing = simavr.missing()
needs_simavr = pytest.mark.skipif(missing is not None, reason=f"{CHIP}: {missing}")
# What 16 bits do not hold: half of a large shift, and the position of a bit in 9 kB of columns.
NARROW = {
    "signed shift": lambda: structured("hadamard", "shift", n_h=16, shifts=(15, 14)),
    "shift": lambda: structured("hadamard", "shift", activation="relu", n_h=16, shifts=(15, 14)),
    "stream of U": lambda: structured("cycle", "shift", codes=True, n_i=520, n_h=27, k_U=5, k_a=6),
    "columns of C": lambda: make_stack(3, bits=5, width=40, pairs=20, codes=True, channels=400, layers=1),
}
PROGRAMS = {
    **{f"dense {i}": lambda case=case: make(**case) for i, case in enumerate([*DENSE, *WIDE])},
    **{
        f"{kind} {form} {i}": lambda kind=kind, form=form, parts=parts: structured(kind, form, **parts)
        for i, (kind, form, parts) in enumerate([*STRUCTURED, *ODD[:-1], *MIXED])  # the last has 33,000 units
    },
    **{f"stack {i}": lambda case=case: make_stack(7, **case) for i, case in enumerate(STACKS)},
}


@pytest.fixture
def exported(tmp_path):
    def write(program, steps=8):
        return export.c(program, tmp_path / "out", name="net", vector_steps=steps)

    return write


@needs_simavr
@pytest.mark.parametrize("name", ["dense 0", "hadamard shift 1", "stack 0"])
def test_exact(exported, name):
    result = verify(exported(PROGRAMS[name]()), CHIP)
    assert result.exact
    assert result.steps == 2 * 8 + 32
    assert result.ran_on == [f"simavr {CHIP}"]


@needs_simavr
@pytest.mark.slow
@pytest.mark.parametrize("name", some(list(PROGRAMS), 12))
def test_every_kind_is_exact(exported, name):
    """Float readouts too: avr-libc's sums and products are rounded as IEEE asks."""
    assert verify(exported(PROGRAMS[name]()), CHIP).exact


@needs_simavr
@pytest.mark.full
@settings(max_examples=30, deadline=None, derandomize=True)
@given(program=st.one_of(programs(tables=False), stacks()))
def test_any_program_is_exact(tmp_path_factory, program):
    folder = export.c(program, tmp_path_factory.mktemp("any") / "out", name="net", vector_steps=8)
    assert verify(folder, CHIP).exact


@needs_simavr
@pytest.mark.slow
@pytest.mark.parametrize("name", NARROW)
def test_what_16_bits_do_not_hold_is_exact(exported, name):
    assert verify(exported(NARROW[name](), steps=20), CHIP).exact


@needs_simavr
@pytest.mark.slow
def test_constants_stay_in_program_memory(exported):
    """RAM is the state and the outputs, whatever the weights take: structs are not padded here."""
    program = make(n_h=40, k=8, n_i=6)
    found = measure(folder := exported(program), CHIP)
    stated = find(folder)
    assert stated.data_bytes > 1600
    assert 0 <= stated.ram_bytes - found["ram_bytes"] < 4
    assert found["flash_bytes"] > stated.data_bytes
    assert 0 < found["stack_bytes"] < 300


@needs_simavr
@pytest.mark.slow
def test_cycles_are_counted_for_every_step_and_readout(exported):
    small, large = (measure(exported(make(n_h=n_h, integer=True)), CHIP) for n_h in (8, 16))
    for figures in (small, large):
        assert figures["instructions_per_step"] < figures["cycles_per_step"] < 3 * figures["instructions_per_step"]
        assert figures["cycles_per_readout"] > 0
    assert large["cycles_per_step"] > 1.5 * small["cycles_per_step"]


@needs_simavr
@pytest.mark.slow
def test_a_flipped_weight_is_caught_with_its_unit(exported):
    folder = exported(make(n_h=9, k=4))
    flip(folder / "net.c", "net_layer0_W_planes", 2 * 2, 3)  # row 2: rows are of two words
    result = as_it_lies(folder, CHIP)
    assert result.exact is False
    assert result.difference.unit == 2
    assert result.difference.got != result.difference.want


@needs_simavr
@pytest.mark.slow
@pytest.mark.parametrize(
    ("array", "where"),
    [("net_readout_V_int", "output"), ("net_raw_exponent", "input"), ("net_layer0_U_packed", "unit")],
)
def test_every_part_is_compared(exported, array, where):
    folder = exported(make("multiplier", integer=True, normalised="narrow", n_i=2))
    flip(folder / "net.c", array, 0, 2)
    result = as_it_lies(folder, CHIP)
    assert result.exact is False
    assert getattr(result.difference, where) is not None


@needs_simavr
@pytest.mark.slow
def test_the_checksum_is_compared(exported):
    folder = exported(make(integer=True))
    text = (folder / "net.c").read_text()
    (folder / "net.c").write_text(text.replace("hash = 0x811c9dc5u", "hash = 0x811c9dc4u"))
    assert as_it_lies(folder, CHIP).difference.step is None


@needs_simavr
@pytest.mark.slow
def test_quantize_in_double_is_left_out_and_said(exported):
    result = verify(exported(make(normalised=True)), CHIP)
    assert result.exact
    assert result.skipped == ["net_quantize, which needs a double of 64 bits"]


@needs_simavr
@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "what"),
    [
        (lambda: make(n_h=260, k=8), r"constants alone take 7\d{4} of 32256 bytes of flash"),
        (lambda: make(n_h=172, k=8, n_o=1), r"bytes of constants and the code take 3\d{4} of 32256 bytes of flash"),
        (lambda: structured("cycle", n_h=1100, k_a=8), r"take 22\d\d of 2048 bytes of RAM"),
        (lambda: structured("cycle", n_h=990, k_a=8), r"take 1998 of 2048 bytes of RAM, and the stack needs more"),
    ],
    ids=["constants", "flash", "RAM", "stack"],
)
def test_what_does_not_fit_is_said_with_the_way_out(exported, program, what):
    with pytest.raises(VerifyError, match=f"net does not fit {CHIP}: .*{what}.*; use fewer units"):
        verify(exported(program(), steps=1), CHIP)


@pytest.mark.parametrize("lacking", ["compiler", "library"])
def test_what_is_not_installed_is_said_with_the_command(exported, monkeypatch, lacking):
    """Whatever is here: a PATH without avr-gcc, or a compiler that finds no header."""
    if lacking == "compiler":
        monkeypatch.setattr(build, "tool", lambda _: None)
    else:
        monkeypatch.setattr(build, "tool", lambda name: name)
        monkeypatch.setattr(build, "host_compiler", lambda: ["false"])
    with pytest.raises(VerifyError, match=r"avr.*is not installed; `apt-get install gcc-avr avr-libc libsimavr-dev`"):
        verify(exported(make()), CHIP)


FLOATS = """
#include <avr/io.h>
#include <stdint.h>
static void take(void *into) { for (uint8_t i = 0; i < 4; i++) ((uint8_t *)into)[i] = GPIOR1; }
static void give(float value) { for (uint8_t i = 0; i < 4; i++) GPIOR0 = ((uint8_t *)&value)[i]; }
int main(void) {
    for (;;) {
        float a, b;
        int32_t whole;
        take(&a), take(&b), take(&whole);
        give(a * b), give(a + b), give((float)whole);
    }
}
"""


@needs_simavr
@pytest.mark.full
def test_floats_are_rounded_as_here(tmp_path):
    """Why float readouts are exact: every product, sum and conversion is IEEE's, subnormal ones too."""
    n, rng = 30_000, np.random.default_rng(0)
    pairs = rng.integers(0, 2**32, (2, n), dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = (rng.integers(-(2**24), 2**24, (2, n)) * np.exp2(rng.integers(-30, 30, (2, n)) - 23.0)).astype(np.float32)
    a, b = np.concatenate([pairs, near], 1)
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    whole = (rng.integers(-(2**31), 2**31, len(a)) >> rng.integers(0, 31, len(a))).astype(np.int32)
    (tmp_path / "floats.c").write_text(FLOATS)
    subprocess.run(["avr-gcc", f"-mmcu={CHIP}", "-Os", "floats.c", "-o", "floats.elf"], cwd=tmp_path, check=True)
    feed = np.stack([a.view(np.int32), b.view(np.int32), whole], 1).astype("<i4").tobytes()
    said, _ = simavr.simulated(tmp_path / "floats.elf", CHIP, feed)
    with np.errstate(over="ignore"):
        want = np.stack([a * b, a + b, whole.astype(np.float32)], 1)
    assert (np.frombuffer(said, "<i4").reshape(-1, 3) == want.view(np.int32)).all()
