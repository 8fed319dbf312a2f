"""The first difference, in words: which step, and which unit or output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from qornn.integer.program import IntegerProgram
from qornn.integer.simulate import step


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Where a replay left the law; got and want are integers, or float32 outputs."""

    step: int | None  # None: no step shows it, but a file or the constants are not those that were exported
    file: str | None = None  # or several, as text
    unit: int | None = None
    input: int | None = None  # of a float sample that became another raw one
    output: int | None = None
    got: float | None = None
    want: float | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file}: not what the program in the folder exports; export the folder again"
        if self.step is None:
            return "no step shows it, but the constants are not those that were exported (their checksum differs)"
        where = f"step {self.step}"
        if self.unit is not None:
            where += f", unit {self.unit}"
        if self.input is not None:
            where += f", input {self.input} made of a float"
        if self.output is not None:
            where += f", output {self.output}"
        return where if self.got is None else f"{where}: got {self.got}, want {self.want}"


def parse(said: str, program: IntegerProgram | None) -> tuple[int | None, Difference | None]:
    """What the example said: the number of exact steps, or the first difference, both None if neither was said.

    A device holds only hashes of most states. It tells what the step was given and what came out, so whoever has
    the program can make that step again.
    """
    if found := re.search(r"^exact steps=(\d+)$", said, re.MULTILINE):
        return int(found[1]), None
    if re.search(r"^differs checksum$", said, re.MULTILINE):
        return None, Difference(step=None)
    found = re.search(r"^differs step=(\d+) input=(\d+) got=(-?\d+) want=(-?\d+)$", said, re.MULTILINE)
    if found:
        step_at, at, got, want = map(int, found.groups())
        return step_at, Difference(step=step_at, input=at, got=got, want=want)
    found = re.search(r"^differs step=(\d+)(?: unit=(\d+) got=(-?\d+) want=(-?\d+))?", said, re.MULTILINE)
    if found is None:
        return None, None
    at = int(found[1])
    if found[2]:
        return at, Difference(step=at, unit=int(found[2]), got=int(found[3]), want=int(found[4]))
    rows = {
        key: np.array(row.split(), np.int64) for key, row in re.findall(r"^([a-z]+)((?: -?\d+)+)$", said, re.MULTILINE)
    }
    return at, Difference(step=at) if program is None else _locate(at, rows, program)


def _locate(at: int, rows: dict[str, np.ndarray], program: IntegerProgram) -> Difference:
    """The unit or output that differs from the program's own."""
    try:
        if "outputs" in rows:
            got, key = rows["outputs"].astype(np.int32), "output"
            read, count = rows["read"][None, : program.n_out], rows["read"][program.n_out :]
            want = program.readout.outputs(read, count)[0]
            got = got.view(program.readout.dtype)
        else:
            got, key = rows["state"], "unit"
            raw = program.input.clip(rows["input"]).reshape(1, *program.input.shape)
            want = np.concatenate(step(program, program.apart(rows["before"][None]), raw)[0], 1)[0]
        first = int(np.flatnonzero(got != want)[0])
        where: dict[str, Any] = {key: first}
        return Difference(step=at, **where, got=got[first].item(), want=want[first].item())
    except (KeyError, IndexError, ValueError):  # the program beside is another one, or the text was cut
        return Difference(step=at)
