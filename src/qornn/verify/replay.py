"""Replaying the test vectors of an exported folder on a target, and what that shows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from qornn.errors import unknown
from qornn.verify import build, elf, folder, qemu, readme, simavr
from qornn.verify.build import VerifyError
from qornn.verify.difference import Difference, parse
from qornn.verify.folder import Export
from qornn.verify.machine import Machine
from qornn.verify.targets import TARGETS, Avr, Target

COUNTED: Final = 3  # steps: requantization by thresholds, and signs, take more or fewer instructions


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was seen on one target. Figures are of this very image; None where they are not measured."""

    target: str
    steps: int
    exact: bool | None  # None: compiled, but nothing here can run it
    difference: Difference | None = None
    compiler: str = ""  # and of a device its version and level of optimization
    ran_on: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # files that differ, but are not compiled
    instructions_per_step: int | None = None  # the most of the counted steps; instructions, not cycles
    instructions_per_readout: int | None = None
    cycles_per_step: int | None = None  # where the emulator knows them: the most of all steps
    cycles_per_readout: int | None = None
    flash_bytes: int | None = None  # constants and code of the model, without start-up, example and vectors
    ram_bytes: int | None = None  # state and outputs, and whatever static data the model has
    stack_bytes: int | None = None  # the deepest of a step or a readout

    def figures(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def verify(out: str | Path, target: str = "host") -> Result:
    """Compare an exported folder with what its program exports; compile that, replay the test vectors, and measure.

    - `out`: a folder that `export.c` wrote.
    - `target` ("host"): where to compile for and replay: "host", this machine, or a device of `TARGETS`, emulated.

    Returns a `Result`: `exact` tells whether every bit is that of the simulation, `difference` the first that is not,
    `notes` files that were not used. Figures such as `instructions_per_step` and `flash_bytes` are measured on devices.

    What is compiled is made anew from NAME.qornn, with a replay program of this package. Files that differ are named.
    Neither they nor the test or the Makefile in the folder are ever compiled or run. Code and stack of a device are
    written into the folder's README.md.
    """
    if target not in TARGETS:
        raise unknown("target", target, TARGETS)
    export = folder.find(out)
    if export.differing:
        return Result(
            target=target,
            steps=0,
            exact=False,
            difference=Difference(step=None, file=", ".join(export.differing)),
            notes=export.notes,
        )
    result = replace(replayed(export, target), notes=export.notes)
    readme.keep(Path(out), export, result)
    return result


def replayed(export: Export, target: str) -> Result:
    """The files of an export, compiled in a place of their own and run."""
    device = TARGETS[target]
    with tempfile.TemporaryDirectory(prefix="qornn-verify-") as scratch:
        if device is None:
            return _on_host(export, Path(scratch))
        return RUNNERS[device.emulator](export, Path(scratch), target, device)


def measure(out: str | Path, target: str) -> dict[str, Any]:
    """The figures of an exported folder on a device, which must be exact there."""
    result = verify(out, target)
    if result.exact is False:
        raise VerifyError(f"{out} is not exact on {target}: {result.difference}")
    return result.figures()


def _on_host(export: Export, scratch: Path) -> Result:
    program = build.build_host(export, scratch)
    steps, difference = _judge(export, *build.said([str(program)], scratch))
    return Result(
        target="host",
        steps=steps,
        exact=difference is None,
        difference=difference,
        compiler=" ".join(build.host_compiler()),
        ran_on=["this machine"],
    )


def _on_device(export: Export, scratch: Path, name: str, target: Target) -> Result:
    compiler = build.cross_compiler(name)
    path = build.build(export, scratch, name, target, compiler, target.zig)
    image = elf.read(path)
    lean = elf.read(_without_floats(export, scratch, name, target)) if export.in_double else image
    steps, difference, ran_on = 0, None, []
    counted: dict[str, Any] = {}
    if target.cpu is not None:
        machine = Machine(image, target)
        machine.run()
        steps, difference = _judge(export, machine.said, machine.status)
        ran_on.append(f"unicorn {target.cpu}")
        if difference is None:
            counted = _count(export, Machine(image, target))
    on_qemu, skipped = qemu.outputs(export, scratch, path, name, target)
    for where, said, status in on_qemu:
        if difference is None:
            steps, difference = _judge(export, said, status)
        ran_on.append(where)
    if not ran_on:
        skipped.append(f"{name} was compiled but not run")
    return Result(
        target=name,
        steps=steps,
        exact=(difference is None) if ran_on else None,
        difference=difference,
        compiler=build.named("zig cc", [compiler[0], "version"], build.LEVEL, scratch),
        ran_on=ran_on,
        skipped=skipped,
        flash_bytes=lean.sections[".model"] + lean.sections.get(".data", 0),
        ram_bytes=image.sections[".bss"] + image.sections.get(".data", 0),
        **counted,
    )


def _on_avr(export: Export, scratch: Path, name: str, target: Avr) -> Result:
    return Result(target=name, **simavr.run(export, scratch, name, target))


def _without_floats(export: Export, scratch: Path, name: str, target: Target) -> Path:
    """The same without NAME_quantize, which few devices need: its double arithmetic would hide the model's own size."""
    (scratch / "lean").mkdir()
    options = (*target.zig, f"-D{export.name}_NO_QUANTIZE")
    return build.build(export, scratch / "lean", name, target, build.cross_compiler(name), options)


def _judge(export: Export, said: str, status: int | None) -> tuple[int, Difference | None]:
    """Steps that were exact, and the first that was not."""
    steps, difference = parse(said, export.program)
    if difference is None and (status != 0 or steps is None):
        raise VerifyError(f"the replay ended with status {status} and said {said[-400:]!r}")
    return steps or 0, difference


def _count(export: Export, machine: Machine) -> dict[str, Any]:
    """Instructions and stack of a few steps, the later of them with a state that is not zero."""
    instructions, depths, readout = [], [], 0
    for _ in range(COUNTED):
        if not machine.run_to(f"{export.name}_step"):
            break
        count, depth = machine.call(counted=True)
        instructions.append(count)
        machine.run_to(f"{export.name}_predict")
        readout, deep = machine.call(counted=True)
        depths += [depth, deep]
    return {
        "instructions_per_step": max(instructions),
        "instructions_per_readout": readout,
        "stack_bytes": max(depths),
    }


RUNNERS: Final[dict[str, Callable[[Export, Path, str, Any], Result]]] = {
    Target.emulator: _on_device,
    Avr.emulator: _on_avr,
}
