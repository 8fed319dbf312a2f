"""Stacks of rotations, exported to C: exact everywhere, and as small and fast as they should be."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from c_programs import STRICT, as_it_lies, compile_and_run, needs_gcc, sources_of
from c_stacks import CASES, MEMORIES
from stacks import make_stack
from test_replay import flip
from test_structured import SANITIZE, has_sanitizer, mcu

from grids import covering, some
from qornn import export
from qornn.export.c99.arrays import arrays_of
from qornn.export.c99.inputs import input_code
from qornn.export.c99.make import make
from qornn.integer.layers import Mix, Rotations
from qornn.integer.layout import DEVICE, row_words
from qornn.integer.matrices import packed_bytes
from qornn.integer.simulate import simulate
from qornn.verify import TARGETS, elf, measure, verify

pytestmark = needs_gcc
DEVICES = ["cortex-m0", "cortex-m4", "rv32"]
KB = 1024


def name_of(case):
    return "-".join(str(value) for value in (case["bits"], case["width"], case["pairs"], case.get("steps", "mean")))


def stack(case, seed=7):
    return make_stack(seed, **case)


def forda(**changes):
    """As for FordA: one channel, four samples per step, 16 outputs and 16 pairs, two layers, two classes."""
    shape = {"width": 16, "pairs": 16, "channels": 1, "window": 4, "n_o": 2, **changes}
    found = (make_stack(seed, **shape) for seed in range(99))
    return next(p for p in found if not p.input.plain and not any(p.layers[i].wide_bias for i in (0, 2, 4)))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_exact_and_without_a_complaint_of_compiler_or_sanitizer(tmp_path, case):
    """Vectors are longer than steps_max of some: sums are halved on the way."""
    options = [*STRICT, *(SANITIZE if has_sanitizer() else [])]
    for seed in (1, 2):
        folder = export.c(stack(case, seed), tmp_path / str(seed), name="net", vector_steps=9)
        sources = sources_of(folder, replay=True)
        assert compile_and_run(tmp_path, sources, *options) == "exact steps=50\n"


@pytest.mark.slow
@pytest.mark.parametrize("case", some(CASES, 4), ids=name_of)
def test_cpp_is_exact_too(tmp_path, case):
    folder = export.c(stack(case), tmp_path / "out", name="net", vector_steps=9)
    cpp = ["-x", "c++", "-std=c++17", *STRICT[1:], "-O2"]
    assert compile_and_run(tmp_path, sources_of(folder, replay=True), *cpp) == "exact steps=50\n"


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize(("case", "target"), covering(range(len(CASES)), DEVICES, together=1))
def test_exact_on_emulated_devices(tmp_path, case, target):
    mcu()
    result = verify(export.c(stack(CASES[case]), tmp_path / "out", name="net", vector_steps=6), target)
    assert result.exact, result.difference
    assert result.steps == 2 * 6 + 32


@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("case", some(range(len(CASES)), 5))
def test_helium_is_exact(tmp_path, case):
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    assert verify(export.c(stack(CASES[case]), tmp_path / "out", name="net", vector_steps=4), "cortex-m55").exact


@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("case", MEMORIES, ids=name_of)
def test_helium_remembers_exactly(tmp_path, case):
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    assert verify(export.c(stack(case), tmp_path / "out", name="net", vector_steps=4), "cortex-m55").exact


@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize("target", ["host", *DEVICES])
@pytest.mark.parametrize("case", MEMORIES, ids=name_of)
def test_what_is_remembered_is_exact_everywhere(tmp_path, case, target):
    """From floats too, where NaN is a missing sample."""
    mcu()
    program = stack(case)
    units = {"raw_scale": np.exp2(np.arange(program.input.channels) - 3)}
    program = replace(program, input=replace(program.input, **units))
    result = verify(export.c(program, tmp_path / "out", name="net", vector_steps=9), target)
    assert result.exact, result.difference


@pytest.mark.parametrize("case", MEMORIES, ids=name_of)
def test_floats_in_double_may_be_missing(tmp_path, case):
    program = stack(case)
    program = replace(program, input=replace(program.input, scale=0.5))
    assert verify(export.c(program, tmp_path / "out", name="net", vector_steps=40)).exact


@pytest.mark.parametrize("case", MEMORIES, ids=name_of)
def test_what_is_remembered_is_ram_and_said(tmp_path, case):
    """Two bytes per channel, and the differences; no constant but those of the same samples without memory."""
    program = stack(case)
    made = make(program, name="net", vector_steps=1, command="")
    files = {name: text.decode() for name, text in made.files.items()}
    assert f"int16_t kept[{program.input.channels}];" in files["src/net.h"]
    assert f"#define net_N_I {program.input.channels * program.input.window}\n" in files["src/net.h"]
    assert ("with companded differences" in files["README.md"]) == program.input.differences
    assert ("-32768 is missing" in files["src/net.h"]) == program.input.hold
    arrays = arrays_of("", program.input.fields(0)).values()
    assert sum(array.nbytes for array in arrays) == program.input.stored_bytes
    plain = replace(program.input, differences=False, hold=False)
    state = {member.name: member for member in input_code(program.input, "net", 64).members}
    assert state.keys() - {member.name for member in input_code(plain, "net", 64).members} == {"kept"}
    assert state["kept"].nbytes == 2 * program.input.channels


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
def test_a_step_is_small_and_fast(tmp_path):
    """Of the network for FordA: 1,600 instructions per sample, 4.5 kB of flash with code, 400 bytes of RAM."""
    mcu()
    program = forda()
    assert 1300 < program.true_bytes < 1400
    found = measure(export.c(program, tmp_path / "out", name="net", vector_steps=8), "cortex-m4")
    assert program.accumulator_bits <= 32
    assert 2240 < found["instructions_per_step"] <= 4 * 1600
    assert program.true_bytes < found["flash_bytes"] <= 4.5 * KB
    assert 2 * 2 * 32 + 4 * 16 < found["ram_bytes"] <= 400
    assert 0 < found["stack_bytes"] < 250
    keys = {"target", "steps", "exact", "instructions_per_step", "flash_bytes", "ram_bytes", "stack_bytes"}
    assert keys <= json.loads(json.dumps(found, default=str)).keys()


@pytest.mark.slow
def test_no_sum_has_more_than_32_bits(tmp_path):
    """Small cores call functions for that: none is linked, where the samples' multipliers are short."""
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    from qornn.verify import build
    from qornn.verify.folder import find

    def helpers(program, name):
        out = export.c(program, tmp_path / name, name="net", vector_steps=1)
        (tmp_path / f"{name}-built").mkdir()
        target = TARGETS["cortex-m0"]
        compiler = build.cross_compiler("cortex-m0")
        image = build.build(find(out), tmp_path / f"{name}-built", "cortex-m0", target, compiler, target.zig)
        return {s for s in elf.read(image).symbols if re.fullmatch(r"__(aeabi_l\w+|\w+di3)", s)}

    assert forda().input.narrow
    assert not helpers(forda(), "narrow")
    remembering = forda(differences=True, hold=True)
    assert remembering.input.narrow
    assert not helpers(remembering, "remembering")
    made = (make_stack(seed, narrow=False, channels=7) for seed in range(9))
    assert helpers(next(wide for wide in made if not wide.input.narrow), "wide")  # so that the test can fail


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_true_bytes_are_the_constants_of_c(tmp_path, case):
    """But for what fills rows up to whole words, which the memory table names."""
    program = stack(case)
    made = make(program, name="net", vector_steps=1, command="")
    header = made.files["src/net.h"].decode()
    filled = 0
    for layer, source in program.walk():
        read = [(layer.U, source)] if isinstance(layer, Rotations) else [(layer.C, source)]
        if isinstance(layer, Mix) and layer.S is not None:
            read.append((layer.S, source.skip))
        for matrix, given in read:
            rows, n = matrix.integers.shape
            words = 4 * rows * row_words(n, matrix.bits) - packed_bytes(rows * n, matrix.bits)
            filled += words if given.multiplied else 1  # columns have a byte to spare
    scale = 4 if case.get("floats") else 0  # of a float readout, in its struct
    assert made.data_bytes == program.true_bytes + filled - scale
    stated = re.search(r"of these, to fill up words of weights +(\d+)", header)
    assert (int(stated[1]) if stated else 0) == filled
    held = [program.input.fields(4), program.readout.fields(DEVICE, wide=False)]
    held += [layer.fields(source, DEVICE) for layer, source in program.walk()]
    assert made.data_bytes == sum(a.nbytes for fields in held for a in arrays_of("", fields).values())


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_stated_state_is_the_real_one_and_begins_at_whole_words(tmp_path, case):
    """Kernels load two numbers at once from whatever is filled up to whole words."""
    program = stack(case)
    folder = export.c(program, tmp_path / "out", name="net", vector_steps=1)
    text = (folder / "src/net.h").read_text()
    fields = re.findall(r"^    int16_t (\w+)\[(\d+)\];", text, re.MULTILINE)
    whole = [name for name, length in fields if int(length) % 4 == 0]
    main = tmp_path / "main.c"
    offsets = "".join(f'printf(" %zu", offsetof(net_state, {name}));' for name in whole)
    main.write_text(
        '#include <stddef.h>\n#include <stdio.h>\n#include "net.h"\n'
        f'int main(void) {{ printf("%zu", sizeof(net_state)); {offsets} return 0; }}\n'
    )
    size, *starts = map(int, compile_and_run(tmp_path, [main], f"-I{folder}/src").split())
    assert size == make(program, name="net", vector_steps=1, command="").ram_bytes - 4 * program.n_o
    assert size % 4 == 0
    assert not any(start % 4 for start in starts)


