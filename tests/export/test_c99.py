"""The generated C: exact, clean under every warning and the sanitizers, and as large as its header states."""

import platform
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from c_programs import GCC, STRICT, compile_and_run, make, needs_gcc, sources_of
from hypothesis import given, settings
from single import changed
from strategies import programs

import qornn
from qornn import export
from qornn.export.c99 import arrays as c_arrays
from qornn.export.c99 import make as c_make
from qornn.export.c99 import vectors as c_vectors
from qornn.export.c99.facts import facts
from qornn.integer.simulate import simulate

SANITIZE = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def has_sanitizer():
    found = GCC and subprocess.run([GCC, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    return bool(found) and found.startswith("/")


def has_fma():
    try:
        return " fma " in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def test_the_header_opens_with_where_it_comes_from(tmp_path):
    program = make().with_provenance(task="pmnist", metric={"name": "accuracy", "value": 93.25})
    folder = export.c(program, tmp_path / "out", name="net", command="qornn export a.qornn */ int x; /*")
    text = (folder / "src/net.h").read_text()
    opening = text[: text.index("*/")]
    for fact in (
        qornn.__version__,
        "qornn export a.qornn",
        "task pmnist: accuracy 93.25",
        "Multiply-accumulates",
    ):
        assert fact in opening
    memory, work = opening[opening.index("Memory, in bytes") :].split("Multiply-accumulates")
    assert "flash: all constants" in memory
    assert "stack and code: `qornn verify" in memory
    assert re.findall(r"per step +(\d+)\n +per readout +(\d+)", work) == [(str(13 * 16), str(13 * 3))]
    all_ram = int(re.search(r"RAM: all, but for the stack +(\d+)", memory)[1])
    assert all_ram == c_make.make(program, name="net", vector_steps=1, command="").ram_bytes
    assert f"#define net_RAM_BYTES {all_ram} " in text


@pytest.mark.parametrize(
    ("value", "said"), [(94.66666666666667, "94.67"), (100.0, "100"), (2.35201e-05, "2.352e-05"), (3, "3"), ("?", "?")]
)
def test_facts_have_sensible_digits_and_numbers(value, said):
    program = make(n_i=1, n_h=1, n_o=1).with_provenance(metric={"name": "accuracy", "value": value})
    shape, _, measured = facts(program)
    assert shape.startswith("1 channel, 1 unit, 1 output; ")
    assert measured == f"accuracy {said} on the test set, as these integers"
    assert facts(make(n_h=5, codes=True))[0].startswith("3 codes, 5 units, 3 outputs; ")


@needs_gcc
def test_the_stated_state_is_the_real_one(tmp_path):
    for n_i, n_h, k_U in ((1, 7, 5), (3, 13, 5), (2, 32, 5), (9, 7, 4), (17, 13, 7), (17, 13, 8)):
        program = make(n_i=n_i, n_h=n_h, k_U=k_U)
        folder = export.c(program, tmp_path / f"{n_i}{k_U}", name="net")
        main = tmp_path / "main.c"
        main.write_text(
            '#include <stdio.h>\n#include "net.h"\nint main(void) { printf("%zu", sizeof(net_state)); return 0; }\n'
        )
        said = compile_and_run(tmp_path, [main], f"-I{folder}/src")
        assert int(said) == c_make.make(program, name="net", vector_steps=1, command="").ram_bytes - 4 * program.n_o


@pytest.mark.parametrize(
    ("parts", "U", "x"),
    [
        ({"n_i": 3, "k_U": 4}, 3 * 13 / 2 + 1.5, 3),  # a stream, and a byte to spare
        ({"n_i": 17, "k_U": 7}, 13 * 4 * (3 + 2 + 1), 32),  # planes of 4, 2 and 1 bits in whole words
        ({"n_i": 48, "k_U": 4}, 13 * 4 * 6, 48),
        ({"n_i": 48, "k_U": 4, "codes": True}, 48 * 13 / 2 + 1, None),
    ],
)
def test_the_memory_table_counts_U_as_it_lies(tmp_path, parts, U, x):
    text = (export.c(make(**parts), tmp_path / "out", name="net") / "src/net.h").read_text()
    assert float(re.search(r"flash: U +(\d+)", text)[1]) == U
    room = re.search(r"int16_t x\[(\w+)\];", text)
    assert (room and room[1].replace("net_N_I", str(parts["n_i"]))) == (x and str(x))


@pytest.mark.slow
@needs_gcc
def test_no_compiler_has_anything_to_say(tmp_path):
    for i, parts in enumerate(
        (
            {"normalised": True, "k": 5},
            {"form": "thresholds", "codes": True, "integer": True, "k": 8},
            {"form": "thresholds", "activation": "modrelu", "k_a": 6, "k": 3},
            {"form": "per-row+I", "activation": "modrelu", "k": 7, "n_o": 1},
            {"normalised": True, "n_i": 21, "k_U": 7},
        )
    ):
        folder = export.c(make(**parts), tmp_path / str(i), name="net")
        sources = [str(path) for path in sources_of(folder, replay=True)]
        compilers = [[GCC, *STRICT, "-O2"]]
        if shutil.which("g++"):
            compilers.append(["g++", "-x", "c++", "-std=c++11", *STRICT[1:], "-O2"])
        for command in compilers:
            done = subprocess.run([*command, "-fsyntax-only", *sources], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert not done.stderr


@needs_gcc
def test_names_that_differ_in_case_alone_are_two_models(tmp_path):
    folders = {
        name: export.c(make(n_h=n_h), tmp_path / f"{n_h}", name=name) for name, n_h in {"pm": 5, "PM": 9}.items()
    }
    main = tmp_path / "main.c"
    main.write_text(
        '#include <stdio.h>\n#include "pm.h"\n#include "PM.h"\n'
        "int main(void) { static pm_state a; static PM_state b; pm_init(&a); PM_init(&b);\n"
        'printf("%d %d", pm_N_H, PM_N_H); return 0; }\n'
    )
    sources = [main, *sources_of(folders["PM"], "PM"), *sources_of(folders["pm"], "pm")]
    said = compile_and_run(tmp_path, sources, *STRICT, f"-I{folders['pm']}/src", f"-I{folders['PM']}/src")
    assert said == "5 9"


@needs_gcc
def test_two_models_link_into_one_program(tmp_path):
    """Each brings its runtime, under its own names, and gives its own answers."""
    programs = {"one": make(n_h=9, integer=True), "two": make(n_h=21, k=7, integer=True, codes=True, seed=3)}
    folders = {name: export.c(program, tmp_path / name, name=name) for name, program in programs.items()}
    main = tmp_path / "main.c"
    main.write_text(
        """
#include <stdio.h>
#include "one.h"
#include "two.h"
int main(void) {
    static one_state a; static two_state b;
    const int16_t x[3] = {1, -2, 3};
    int32_t y[3], z[3];
    one_init(&a); two_init(&b);
    for (int t = 0; t < 5; t++) { one_step(&a, x); two_step(&b, t % 3); }
    one_predict(&a, y); two_predict(&b, z);
    for (int o = 0; o < 3; o++) printf("%d ", (int)y[o]);
    for (int o = 0; o < 3; o++) printf("%d ", (int)z[o]);
    printf("%d %d", one_classify(&a), two_classify(&b));
    return 0;
}
"""
    )
    sources = [main, *sources_of(folders["two"], "two"), *sources_of(folders["one"], "one")]
    said = compile_and_run(tmp_path, sources, *STRICT, f"-I{folders['one']}/src", f"-I{folders['two']}/src")
    y = simulate(programs["one"], np.tile([1, -2, 3], (1, 5, 1)))[1][0]
    z = simulate(programs["two"], np.arange(5)[None] % 3)[1][0]
    assert [int(word) for word in said.split()] == [*y, *z, y.argmax(), z.argmax()]


TORTURE = """
#include <stdio.h>
#include <stdlib.h>
#include "net.h"
int main(void) {
    static const int16_t ends[4] = {-32768, 32767, 0, 1};
    net_state *s = (net_state *)malloc(sizeof(net_state)); /* the heap: the sanitizer sees its edges */
    %(y)s *y = (%(y)s *)malloc(sizeof(%(y)s) * net_N_O);
    int16_t *x = (int16_t *)malloc(sizeof(int16_t) * net_N_I);
    uint32_t seed = 1;
    unsigned refused = 0;
    net_init(s);
    for (unsigned t = 0; t < 20000; t++) {
        for (unsigned c = 0; c < net_N_I; c++) {
            seed = seed * 1664525u + 1013904223u;
            x[c] = t %% 3 == 0 ? (int16_t)(seed >> 16) : ends[(t + c * (seed >> 31)) %% 4];
        }
        refused += (unsigned)(net_step(s, %(argument)s) != 0);
        if (t %% 16 == 0) net_predict(s, y);
    }
    printf("%%u %%d", refused, net_classify(s) < net_N_O);
    free(s); free(y); free(x);
    return 0;
}
"""


@pytest.mark.slow
@needs_gcc
@pytest.mark.skipif(not has_sanitizer(), reason="gcc has no AddressSanitizer")
@pytest.mark.parametrize(
    "parts",
    [
        {"n_h": 13, "k": 7, "normalised": True},
        {"form": "thresholds", "activation": "modrelu", "n_h": 5, "k": 3, "k_a": 16, "integer": True},
        {"form": "thresholds", "activation": "modrelu", "k_a": 6, "n_h": 3, "k": 8},
        {"form": "per-row+I", "activation": "identity", "codes": True, "n_i": 50, "n_h": 9},
        {"form": "per-row~", "activation": "modrelu"},
        {"n_i": 17, "k_U": 7, "n_h": 13, "normalised": True},
        {"form": "multiplier", "n_i": 9, "k_U": 4, "n_h": 3, "k": 5, "integer": True},
        {"n_i": 17, "n_h": 3},
        {"form": "multiplier", "codes": True, "n_i": 3, "n_h": 2, "k": 2, "integer": True},
    ],
)
def test_sanitizers_find_nothing_whatever_the_input(tmp_path, parts):
    program = make(**parts)
    folder = export.c(program, tmp_path / "out", name="net")
    assert compile_and_run(tmp_path, sources_of(folder, replay=True), *SANITIZE) == "exact steps=160\n"
    codes = parts.get("codes", False)
    main = tmp_path / "torture.c"
    main.write_text(
        TORTURE % {"argument": "x[0]" if codes else "x", "y": "int32_t" if parts.get("integer") else "float"}
    )
    said = compile_and_run(tmp_path, [main, *sources_of(folder)], *SANITIZE, f"-I{folder}/src").split()
    assert (int(said[0]) > 1000) == codes  # codes outside the table are refused
    assert said[1] == "1"


@pytest.mark.slow
@needs_gcc
def test_float_samples_become_raw_ones_as_in_python(tmp_path):
    program = make(normalised=True)
    # A third, rounded, and offsets that leave little of the product: fused, many of these ties would not be ties.
    thirds = {"alpha": 1.0, "offset": np.array([-1000, -999, 3]), "multiplier": np.full(3, 3 << 28)}
    program = changed(program, input=replace(program.input, **thirds))
    folder = export.c(program, tmp_path / "out", name="net")
    gain, offset = program.input.gain(), program.input.offset
    rng = np.random.default_rng(0)
    near = (rng.integers(-3100, 20100, (300, 3)) + rng.choice([-0.5, 0.0, 0.5], (300, 3)) - offset) / gain
    ties = np.repeat(np.arange(900, 1100)[:, None] + 0.5, 3, 1) / gain
    x = np.concatenate([[[0.0] * 3, [1e30] * 3, [-1e30] * 3], near, ties]).astype(np.float32)
    main = tmp_path / "main.c"
    main.write_text(
        '#include <stdio.h>\n#include <stdlib.h>\n#include "net.h"\nint main(void) {\n'
        f"    {c_arrays.array('x', x, flash=False)}"
        f"    int16_t raw[3];\n    for (int i = 0; i < {x.size}; i += 3) {{\n        net_quantize(x + i, raw);\n"
        '        printf("%d %d %d ", raw[0], raw[1], raw[2]);\n    }\n    return 0;\n}\n'
    )
    want = program.input.from_floats(x).clip(program.input.low, program.input.high)
    assert len(np.unique(want)) > 500
    fused = ["-O2", "-ffp-contract=fast", *(["-mfma"] if platform.machine() == "x86_64" and has_fma() else [])]
    for options in ([], fused):
        said = compile_and_run(tmp_path, [main, *sources_of(folder)], f"-I{folder}/src", *STRICT, *options)
        assert [int(word) for word in said.split()] == want.reshape(-1).tolist()
    without = compile_and_run(tmp_path, sources_of(folder, replay=True), "-Dnet_NO_QUANTIZE")
    assert without == "exact steps=160\n"


@pytest.mark.slow
@needs_gcc
@settings(max_examples=6, deadline=None, derandomize=True)
@given(program=programs(tables=False))
def test_any_program_is_exact(tmp_path_factory, program):
    """Whatever its parts, and whatever it says about itself."""
    folder = tmp_path_factory.mktemp("any")
    export.c(program, folder, name="net", vector_steps=9)
    assert compile_and_run(folder, sources_of(folder, replay=True), *STRICT) == "exact steps=50\n"


def test_no_float_with_the_integer_readout(tmp_path):
    folder = export.c(make(integer=True, form="multiplier"), tmp_path / "out", name="net")
    code = re.sub(r"/\*.*?\*/", "", (folder / "src/net/net.c").read_text(), flags=re.DOTALL)
    assert "float" not in code
    assert "double" not in code


def test_hash_is_fnv_1a():
    # The published values of FNV-1a, 32 bits: "" and "foobar".
    assert c_vectors.checksum([]) == 0x811C9DC5
    assert c_vectors.checksum([np.frombuffer(b"foobar", np.uint8)]) == 0xBF9CF968
    assert c_vectors.hashes(np.frombuffer(b"foobar", np.int16)[None]).tolist() == [0xBF9CF968]


def test_probes_meet_every_state(tmp_path):
    _, states = c_vectors.probe_states(make(activation="modrelu", n_h=30))  # codes and samples keep nothing
    assert (np.abs(states).max(0) > 0).all()
    assert states.min() < 0 < states.max()
    assert c_vectors.probe_states(make(n_h=30))[1].min() >= 0


@needs_gcc
@pytest.mark.parametrize(
    "command", ["x" * 297 + "??/y", "???/" * 100, "??/", "\\", "??/\n*/ #error", "*??//", "a*??/\n/"]
)
def test_no_command_reaches_the_compiler(tmp_path, command):
    """Trigraphs and line splices at the end of a line, or where a long command is cut."""
    folder = export.c(make(n_h=2), tmp_path / "out", name="net", vector_steps=1, command=command)
    (tmp_path / "main.c").write_text('#include "net.h"\nint main(void) { return net_N_H - 2; }\n')
    compile_and_run(tmp_path, [tmp_path / "main.c"], f"-I{folder}/src", *STRICT)
    header = (folder / "src/net.h").read_text()
    assert "??" not in header
    assert len(header.splitlines()[2]) <= 7 + 300


def test_a_readme_shows_what_a_program_says_of_itself_and_obeys_none_of_it(tmp_path):
    said = "<img src=x onerror=alert(1)> ![a](http://b) `c` \\"
    program = make().with_provenance(task=said, metric={"name": said, "value": 1})
    readme = (export.c(program, tmp_path / "out", name="net") / "README.md").read_text()
    assert "<img" not in readme
    assert "&lt;img src=x onerror=alert(1)&gt; !\\[a\\](http://b) \\`c\\` \\\\" in readme


@pytest.mark.parametrize("V", [3e38, -3e38])
def test_outputs_that_C_has_no_number_for_are_refused(tmp_path, V):
    program = make()
    program = changed(program, readout=replace(program.readout, V=np.full_like(program.readout.V, V)))
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(qornn.errors.QornnError, match="largest float32"):
        export.c(program, tmp_path / "out", name="net")
    assert not (tmp_path / "out").exists()


def test_vectors_that_no_memory_holds_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("qornn.export.c99.make.STATES_LIMIT", 2 * 13 * 20)
    export.c(make(), tmp_path / "out", name="net", vector_steps=20)
    with pytest.raises(qornn.errors.QornnError, match="take 20"):
        export.c(make(), tmp_path / "out", name="net", vector_steps=21)
