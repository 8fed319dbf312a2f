"""A program as a flat folder of C99: what is tested on the host and in the emulator is what is flashed."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from qornn import __version__
from qornn.errors import ProgramError, SettingsError, unknown
from qornn.export import c_folder, c_names, c_state, c_vectors
from qornn.export.c_arrays import Constants, array, constants, initializer
from qornn.export.c_state import state_bytes
from qornn.export.c_vectors import Vectors
from qornn.integer import layout as layouts
from qornn.integer.matrix import Dense, Recurrent
from qornn.integer.parts import Codes, FloatReadout, ReLU, Samples
from qornn.integer.program import IntegerProgram
from qornn.integer.requant import refuse_table
from qornn.integer.storage import from_bytes, to_bytes
from qornn.integer.structured import Delay, Hadamard

LAYOUTS: Final = ("packed",)  # weights at their bits
STEPS_LIMIT: Final = 100_000
STATES_LIMIT: Final = 2**30  # numbers that are simulated for the vectors
FORMAT: Final = 3  # of the folder: one more whenever the same program and options give other files


def c(
    program: IntegerProgram,
    out: str | Path,
    *,
    name: str,
    layout: str = "packed",
    vector_steps: int = 64,
    command: str | None = None,
) -> Path:
    """Write the folder `out`: NAME.h, NAME.c, runtime, example, test vectors, README and Makefile; returns it.

    layout: how weights lie, packed at their bits. vector_steps: length of the sequences in the vectors.
    command: what the files say made them.
    """
    out = Path(out)
    if layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)
    c_names.check(name)
    c_folder.check(out, name)
    command = command or f"qornn.export.c(program, {str(out)!r}, name={name!r}, layout={layout!r})"
    data = to_bytes(program)
    program = from_bytes(data, out / f"{name}.qornn")  # as whoever has that file would export it again
    made = make(program, name=name, vector_steps=vector_steps, command=command)
    c_folder.write(out, name, made.files | {f"{name}.qornn": data})
    return out


@dataclass(frozen=True, kw_only=True)
class Made:
    """All files but the program's own, and the sizes that they state."""

    files: dict[str, bytes]
    data_bytes: int
    vectors_bytes: int
    ram_bytes: int