@pytest.mark.parametrize(("codes", "steps_max"), [(False, 2**20), (True, 4)])
def test_values_are_the_outputs_divided_once(tmp_path, codes, steps_max):
    """In float32: two roundings at most, where Python has one of a float64."""
    program = make_stack(3, codes=codes, channels=3, steps_max=steps_max, n_o=2, bits_V=8)
    folder = export.c(program, tmp_path / "out", name="net", vector_steps=1)
    assert f"#define net_STEPS_MAX {program.readout.steps_max} " in (folder / "src/net.h").read_text()
    x = program.input.clip(program.input.draw(np.random.default_rng(0), 11)).reshape(1, 11, *program.input.shape)
    steps = ", ".join(str(v) for v in x.reshape(-1))
    main = tmp_path / "main.c"
    main.write_text(
        f"""#include <stdio.h>
#include "net.h"
static const int16_t x[] = {{{steps}}};
int main(void) {{
    static net_state s; float v[2]; int32_t y[2];
    net_init(&s);
    net_values(&s, v);
    printf("%.9g %.9g\\n", (double)v[0], (double)v[1]);
    for (int t = 0; t < 11; t++) {{
        net_step(&s, {"x[t]" if codes else "x + 3 * t"});
        net_predict(&s, y); net_values(&s, v);
        printf("%d %d %.9g %.9g %d\\n", (int)y[0], (int)y[1], (double)v[0], (double)v[1], net_classify(&s));
    }}
    return 0;
}}
"""
    )
    sources = [main, *sources_of(folder)]
    first, *lines = compile_and_run(tmp_path, sources, f"-I{folder}/src", *STRICT).splitlines()
    assert first == "0 0"
    for t, line in enumerate(lines):
        *y, a, b, best = line.split()
        law = simulate(program, x[:, : t + 1])[1][0]
        assert list(map(int, y)) == law.tolist()
        want = program.readout.values(law, program.readout.counts(t + 1))
        np.testing.assert_allclose([float(a), float(b)], want, rtol=2**-22)
        assert int(best) == law.argmax()


