"""The Arduino sketch: where samples come from and in which unit, and when a sequence begins anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from qornn.export.c99.folder import fill
from qornn.integer.program import IntegerProgram

SHOWN: Final = 8  # channels whose units the sketch lists


def text(program: IntegerProgram, words: Mapping[str, object]) -> str:
    """examples/NAME/NAME.ino"""
    name, reads, steps = words["name"], words["sketch"], steps_of(program)
    answer = [f"Serial.println({name}_classify(&state));"]
    if not words["classify_h"]:
        answer = [f"{words['y_type']} y[{name}_N_O];", f"{name}_predict(&state, y);", "Serial.println(y[0]);"]
    indent = "\n        " if steps else "\n    "
    low, high = program.input.limits
    parts = {**words, "units": _units(program, words), "answer": indent.join(answer), "low": low, "high": high}
    found = {
        "sketch_source": "read_code" if reads == "code" else "read_sample",
        "sketch_read": fill(f"sketch_read_{reads}.ino", parts),
        "sketch_step": fill(f"sketch_step_{reads}.ino", parts),
        "sketch_answer": fill("sketch_sequence.ino" if steps else "sketch_stream.ino", parts),
        "sketch_begin": f"\n#define SEQUENCE_STEPS {steps}ul /* as many as in training */\n" if steps else "",
        "sketch_init": "before the first sequence" if steps else "again before every new sequence",
    }
    return fill("sketch.ino", {**parts, **found})


def steps_of(program: IntegerProgram) -> int | None:
    """Steps of a sequence that ends in an answer, as far as all of the calibration were equally long."""
    report = program.provenance.get("lowering")
    if program.readout.every or not isinstance(report, dict):
        return None
    steps = report.get("steps", _counted(report, program.layers[0].output.n_i))
    return steps if _is_count(steps) and steps < 2**31 else None


def _counted(report: Mapping[str, Any], width: int) -> int | None:
    """For files that do not say it: all states that were checked, over those of one step of every sequence."""
    layers, sequences = report.get("layers"), report.get("checked_sequences")
    first: Any = layers[0] if isinstance(layers, list) and layers else report
    states: Any = first.get("states") if isinstance(first, dict) else None
    if not _is_count(states) or not _is_count(sequences):
        return None
    steps, rest = divmod(states, sequences * width)
    return None if rest else steps


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _units(program: IntegerProgram, words: Mapping[str, object]) -> str:
    """Lines of a comment, one per channel."""
    said, units = program.provenance.get("input"), str(words["sketch_units"]).splitlines()
    mean, std = ((said if isinstance(said, dict) else {}).get(key) for key in ("mean", "std"))
    lines = []
    for c, line in enumerate(units[:SHOWN]):
        if _has(mean, c) and _has(std, c):
            line += f"; in training the mean was {mean[c]:.4g}, the standard deviation {std[c]:.4g}"
        lines.append(f"\n     channel {c}: {line}")
    return "".join(lines) + (f"\n     and {len(units) - SHOWN} more" if len(units) > SHOWN else "")


def _has(values: Any, c: int) -> TypeGuard[list[float]]:
    return isinstance(values, list) and len(values) > c and isinstance(values[c], float)
