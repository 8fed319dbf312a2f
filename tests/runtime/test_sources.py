"""The C sources by themselves: clean under every warning, as C99 and C++, on devices, and under the sanitizers."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import qornn.runtime

RUNTIME = next(Path(folder) for folder in qornn.runtime.__path__ if Path(folder, "qornn.h").is_file())
SOURCES = sorted(RUNTIME.rglob("*.c"))
DEVICE = [path for path in SOURCES if "_host" not in path.name]
EXTREMES = Path(__file__).with_name("extremes.c")
STRICT = ["-O2", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]
ZIG = [sys.executable, "-m", "ziglang", "cc"]
THUMB = ["-std=c99", "-target", "thumb-freestanding-eabi"]
COMPILERS = {
    "gcc": ["gcc", "-std=c99"],
    "g++": ["g++", "-x", "c++", "-std=c++11"],
    "clang": [*ZIG, "-std=c99"],
    "clang++": [*ZIG, "-x", "c++", "-std=c++11"],
    "cortex-m0": [*ZIG, *THUMB, "-mcpu=cortex_m0"],
    "cortex-m4": [*ZIG, *THUMB, "-mcpu=cortex_m4"],
    "cortex-m55": [*ZIG, "-std=c99", "-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m55+mve"],
    "rv32": [*ZIG, "-std=c99", "-target", "riscv32-freestanding-none"],
    "avr": ["avr-gcc", "-mmcu=atmega328p", "-std=gnu99"],
}


def command(name):
    """The compiler's command, or skip by name."""
    if COMPILERS[name][0] == sys.executable:
        if importlib.util.find_spec("ziglang") is None:
            pytest.skip(f"{name}: ziglang is not installed")
    elif shutil.which(COMPILERS[name][0]) is None:
        pytest.skip(f"{name}: no {COMPILERS[name][0]}")
    return COMPILERS[name]


def run(*args, **options):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILERS)
def test_every_file_compiles_without_a_warning(name, tmp_path):
    compiler = command(name)
    for path in DEVICE if name == "avr" else SOURCES:
        run(*compiler, *STRICT, "-c", path, "-o", tmp_path / f"{path.stem}.o")


def test_devices_get_their_own_instructions(tmp_path):
    """The guards choose: SMLAD with the DSP extension, Helium where there is Helium, neither on the smallest."""
    for name, want in {"cortex-m0": None, "cortex-m4": "smlad", "cortex-m55": "vmlava"}.items():
        run(*command(name), "-O2", "-S", RUNTIME / "qornn_plane4.c", "-o", tmp_path / "out.s")
        text = (tmp_path / "out.s").read_text()
        assert [w for w in ("smlad", "vmlava") if w in text] == ([want] if want else [])


@pytest.mark.slow
def test_extreme_inputs_read_nothing_out_of_bounds(tmp_path):
    compiler, program = command("gcc"), tmp_path / "extremes"
    if not Path(run(compiler[0], "-print-file-name=libasan.so").strip()).is_absolute():
        pytest.skip("gcc: no AddressSanitizer")
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    run(*compiler, *flags, "-I", RUNTIME, EXTREMES, *DEVICE, "-o", program)
    assert run(program) == "ok\n"


def test_a_constant_program_links_only_what_it_uses(tmp_path):
    """Flash: with the program constant, the forms and kernels it does not use are gone."""
    compiler = command("cortex-m4")
    source = tmp_path / "net.c"
    source.write_text("""
        #include "qornn_dense.h"
        #include "qornn_input.h"
        #include "qornn_readout.h"
        static const uint32_t W[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        static const uint8_t U[6] = {1, 2, 3, 4, 5};
        static const int32_t M[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        static const uint8_t shift[8] = {9, 9, 9, 9, 9, 9, 9, 9};
        static const int8_t V[16] = {1};
        static const int32_t b_o[2] = {1, 2};
        static const qornn_input input = {.n_i = 1, .channels = 1, .room = 1, .kind = QORNN_SAMPLES, .bits = 9,
                                          .plain = 1, .low = -256, .high = 255};
        static const qornn_recurrent layer = {.n_i = 1, .n_h = 8, .bits_W = 4, .bits_U = 4, .bits_h = 12,
                                              .input = QORNN_SAMPLES, .activation = QORNN_RELU,
                                              .requant = QORNN_PER_ROW, .W_planes = W, .U_packed = U, .M_W = M,
                                              .M_U = M, .row_shift = shift};
        static const qornn_readout readout = {.n_o = 2, .n_h = 8, .kind = QORNN_INT, .V_int = V, .b_o_int = b_o};
        static int16_t h[2][8], x[1];
        static int32_t y[2];
        int start(const int16_t *raw) {
            qornn_quantize(&input, raw, x);
            qornn_dense(&layer, x, 0, h[0], h[1]);
            qornn_read_int(&readout, h[1], y);
            return (int)y[0];
        }
    """)
    out = tmp_path / "net.elf"
    link = ["-O2", "-g0", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Wl,-e,start"]
    run(*compiler, *link, "-I", RUNTIME, source, *DEVICE, "-o", out)
    image = out.read_bytes()
    assert b"qornn_plane4" in image
    assert b"qornn_readout_int" in image
    for unused in (b"qornn_plane1", b"qornn_plane2", b"qornn_plane8", b"qornn_readout_float"):
        assert b"\0" + unused + b"\0" not in image


def test_floats_in_another_order_are_refused():
    readout = RUNTIME / "qornn_readout_float.c"
    done = subprocess.run([*command("gcc"), "-ffast-math", "-fsyntax-only", readout], capture_output=True, text=True)
    assert done.returncode
    assert "-ffast-math" in done.stderr


@pytest.mark.parametrize("language", ["c", "c++"])
def test_avr_without_program_memory_is_refused(language):
    """Constants would be copied to RAM at boot; the way out is in the message."""
    standard = {"c": "-std=c99", "c++": "-std=c++11"}[language]
    words = [*command("avr")[:2], standard, "-x", language, "-fsyntax-only", RUNTIME / "qornn_plane4.c"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode
    assert "-std=gnu99" in done.stderr


@pytest.mark.parametrize(
    "target",
    ["thumb-freestanding-eabihf -mcpu=cortex_m7+fp_armv8d16sp", "aarch64-linux-gnu", "x86_64-linux-gnu -mfma"],
)
@pytest.mark.parametrize("readout", ["float", "float_wide", "mix_float"])
def test_products_are_not_fused_whatever_the_options(target, readout, tmp_path):
    """With this option clang does not heed the pragma."""
    options = ["-target", *target.split(), "-O2", "-ffp-contract=fast"]
    run(*command("clang"), *options, "-S", RUNTIME / f"qornn_readout_{readout}.c", "-o", tmp_path / "out.s")
    assert not re.search(r"\bv?fn?m(add|la|ls|sub|a\.|s\.)", (tmp_path / "out.s").read_text())
