"""AVR chips: compiled by avr-gcc, run by libsimavr, which counts cycles; vectors are fed to the chip step by step."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from qornn.export.c99.vectors import SEQUENCES, probe_states
from qornn.verify import build, elf
from qornn.verify.build import VerifyError
from qornn.verify.difference import Difference
from qornn.verify.folder import Export
from qornn.verify.targets import Avr

GCC: Final = "avr-gcc"
INSTALL: Final = "apt-get install gcc-avr avr-libc libsimavr-dev"
LEVEL: Final = "-Os"
FLAGS: Final = ("-std=gnu99", LEVEL, "-ffunction-sections", "-fdata-sections")  # as the Arduino IDE compiles
DATA: Final = 0x80_0000  # where the linker keeps addresses of RAM
STEP, READOUT = 1, 2  # what the chip marks
STACK_OVERFLOW: Final = 3  # status of the run


def missing() -> str | None:
    """What is not installed here, and the way out; None where chips can be run."""
    lacking = absent()
    return f"{lacking} is not installed; `{INSTALL}`" if lacking else None


def absent() -> str | None:
    """What is not installed here."""
    if build.tool(GCC) is None:
        return GCC
    try:
        done = subprocess.run(
            [*build.host_compiler(), "-x", "c", "-E", "-"],
            input=b"#include <simavr/sim_avr.h>\n",
            capture_output=True,
            timeout=build.TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired, VerifyError):
        return "a C compiler for this machine"
    return "libsimavr-dev" if done.returncode else None


def run(export: Export, scratch: Path, name: str, target: Avr) -> dict[str, Any]:
    """The fields of a Result: the whole replay on the chip, every step of it counted."""
    if export.flat:
        raise VerifyError(
            f"target {name}: the runtime in {export.folder} is of an older format and needs an int of 32 bits; "
            f"this chip's has 16; {export.way_out}"
        )
    if lacking := missing():
        raise VerifyError(f"target {name}: {lacking}")
    path = _image(export, scratch, name, target)
    image = elf.read(path)
    flash, ram = _sizes(export, name, target, image)
    try:
        said, marks = simulated(path, target.mcu, _feed(export))
    except StackOverflow as error:
        raise VerifyError(_no_ram(export, name, target, ram)) from error
    steps, difference = _compared(export, said)
    of = {what: marks[marks[:, 0] == what] for what in (STEP, READOUT)}
    return {
        "steps": steps,
        "exact": difference is None,
        "difference": difference,
        "compiler": build.named(GCC, [str(build.tool(GCC)), "-dumpversion"], LEVEL, scratch),
        "ran_on": [f"simavr {target.mcu}"],
        "skipped": [f"{export.name}_quantize, which needs a double of 64 bits"] if export.in_double else [],
        "cycles_per_step": int(of[STEP][:, 1].max()),
        "cycles_per_readout": int(of[READOUT][:, 1].max()),
        "instructions_per_step": int(of[STEP][:, 2].max()),
        "instructions_per_readout": int(of[READOUT][:, 2].max()),
        "stack_bytes": int(marks[:, 3].max()),
        "flash_bytes": flash,
        "ram_bytes": ram,
    }


def _image(export: Export, scratch: Path, name: str, target: Avr) -> Path:
    """The model, the replay that is fed, and start-up."""
    if export.data_bytes > target.flash_bytes:  # more than the linker can place
        raise VerifyError(_no_room(export, name, export.data_bytes, target.flash_bytes, "its constants alone"))
    sources = [path for path in export.put(scratch) if path.name != Path(export.main).name]
    script, board, image = scratch / "link.ld", scratch / "qornn_board.c", scratch / "image.elf"
    script.write_text(_filled("avr.ld", {"name": export.name, "ram": hex(target.ram)}), encoding="utf-8")
    board.write_text(_filled("avr.c", export.words), encoding="utf-8")
    compiler = [str(build.tool(GCC)), f"-mmcu={target.mcu}", *FLAGS, *(["-DBOARD_FLOATS"] if _floats(export) else [])]
    link = ["-Wl,--gc-sections", "-T", str(script), "-o", str(image)]
    compiler.append(f"-I{export.headers(scratch)}")
    build.compiled([*compiler, str(board), *map(str, sources), *link], scratch, name)
    return image


def _filled(board: str, words: Mapping[str, object]) -> str:
    text = (files("qornn.verify") / "boards" / board).read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda match: str(words[match[1]]), text)


def _floats(export: Export) -> bool:
    """Whether NAME_quantize is there to be replayed: double has 32 bits here."""
    return len(export.vectors.samples) > 0 and not export.in_double


def _no_room(export: Export, name: str, need: int, has: int, what: str) -> str:
    return (
        f"{export.name} does not fit {name}: {what} take {need} of {has} bytes of flash; use fewer units or bits, "
        "an integer readout, or another target"
    )


def _sizes(export: Export, name: str, target: Avr, image: elf.Image) -> tuple[int, int]:
    """Flash and RAM of the model; an error says which of them the chip has not."""
    whole = sum(len(data) for _, data in image.loads)
    if whole > target.flash_bytes:
        parts = f"its {export.data_bytes} bytes of constants and the code"
        raise VerifyError(_no_room(export, name, whole, target.flash_bytes, parts))
    data = image.sections.get(".data", 0)
    if (ram := image.sections[".bss"] + data) >= target.ram_bytes:
        raise VerifyError(_no_ram(export, name, target, ram))
    return image.sections[".model"] + data, ram


def _no_ram(export: Export, name: str, target: Avr, ram: int) -> str:
    return (
        f"{export.name} does not fit {name}: its state and outputs take {ram} of {target.ram_bytes} bytes of RAM, and "
        f"the stack needs more than is left; use fewer units, or another target"
    )


class StackOverflow(VerifyError):
    """The stack ran into static data."""


def simulated(path: Path, mcu: str, feed: bytes) -> tuple[bytes, np.ndarray]:
    """What a chip says when it is fed, and for each of its marks a row: which, cycles, instructions and stack."""
    folder, image = path.parent, elf.read(path)
    simulator, source, flash = folder / "simavr", folder / "simavr.c", folder / "flash.bin"
    source.write_bytes((files("qornn.verify") / "boards" / "simavr.c").read_bytes())
    build.compiled([*build.host_compiler(), "-O2", str(source), "-lsimavr", "-o", str(simulator)], folder, "simavr")
    data = bytearray(max(address + len(part) for address, part in image.loads))
    for address, part in image.loads:
        data[address : address + len(part)] = part
    flash.write_bytes(data)
    free = image.symbols["_end"][0] - DATA
    command = [str(simulator), mcu, str(flash), hex(free)]
    try:
        done = subprocess.run(command, cwd=folder, input=feed, capture_output=True, timeout=build.TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VerifyError(f"simavr did not run: {error}") from error
    if done.returncode == STACK_OVERFLOW:
        raise StackOverflow(f"the stack of {mcu} ran into its static data")
    if done.returncode:
        words = done.stderr[-400:].decode(errors="replace")
        raise VerifyError(f"simavr ended with status {done.returncode} and said {words!r}")
    rows = re.findall(rb"^(\d+) (\d+) (\d+) (\d+)$", done.stderr, re.MULTILINE)
    return done.stdout, np.array([[int(number) for number in row] for row in rows], np.int64).reshape(-1, 4)


def _feed(export: Export) -> bytes:
    """The replay as avr.c takes it, one letter and its numbers after another."""
    vectors, ordinary = export.vectors, SEQUENCES * export.vectors.steps
    probes = np.concatenate(probe_states(export.program), 1)
    seeds = (np.abs(probes) << 16 | (probes < 0)).astype("<u4")  # as set_unit reads them
    parts = []
    for t, inputs in enumerate(vectors.inputs):
        if t >= ordinary:
            parts += [b"i", b"u", seeds[t - ordinary].tobytes()]
        elif t % vectors.steps == 0:
            parts += [b"i"]
        parts += [b"s", inputs.astype("<i2").tobytes()]
    for sample in vectors.samples if _floats(export) else ():
        parts += [b"f", sample.astype("<f4").tobytes()]
    return b"".join([*parts, b"c"])


def _compared(export: Export, said: bytes) -> tuple[int, Difference | None]:
    """Steps that were exact, and the first number that was not the law's."""
    vectors, n_read = export.vectors, int(str(export.words["n_read"]))
    (total, n_state), n_o, n_raw = vectors.states.shape, vectors.outputs.shape[1], vectors.inputs.shape[1]
    step = np.dtype([("states", "<i2", (n_state,)), ("read", "<i4", (n_read,)), ("outputs", "<i4", (n_o,))])
    sampled = len(vectors.samples) if _floats(export) else 0
    expected = total * step.itemsize + 2 * sampled * n_raw + 4
    if len(said) != expected:
        raise VerifyError(f"the chip said {len(said)} bytes, not {expected}")
    steps = np.frombuffer(said, step, total)
    outputs = np.ascontiguousarray(steps["outputs"])  # as bits: of floats too
    made = np.frombuffer(said, "<i2", sampled * n_raw, total * step.itemsize).reshape(sampled, n_raw)
    found = [
        _first("unit", steps["states"], vectors.states),
        _first(None, steps["read"][:, : vectors.held.shape[1]], vectors.held),
        _first("output", outputs.view(vectors.outputs.dtype), vectors.outputs),
        _first("input", made, vectors.inputs[vectors.steps : vectors.steps + sampled], vectors.steps),
    ]
    if differences := [difference for difference in found if difference is not None]:
        first = min(differences, key=lambda difference: difference.step or 0)
        return first.step or 0, first
    if int.from_bytes(said[-4:], "little") != int(str(export.words["checksum"])):
        return total, Difference(step=None)
    return total, None


def _first(key: str | None, got: np.ndarray, want: np.ndarray, before: int = 0) -> Difference | None:
    """The first number whose bits differ, in steps counted from `before`."""
    rows, columns = np.nonzero(got.astype(want.dtype).view(f"i{want.itemsize}") != want.view(f"i{want.itemsize}"))
    if not len(rows):
        return None
    at, j = int(rows[0]), int(columns[0])
    where: dict[str, Any] = {} if key is None else {key: j}
    return Difference(step=at + before, **where, got=got[at, j].item(), want=want[at, j].item())
