"""A program as a folder of C99: what is tested on the host and in the emulator is what is flashed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from qornn import __version__
from qornn.errors import ProgramError, SettingsError, unknown
from qornn.export.c99 import flat as former
from qornn.export.c99 import folder, library, names, runtime, state
from qornn.export.c99 import vectors as test_vectors
from qornn.export.c99.arrays import array, arrays_of, initializer
from qornn.export.c99.facts import facts, for_markdown, memory, plain, table, work
from qornn.export.c99.inputs import input_code
from qornn.export.c99.layers import Code, layer_codes
from qornn.export.c99.readouts import readout_code
from qornn.export.c99.vectors import Vectors
from qornn.integer.layout import DEVICE
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import from_bytes, to_bytes

LAYOUTS: Final = ("packed",)
STEPS_LIMIT: Final = 100_000
STATES_LIMIT: Final = 2**30  # numbers that are simulated for the vectors
FORMAT: Final = 9  # of the folder: one more whenever the same program and options give other files


def c(
    program: IntegerProgram,
    out: str | Path,
    *,
    name: str,
    layout: str = "packed",
    vector_steps: int = 64,
    command: str | None = None,
) -> Path:
    """Write a program as a folder that is a library of Arduino, PlatformIO, ESP-IDF, Zephyr and CMake at once.

    - `program`: the network in integers, from `lower` or `load`.
    - `out`: the folder to write. It may hold an export of the same name, which is replaced; other files in it stay.
    - `name`: prefix of every C symbol and file name.
    - `layout` ("packed"): how weights are stored. "packed", side by side without unused bits, is the only choice.
    - `vector_steps` (64): steps of each sequence in the test vectors.
    - `command` (None): the command that the files name as their origin. None is this call.

    Returns the folder.
    """
    write(program, out, name=name, layout=layout, vector_steps=vector_steps, command=command)
    return Path(out)


def write(
    program: IntegerProgram,
    out: str | Path,
    *,
    name: str,
    layout: str = "packed",
    vector_steps: int = 64,
    command: str | None = None,
) -> list[str]:
    """Write the folder as `c` does; the files that were written, by their paths in it."""
    out = Path(out)
    names.check(name)
    folder.check(out, name)
    if layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)
    command = command or f"qornn.export.c(program, {out.absolute().name!r}, name={name!r})"
    data = to_bytes(program)
    program = from_bytes(data, out / f"{name}.qornn")  # as whoever has that file would export it again
    files = make(program, name=name, vector_steps=vector_steps, command=command).files | {f"{name}.qornn": data}
    folder.write(out, name, files)
    return sorted(files)


@dataclass(frozen=True, kw_only=True)
class Made:
    """All files but the program's own, the sizes that they state, and what they were made of."""

    files: dict[str, bytes]
    data_bytes: int
    vectors_bytes: int
    ram_bytes: int
    vectors: Vectors
    words: dict[str, object]


def make(program: IntegerProgram, *, name: str, vector_steps: int, command: str, flat: bool = False) -> Made:
    """The files of an export: the same program and options give the same bytes.

    flat: the sources of the former layout, without its runtime.
    """
    _check(program, vector_steps)
    vectors = test_vectors.vectors(program, vector_steps)
    if not np.isfinite(vectors.outputs).all():
        raise ProgramError(
            "outputs of this program pass the largest float32: divide the targets, train and lower again"
        )
    layers = layer_codes(program, name)
    words = _model_words(program, name, layers) | _vector_words(vectors)
    words |= {"name": name, "NAME": name.upper(), "command": plain(command)}
    words |= former.words(words) if flat else _library_words(words)
    text = folder.fill("vectors.h", words | {"arrays": _vector_arrays(name, vectors)})
    made = former.files(words, text) if flat else _library_files(program, words, text, layers)
    sizes = {key: int(str(words[key])) for key in ("data_bytes", "vectors_bytes", "ram_bytes")}
    return Made(files={file: text.encode() for file, text in made.items()}, **sizes, vectors=vectors, words=words)


