"""Results as records: one JSON file per cell, written by the program from what it measured, never by hand."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qornn._io.files import to_json, write_atomically
from qornn._io.foreign import Unreadable, read_json
from qornn.errors import DataError

if TYPE_CHECKING:
    from qornn.integer.program import IntegerProgram

FOLDER = "cells"  # inside the results folder
PROGRAMS = "programs"
MOST_BYTES = 100_000  # of a program that is kept
POINTS = 100  # of each of the two curves: training loss and validation
FINISHED = ("done", "diverged")
STATES = (*FINISHED, "partial")


def path_of(id: str, results: Path) -> Path:
    return results / FOLDER / f"{id}.json"


def read(id: str, results: Path) -> dict[str, Any] | None:
    """One record, or None where there is none yet."""
    path = path_of(id, results)
    return _read(path) if path.exists() else None


def read_all(folder: Path) -> list[dict[str, Any]]:
    """Every record of a results folder, or of its folder of cells, by id."""
    inner = folder if folder.name == FOLDER else folder / FOLDER
    return [_read(path) for path in sorted(inner.glob("*.json"))]


def write(record: dict[str, Any], results: Path = Path("results")) -> Path:
    """Write a record under its own id; a reader meets the old one or the new one, never half of either."""
    path = path_of(record["id"], results)
    # One line per point would be most of the file.
    body = {key: value for key, value in record.items() if key != "curve"}
    text = to_json(body, indent=1, ensure_ascii=False)
    points = ",\n  ".join(to_json(point) for point in record["curve"])
    curve = f"[\n  {points}\n ]" if points else "[]"
    write_atomically(path, f'{text[:-2]},\n "curve": {curve}\n}}\n')
    return path


def keep(program: IntegerProgram, id: str, results: Path) -> str | None:
    """Keep the program that a record's integers are of, so that they can be measured again; None if it is large."""
    from qornn.integer.storage import to_bytes

    data = to_bytes(program)
    if len(data) > MOST_BYTES:
        return None
    name = f"{PROGRAMS}/{id}.qornn"
    write_atomically(results / name, data)
    return name


def commit() -> str | None:
    """The commit of the checkout that measures; None outside of one, or without git."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def curve(metrics: list[dict[str, Any]]) -> list[list[float | None]]:
    """[step, epoch, training loss, validation, training] along a run, thinned; a point has a loss or a validation.

    The last is the metric on the training batches logged since the validation before, and stands beside one.
    """
    points: dict[int, list[float | None]] = {}
    since: list[float] = []
    for m in metrics:
        if "epoch" not in m or ("loss" not in m and m.get("validation") is None):
            continue
        if m.get("training") is not None:
            since.append(m["training"])
        validated = m.get("validation") is not None
        training = sum(since) / len(since) if validated and since else None
        numbers = (m.get("loss"), m.get("validation"), training)
        points[m["step"]] = [m["step"], m["epoch"], *map(_digits, numbers)]
        if validated:
            since = []
    losses = [step for step, point in points.items() if point[2] is not None]
    scores = [step for step, point in points.items() if point[3] is not None]
    kept = {*_thin(losses), *_thin(scores)}
    return [point for step, point in sorted(points.items()) if step in kept]


def machine(threads: int, device: str) -> dict[str, Any]:
    """What the figures in seconds depend on; no host name, no paths."""
    return {"cpu": _cpu(), "threads": threads, "device": device}


def difference(value: Any, paper: Any) -> float | None:
    """Measured minus published, where both are numbers."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (value, paper))
    return float(f"{value - paper:.10g}") if numbers else None


def _digits(value: float | None) -> float | None:
    """Six digits: enough for any picture."""
    return None if value is None else float(f"{value:.6g}")


def _thin(steps: list[int]) -> list[int]:
    """At most POINTS of them, evenly spaced, first and last included."""
    if len(steps) <= POINTS:
        return steps
    return [steps[round(i * (len(steps) - 1) / (POINTS - 1))] for i in range(POINTS)]


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.machine()


def _read(path: Path) -> dict[str, Any]:
    try:
        record = read_json(path)
    except Unreadable as error:
        raise DataError(
            f"cannot read the record {path}: {error}; delete it, and `qornn reproduce` makes it again"
        ) from error
    if not isinstance(record, dict) or not isinstance(record.get("id"), str) or record.get("status") not in STATES:
        raise DataError(f"{path} is not a record; delete it, and `qornn reproduce` makes it again")
    return record