def make(program: IntegerProgram, *, name: str, vector_steps: int, command: str) -> Made:
    """The files of an export: the same program and options give the same bytes."""
    refuse_table(program.requant, "C")
    if isinstance(vector_steps, bool) or not isinstance(vector_steps, int) or not 1 <= vector_steps <= STEPS_LIMIT:
        raise SettingsError(f"vector_steps must be a number in 1..{STEPS_LIMIT}, got {vector_steps!r}")
    widest = max(program.n_h, program.n_i)
    if vector_steps > (most := max(1, STATES_LIMIT // (c_vectors.SEQUENCES * widest))):
        raise SettingsError(f"vectors of {vector_steps} steps are too many for {widest} units or inputs; take {most}")
    found, vectors = constants(program), c_vectors.vectors(program, vector_steps)
    if not np.isfinite(vectors.outputs).all():
        raise ProgramError(
            "outputs of this program pass the largest float32: divide the targets, train and lower again"
        )
    words = _words(program, found, vectors, name=name)
    runtime = c_folder.runtime()
    words["runtime"] = " ".join(runtime)
    words["command"] = _plain(command)
    model = {
        f"{name}.h": c_folder.fill("model.h", words),
        f"{name}.c": c_folder.fill("model.c", words | {"arrays": _arrays(name, found)}),
        f"{name}_vectors.h": c_folder.fill("vectors.h", words | {"arrays": _vector_arrays(name, vectors)}),
        "example_main.c": c_folder.fill("example_main.c", words),
        "Makefile": c_folder.fill("Makefile", words),
        "README.md": c_folder.fill("README.md", words | _for_markdown(words)),
    }
    sizes = {key: int(str(words[key])) for key in ("data_bytes", "vectors_bytes", "ram_bytes")}
    return Made(files={file: text.encode() for file, text in model.items()} | runtime, **sizes)


def _words(program: IntegerProgram, found: Constants, vectors: Vectors, *, name: str) -> dict[str, object]:
    """What the templates are filled with."""
    signed = not isinstance(program.activation, ReLU)
    checksum = c_vectors.checksum(list(found.arrays.values()))
    hashed = (f"    hash = {name}_fnv(hash, {name}_{field}, sizeof {name}_{field});" for field in found.arrays)
    return {
        "name": name,
        "marker": c_folder.MARKER,
        "version": __version__,
        "format": FORMAT,
        "facts": "\n".join(f"   {line}" for line in _facts(program)),
        "memory": _table(_memory(program, found)),
        "work": _table(_work(program)),
        "n_i": program.n_i,
        "n_h": program.n_h,
        "n_o": program.n_o,
        "bits_h": program.state.bits,
        "data_bytes": found.nbytes,
        "ram_bytes": state_bytes(program) + 4 * program.n_o,
        "checksum": checksum,
        "program": initializer(name, found),
        "hash_arrays": "\n".join(hashed),
        "probe_sign": "(seed & 1u) != 0u ? -h : h" if signed else "h",
        "sequences": c_vectors.SEQUENCES,
        "steps": vectors.steps,
        "probes": c_vectors.PROBES,
        "total": len(vectors.states),
        "full": min(c_vectors.FULL, c_vectors.SEQUENCES * vectors.steps),
        "seed": c_vectors.SEED,
        "inputs_per_step": vectors.inputs.shape[1],
        "sampled": len(vectors.samples),
        "samples_note": _samples_note(len(vectors.samples)),
        "vectors_bytes": sum(values.nbytes for values in _vector_parts(vectors).values()),
        **c_state.words(program, name),
        **_input_words(program, name),
        **_output_words(program, name),
    }


def _input_words(program: IntegerProgram, name: str) -> dict[str, str]:
    words = {"quantize_h": "", "quantize_c": "", "quantize_note": "", "replay_x": "", "replay_floats": ""}
    if isinstance(program.input, Codes):
        comment = f"/* One step; a code outside 0..{program.n_i - 1} changes nothing and returns 1, otherwise 0. */"
        return words | {
            "parameter": "int32_t code",
            "argument": "code",
            "example_argument": "x[0]",
            "step_comment": comment,
        }
    low, high = program.input.low, program.input.high
    if program.input.takes_floats:
        words |= _quantize_words(program.input, name)
    return words | {
        "parameter": "const int16_t *x",
        "argument": "x",
        "example_argument": "x",
        "step_comment": f"/* One step of {name}_N_I raw samples, clamped to {low}..{high}; returns 0. */",
    }


def _quantize_words(samples: Samples, name: str) -> dict[str, str]:
    """From floats: a shift of the mantissa where raw units are powers of two, else in double."""
    offset = "" if samples.plain else f" + {name}_x_offset[c]"
    facts = {"name": name, "offset": offset, "low": samples.low, "high": samples.high}
    if samples.raw_scale is None:
        kind, facts["gain"] = "quantize_gain", array(f"{name}_gain", samples.gain())
    else:
        exponents = (np.frexp(samples.raw_scale)[1] - 1).astype(np.int8)
        kind, facts["exponents"] = "quantize_shift", array(f"{name}_raw_exponent", exponents)
    parts = {"quantize_h": f"{kind}.h", "quantize_c": f"{kind}.c", "replay_floats": "replay_floats.c"}
    found = {word: c_folder.fill(template, facts) for word, template in parts.items()}
    return found | {
        "quantize_note": f"`{name}_quantize(samples, x)` makes them of {samples.n_i} floats in the units of\n"
        "the training data, as a sensor gives them.\n\n",
        "replay_x": f"\n#ifndef {name}_NO_QUANTIZE\n    int16_t made[{name}_N_I];\n#endif",
    }


def _samples_note(steps: int) -> str:
    which = f"The second sequence's first {steps} inputs are here as floats too"
    return f"   {which}, from which the replay makes them.\n" if steps else ""


def _output_words(program: IntegerProgram, name: str) -> dict[str, str]:
    floats = isinstance(program.readout, FloatReadout)
    y_type = "float" if floats else "int32_t"
    facts = {"name": name, "y_type": y_type}
    several = program.n_o > 1
    return {
        "y_type": y_type,
        "readout": "qornn_read_float" if floats else "qornn_read_int",
        "units_of_y": "" if floats else f"; times {program.readout.scale!r} they are in the network's own units",
        "float_note": "" if floats else ", no float",
        "classify_h": c_folder.fill("classify.h", facts) if several else "",
        "classify_c": c_folder.fill("classify.c", facts) if several else "",
    }


def _facts(program: IntegerProgram) -> list[str]:
    inputs = "codes" if isinstance(program.input, Codes) else "channels"
    metric = program.provenance.get("metric")
    weights = (
        f"weights of {program.W.bits} bits (packed)"
        if isinstance(program.W, Dense)
        else f"U of {program.U.bits} bits (packed), {_known(program.W)}"
    )
    mixed = "transformed by Walsh-Hadamard and " if program.readout.mix else ""
    lines = [
        f"{program.n_i} {inputs}, {program.n_h} units, {program.n_o} outputs; {weights}, states of "
        f"{program.state.bits} bits",
        f"{mixed}read out {'at the end of a sequence' if program.steps == 'last' else 'at every step'}",
    ]
    if isinstance(metric, dict) and {"name", "value"} <= metric.keys():
        task = program.provenance.get("task")
        where = f"task {task}: " if isinstance(task, str) else ""
        lines.append(_plain(f"{where}{metric['name']} {metric['value']} on the test set, as these integers"))
    else:
        lines.append("never measured on a task")
    return lines


def _known(W: Recurrent) -> str:
    """A W that is not stored, and what is stored instead."""
    if isinstance(W, Hadamard):
        blocks = "" if W.block == W.n_h else f" in {W.n_h // W.block} blocks of {W.block}"
        return f"W: signed Hadamard{blocks}, {layouts.pack_signs(W.signs).nbytes} bytes of signs"
    if isinstance(W, Delay):
        signs = layouts.pack_signs(W.signs).nbytes
        return f"W: {len(W.signs)} delay lines mixed by a signed Hadamard, {signs} bytes of signs"
    return "W: one signed cycle, nothing stored"


def _memory(program: IntegerProgram, found: Constants) -> dict[str, int]:
    """The memory table, whatever is known before compiling."""

    def of(*fields: str) -> int:
        return sum(found.arrays[field].nbytes for field in fields if field in found.arrays)

    W = of("W_planes", "signs")
    U = of("U_planes", "U_packed", "U_words")
    readout = of("V", "b_o", "V_int", "V_packed", "b_o_int")
    state, outputs = state_bytes(program), 4 * program.n_o
    return {
        "flash: W": W,
        "flash: U": U,
        "flash: requantization, biases, normalisation": found.nbytes - W - U - readout,
        "flash: readout": readout,
        "flash: all constants": found.nbytes,
        "RAM: state": state,
        "RAM: outputs": outputs,
        "RAM: all, but for the stack": state + outputs,
    }


def _work(program: IntegerProgram) -> dict[str, int]:
    """Multiply-accumulates; codes select a column of U, which is only added. A W that is not stored takes additions."""
    W, n_h = program.W, program.n_h
    rows = n_h if W.driven is None else len(W.driven)
    driven = rows * program.n_i if isinstance(program.input, Samples) else 0
    readout = {"a readout": n_h * program.n_o}
    if program.readout.mix:  # twelve additions for each four units of S h and four of h
        readout["a readout: transform, additions alone"] = 12 * (n_h // 4) ** 2 or 2
    if isinstance(W, Dense):
        return {"a step": n_h**2 + driven, **readout}
    mixed = W.block if isinstance(W, Hadamard) else len(W.signs) if isinstance(W, Delay) else 1
    additions = (n_h if isinstance(W, Hadamard) else mixed) * (mixed.bit_length() - 1)
    return {"a step: W, additions alone": additions, "a step: U": driven, **readout}


def _table(rows: dict[str, int]) -> str:
    return "\n".join(f"     {what:<48}{size:>9}" for what, size in rows.items())


def _for_markdown(words: dict[str, object]) -> dict[str, str]:
    """The same facts, as Markdown lays them out."""

    def table(text: object) -> str:
        rows = (line.rsplit(maxsplit=1) for line in str(text).splitlines())
        return "\n".join(f"| {what.strip()} | {size} |" for what, size in rows)

    facts = "\n".join(f"- {_literal(line.strip())}" for line in str(words["facts"]).splitlines())
    return {"memory": table(words["memory"]), "work": table(words["work"]), "facts": facts}


def _arrays(name: str, found: Constants) -> str:
    return "\n".join(array(f"{name}_{field}", values) for field, values in found.arrays.items())


def _vector_parts(vectors: Vectors) -> dict[str, np.ndarray]:
    ends = (np.arange(c_vectors.SEQUENCES) + 1) * vectors.steps - 1
    return {
        "inputs": vectors.inputs,
        "state_hashes": c_vectors.hashes(vectors.states),
        "output_hashes": c_vectors.hashes(vectors.outputs),
        "states": vectors.states[: min(c_vectors.FULL, c_vectors.SEQUENCES * vectors.steps)],
        "last_outputs": vectors.outputs[ends],
        **({"samples": vectors.samples} if len(vectors.samples) else {}),
    }


def _vector_arrays(name: str, vectors: Vectors) -> str:
    return "\n".join(array(f"{name}_{field}", values) for field, values in _vector_parts(vectors).items())


def _literal(text: str) -> str:
    """Text that Markdown shows as it is: no tags, links or pictures, whatever a program file says about itself."""
    return re.sub(r"[\[\]`\\]", r"\\\g<0>", html.escape(text, quote=False))


def _plain(text: str) -> str:
    """One line that cannot end a comment, whatever a program file says about itself."""
    text = text.encode("ascii", "backslashreplace").decode()
    text = re.sub(r"\?(?=\?)", "? ", text)  # trigraphs: ??/ is a backslash to C99
    return "".join(ch if ch.isprintable() else " " for ch in text).replace("*/", "* /").replace("/*", "/ *")[:300]