def _check(program: IntegerProgram, vector_steps: int) -> None:
    if program.numpy_only:
        raise ProgramError(f"C knows no {program.numpy_only}")
    if not program.n_state:
        raise ProgramError("C knows no program without a state; program.run and program.session run it here")
    if isinstance(vector_steps, bool) or not isinstance(vector_steps, int) or not 1 <= vector_steps <= STEPS_LIMIT:
        raise SettingsError(f"vector_steps must be a number in 1..{STEPS_LIMIT}, got {vector_steps!r}")
    widest = max(program.n_state, program.n_i)
    if vector_steps > (most := max(1, STATES_LIMIT // (test_vectors.SEQUENCES * widest))):
        raise SettingsError(f"vectors of {vector_steps} steps are too many for {widest} units or inputs; take {most}")


def _library_files(
    program: IntegerProgram, words: dict[str, object], vectors: str, layers: list[Code]
) -> dict[str, str]:
    """By their paths in the folder."""
    name = str(words["name"])
    header, model = folder.fill("model.h", words), folder.fill("model.c", words)
    kernels = runtime.files_of(name, sorted({code.header for code in layers}), model)
    return {
        f"src/{name}.h": header,
        f"src/{name}/{name}.c": model,
        **{f"src/{name}/{file}": text for file, text in kernels.items()},
        f"test/{name}_vectors.h": vectors,
        folder.MAIN: folder.fill("test_main.c", words),
        **library.files_of(program, words, header),
        "README.md": folder.fill("README.md", words | for_markdown(words)),
    }


def _library_words(words: dict[str, object]) -> dict[str, object]:
    """What the former layout says in other words: includes, and the macros of memory."""
    name = words["name"]
    flash = f"{name}_FLASH_BYTES"
    return {
        "format": FORMAT,
        "includes": f'#include "../{name}.h"\n\n#include "qornn.h"\n',
        "test_includes": f'#include "../src/{name}.h"\n#include "{name}_vectors.h"\n',
        "memory_macros": f"#define {flash} {words['data_bytes']} /* constants as they lie in flash, without code */\n"
        f"#define {name}_RAM_BYTES {words['ram_bytes']} /* state and outputs, without the stack */\n"
        + (str(words["steps_max"]) or f"#define {name}_STEPS_MAX 0 /* no limit on the steps of a sequence */\n")
        + f"#define {name}_DATA_BYTES {flash} /* its former name */\n",
        "flash_check": f"typedef char {name}_flash_is_as_said[{words['sum_of_arrays']} == {flash} ? 1 : -1];\n",
    }


def _model_words(program: IntegerProgram, name: str, layers: list[Code]) -> dict[str, object]:
    """What the templates say of the model."""
    last = program.layers[-1]
    room = program.rooms(DEVICE)[0]
    x, read = input_code(program.input, name, room), readout_code(program, name, layers[-1])
    parts = {f"{name}_input": program.input.fields(room)} | {code.name: code.fields for code in layers}
    parts[f"{name}_readout"] = readout = program.readout.fields(DEVICE, wide=layers[-1].unit == "int32_t")
    arrays = {field: values for part, fields in parts.items() for field, values in arrays_of(part, fields).items()}
    walked = state.words(name, layers, x, read)
    data, outputs = sum(values.nbytes for values in arrays.values()), 4 * program.n_o
    kept = int(str(walked["state_bytes"]))
    return {
        "marker": folder.MARKER,
        "version": __version__,
        "facts": "\n".join(f"   {line}" for line in facts(program)),
        "memory": table(memory(layers, readout, data=data, state=kept, outputs=outputs)),
        "work": table(work(program)),
        "n_i": program.input.n_raw,
        "n_h": program.n_out,
        "n_o": program.n_o,
        "bits_h": last.output.bits,
        "data_bytes": data,
        "ram_bytes": kept + outputs,
        "checksum": test_vectors.checksum(list(arrays.values())),
        "sum_of_arrays": " + ".join(f"sizeof {field}" for field in arrays),
        "arrays": "\n".join(array(field, values) for field, values in arrays.items()),
        "input_struct": initializer("qornn_input", f"{name}_input", parts[f"{name}_input"]),
        "readout_struct": initializer("qornn_readout", f"{name}_readout", readout),
        "hash_arrays": "\n".join(f"    hash = {name}_fnv(hash, {field}, sizeof {field});" for field in arrays),
        **walked,
        **x.words,
        **read.words,
    }


def _vector_words(vectors: Vectors) -> dict[str, object]:
    sampled = len(vectors.samples)
    which = f"The second sequence's first {sampled} inputs are here as floats too"
    return {
        "sequences": test_vectors.SEQUENCES,
        "steps": vectors.steps,
        "probes": test_vectors.PROBES,
        "total": len(vectors.states),
        "full": min(test_vectors.FULL, test_vectors.SEQUENCES * vectors.steps),
        "seed": test_vectors.SEED,
        "inputs_per_step": vectors.inputs.shape[1],
        "sampled": sampled,
        "samples_note": f"   {which}, from which the replay makes them.\n" if sampled else "",
        "vectors_bytes": sum(values.nbytes for values in _vector_parts(vectors).values()),
    }


def _vector_parts(vectors: Vectors) -> dict[str, np.ndarray]:
    ends = (np.arange(test_vectors.SEQUENCES) + 1) * vectors.steps - 1
    return {
        "inputs": vectors.inputs,
        "state_hashes": test_vectors.hashes(vectors.states),
        "output_hashes": test_vectors.hashes(vectors.outputs, vectors.held),
        "states": vectors.states[: min(test_vectors.FULL, test_vectors.SEQUENCES * vectors.steps)],
        "last_outputs": vectors.outputs[ends],
        **({"samples": vectors.samples} if len(vectors.samples) else {}),
    }


def _vector_arrays(name: str, vectors: Vectors) -> str:
    parts = _vector_parts(vectors)
    return "\n".join(array(f"{name}_{field}", values, flash=False) for field, values in parts.items())
