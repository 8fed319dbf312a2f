"""Steps in order equal one run, bit for bit: reset, interleaved, two models in one program, two threads."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from c_programs import GCC, STRICT, make, needs_gcc
from c_structured import structured
from stacks import make_stack

from grids import some
from qornn.export.c99.arrays import literal
from qornn.export.c99.make import make as made
from qornn.export.c99.vectors import as_read
from qornn.integer.simulate import simulate
from qornn.verify import build, simavr
from qornn.verify.folder import Export
from qornn.verify.replay import replayed

pytestmark = needs_gcc
STEPS, LATE = 11, 4
SOURCE = Path(__file__).with_name("steps.c")
# Every kind of layer, W, input and readout in some pair; each state of its own size and form.
PAIRS = {
    "stack, dense": lambda: (
        make_stack(7, bits=4, width=6, pairs=5, channels=2, window=2, differences=True, hold=True, skip=True),
        make(n_h=9, k=5, codes=True),
    ),
    "hadamard, delay": lambda: (structured("hadamard", n_h=16), structured("delay", "per-row", codes=True, n_i=5)),
    "cycle, blocks": lambda: (
        structured("cycle", "thresholds", activation="modrelu", n_h=16, mix=True),
        structured("hadamard-block", integer=False),
    ),
    "dense, stack": lambda: (
        make("multiplier", "modrelu", integer=True, normalised=True),
        make_stack(3, bits=3, width=4, pairs=3, steps="all", floats=True, codes=True, channels=5),
    ),
}
TYPES = {np.dtype(np.float32): "float", np.dtype(np.int32): "int32_t", np.dtype(np.int16): "int16_t"}


def sequences(program):
    """Two of them, and the outputs after every step: of one run over the steps so far, by the law and by the engine."""
    inputs = program.input.draw(np.random.default_rng(5), 2 * STEPS)
    raw = as_read(program, inputs).reshape(2, STEPS, *program.input.shape)
    runs = [simulate(program, raw[:, : t + 1])[1] for t in range(STEPS)]
    outputs = np.stack([y[:, -1] if program.readout.steps == "all" else y for y in runs], 1)  # (2, STEPS, n_o)
    for t, y in enumerate(runs):
        assert np.array_equal(program.run(raw[:, : t + 1]), y)
    for q in range(2):
        session = program.session()
        assert all(np.array_equal(session.step(raw[q, t]), outputs[q, t]) for t in range(STEPS))
    return inputs.reshape(2, STEPS, -1), outputs


def table(name, values):
    numbers = ", ".join(map(literal, values.reshape(-1)))
    _, steps, width = values.shape
    return f"static const {TYPES[values.dtype]} {name}[2][{steps}][{width}] = {{{numbers}}};\n"


@pytest.fixture(scope="module", params=PAIRS)
def both(request):
    """The files of two models and of the program around them."""
    files, text = {}, f"#define STEPS {STEPS}\n#define LATE {LATE}\n"
    for name, program in zip(("one", "two"), PAIRS[request.param](), strict=True):
        export = made(program, name=name, vector_steps=1, command="")
        files |= {file: data for file, data in export.files.items() if file.startswith("src/")}
        inputs, outputs = sequences(program)
        text += f'#include "src/{name}.h"\ntypedef {export.words["y_type"]} {name}_y;\n'
        text += f"#define {name}_ARGUMENT {export.words['example_argument']}\n"
        text += table(f"{name}_inputs", inputs) + table(f"{name}_outputs", outputs)
        last = (program, export)
    files |= {"expected.h": text.encode(), "test_main.c": SOURCE.read_bytes()}
    program, export = last
    sizes = {key: getattr(export, key) for key in ("data_bytes", "vectors_bytes", "ram_bytes", "vectors", "words")}
    return Export(
        folder=SOURCE.parent, name="two", program=program, files=files, flat=False, differing=[], notes=[], **sizes
    )


def compiled(both, folder, *options):
    program = folder / "a.out"
    command = [GCC, "-std=gnu99", *STRICT[1:-2], "-Wno-missing-braces", "-DTHREADS", "-pthread", *options]
    subprocess.run([*command, *map(str, both.put(folder)), "-o", str(program)], check=True)
    return program


@pytest.mark.slow
def test_on_the_host_with_two_threads(both, tmp_path):
    assert subprocess.run([compiled(both, tmp_path)], capture_output=True, text=True).stdout == "exact steps=1\n"


@pytest.mark.full
def test_threads_share_nothing_that_is_written(both, tmp_path):
    """Neither a race, nor any variable of the runtime or of a model: all that is written is the caller's state."""
    if not Path(subprocess.check_output([GCC, "-print-file-name=libtsan.so"], text=True).strip()).is_absolute():
        pytest.skip("gcc has no ThreadSanitizer")
    done = subprocess.run([compiled(both, tmp_path, "-g", "-O1", "-fsanitize=thread")], capture_output=True, text=True)
    assert done.stdout == "exact steps=1\n", done.stderr
    for number, source in enumerate((tmp_path / "sources").glob("src/*/*.c")):
        subprocess.run([GCC, "-std=c99", "-O2", "-c", source, "-o", tmp_path / f"{number}.o"], check=True)
    symbols = subprocess.check_output(["nm", *map(str, tmp_path.glob("*.o"))], text=True)
    assert not re.findall(r"^\w+ [bBcCdDgGsS] .*$", symbols, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize("target", some(["cortex-m4", "cortex-m0", "rv32"], 3))
def test_on_emulated_devices(both, target):
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    assert replayed(both, target).exact


@pytest.mark.slow
@pytest.mark.skipif(simavr.missing() is not None, reason=f"atmega328p: {simavr.missing()}")
def test_on_avr(both, tmp_path):
    image = tmp_path / "image.elf"
    command = [simavr.GCC, "-mmcu=atmega328p", *simavr.FLAGS, *map(str, both.put(tmp_path)), "-o", str(image)]
    build.compiled(command, tmp_path, "atmega328p")
    assert simavr.simulated(image, "atmega328p", b"")[0] == b"exact steps=1\n"


@pytest.mark.full
@pytest.mark.parametrize("kind", ["in order", "two models"])
def test_a_step_that_depends_on_another_is_seen(tmp_path, kind, both):
    """The program around the models is not blind: an input that differs, and a state that both models share."""
    edits = {
        "in order": ("expected.h", rb"(one_outputs\[2\]\[\d+\]\[\d+\] = \{)", rb"\g<1>77, "),
        "two models": ("test_main.c", rb"two_go\(&two_a, 1, t\);", b"two_go(&two_a, 1, t); one_go(&one_a, 0, t);"),
    }
    file, old, new = edits[kind]
    text = re.sub(old, new, both.files[file], count=1)
    assert text != both.files[file]
    broken = compiled(replace(both, files=both.files | {file: text}), tmp_path, "-w", "-Wno-error")
    done = subprocess.run([broken], capture_output=True, text=True)
    assert done.stdout == f"differs: {kind}\n"