def test_a_flipped_weight_is_caught_with_its_unit(tmp_path):
    """One bit of U of the second layer of rotations, and of C before it: the unit that reads it says so."""
    program = forda()
    folder = export.c(program, tmp_path / "out", name="net", vector_steps=20)
    flip(folder / "src/net/net.c", "net_layer3_U_planes", 2 * 9, 3)  # row 9, two words per row
    result = as_it_lies(folder)
    assert result.exact is False
    assert result.difference.unit == 32 + 9
    assert result.difference.got != result.difference.want


@pytest.mark.parametrize("case", [CASES[0], CASES[2], CASES[3]], ids=name_of)
def test_a_flipped_readout_is_caught_with_its_output(tmp_path, case):
    """What is read out is told too: outputs of a mix are no state, and sums are none of a step."""
    folder = export.c(stack(case), tmp_path / "out", name="net", vector_steps=5)
    flip(folder / "src/net/net.c", "net_readout_b_o_int", 1, 4)
    result = as_it_lies(folder)
    assert result.exact is False
    assert (result.difference.step, result.difference.output) == (0, 1)
    assert abs(result.difference.got - result.difference.want) == 16


def test_sums_that_no_output_shows_are_caught(tmp_path):
    """Where V is zero an output says nothing of them; the vectors hold them too."""
    program = forda()
    program = replace(program, readout=replace(program.readout, V=np.zeros_like(program.readout.V)))
    folder = export.c(program, tmp_path / "out", name="net", vector_steps=5)
    assert as_it_lies(folder).exact
    text = (folder / "src/net/net.c").read_text()
    call = "qornn_mean_add(&net_readout, h4, s->sums, &s->count);"
    assert call in text
    (folder / "src/net/net.c").write_text(text.replace(call, call + "\n    s->sums[3] += 1;"))
    result = as_it_lies(folder)
    assert result.exact is False
    assert result.difference.step == 0


def test_a_step_reads_like_the_network(tmp_path):
    folder = export.c(stack(CASES[5]), tmp_path / "out", name="net", vector_steps=1)
    text, header = (folder / "src/net/net.c").read_text(), (folder / "src/net.h").read_text()
    body = re.search(r"int net_step\(.*?\{\n(.*?)\n\}", text, re.DOTALL)[1]
    assert [line.strip() for line in body.splitlines()] == [
        "qornn_quantize(&net_input, x, s->x);",
        "const int16_t *const h0 = net_step0(s, s->x);",
        "const int16_t *const h1 = net_step1(s, h0);",
        "const int16_t *const h2 = net_step2(s, h1, h0);",
        "const int16_t *const h3 = net_step3(s, h2);",
        "const int16_t *const h4 = net_step4(s, h3, h2);",
        "qornn_mean_add(&net_readout, h4, s->sums, &s->count);",
        "return QORNN_OK;",
    ]
    assert "read out as the mean of all steps" in header
    assert "7 rotations of 8 bits" in header
