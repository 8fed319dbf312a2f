"""Tables of scores: every cell, measured beside published. What was not run is shown as not run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from qornn.recipe import Cell, from_tables
from qornn.reproduce import grid
from qornn.reproduce import report_figures as write
from qornn.reproduce.grid import Entry
from qornn.tasks import TASKS

Record = dict[str, Any]
NOT_RUN = "not run"
OF_SEEDS: dict[str, Callable[[list[float]], float]] = {"min": min, "median": statistics.median, "max": max}


@dataclass(frozen=True, slots=True)
class Table:
    """A table as people read it (`columns`, `rows`) and as programs do (`data`, one dict per row)."""

    name: str
    title: str
    columns: Sequence[str]
    rows: list[list[str]]
    data: list[dict[str, Any]]


def of_cell(entry: Entry, records: Sequence[Record]) -> list[Record]:
    """The records of a network: the paper's setting first, then other seeds and variants."""
    own = [r for r in records if r.get("cell", r["id"]) == entry.id]
    return sorted(own, key=lambda r: (r["id"] != entry.id, r["variant"] is not None, r["id"]))


def changes(record: Record, entry: Entry) -> str:
    """What a record's run changed of the paper's settings."""
    wrong = grid.differences(from_tables(record["settings"]), entry.recipe)
    return ", ".join(f"{key}={mine}" for key, (mine, _) in wrong.items())


def scores(name: str, records: Sequence[Record]) -> Table:
    """A table of the paper whose cells are trained networks."""
    data: list[dict[str, Any]] = []
    for entry in grid.of(name):
        if entry.paper is None:  # one of several seeds: it counts in their rows below
            continue
        own = of_cell(entry, records)
        main = own.pop(0) if own and own[0]["id"] == entry.id else None
        data += [_row(entry, record) for record in (main, *own)]
    data += [_row_of_seeds(cell, records) for cell in _seed_cells(name)]
    if name == "alphas":
        return _alphas(data)
    columns = ["task", "network", "weights", "n_h", "paper", "measured", "paper, 12-bit", "12-bit integers"]
    columns += ["of the paper's training", "remarks"]
    return Table(name, {**grid.TRAINED, **grid.CURVES}[name], columns, [_texts(row) for row in data], data)


def _row(entry: Entry, record: Record | None) -> dict[str, Any]:
    """One line: a cell of the paper with one of its records, or none."""
    r: Record = record or {}
    integer = r.get("integer") or {}
    cited = entry.fact("cited")
    remarks = [f"cited: {cited}"] if cited else []
    remarks += [r["note"]] if r.get("note") else []
    if record is not None and record["id"] != entry.id:
        name = f"variant {r['variant']}" if r["variant"] else "another seed"
        remarks = [f"{name}: {changes(record, entry)}", *remarks]
    return {
        "id": r.get("id", entry.id),
        "cell": entry.id,
        "task": entry.task,
        "strategy": entry.strategy,
        "bits": entry.bits,
        "activation_bits": entry.fact("activation_bits"),
        "n_h": r.get("n_h", entry.recipe.model.n_h),
        "setting": ", ".join(f"{key} = {value}" for key, value in entry.changed if key != "n_h"),
        "metric": TASKS[entry.task].metric_name,
        "paper": entry.paper,
        "measured": r.get("value"),
        "status": r.get("status", NOT_RUN),
        "converged": r.get("converged"),
        "steps": r.get("steps"),
        "paper_integer": (entry.fact("paper_at") or {}).get("12"),
        "integer": integer.get("value"),
        "refitted": refit.get("value") if isinstance(refit := integer.get("refit"), dict) else None,
        "alpha_W": integer.get("alpha_W"),
        "alpha_W_alpha_h": integer.get("alpha_W_alpha_h"),
        "paper_alpha_W": entry.fact("paper_alpha_W"),
        "paper_alpha_W_alpha_h": entry.fact("paper_alpha_W_alpha_h"),
        "fraction": r.get("fraction"),
        "schedule": r.get("schedule"),
        "remarks": "; ".join(remarks),
    }


def _seed_cells(name: str) -> list[Cell]:
    """Cells that are a figure of several seeds together, once each."""
    return list(
        {c.facts["note"]: c for e in grid.of(name) for c in e.cells if c.table == name and "seeds" in c.facts}.values()
    )


def _row_of_seeds(cell: Cell, records: Sequence[Record]) -> dict[str, Any]:
    """min, median or max over the seeds, once all are there."""
    entries = [e for e in grid.of(cell.table) if cell in e.cells]
    by_id = {r["id"]: r for r in records}
    found = [by_id[e.id] for e in entries if e.id in by_id and by_id[e.id]["value"] is not None]
    row = _row(entries[0], None)
    whole = len(found) == len(entries)
    value = OF_SEEDS[cell.facts["note"].split()[0]]([r["value"] for r in found]) if whole else None
    return row | {
        "paper": cell.paper,
        "setting": cell.facts["note"],
        "measured": value,
        "converged": True,
        "status": "done" if whole else NOT_RUN,
        "paper_integer": None,
        "fraction": min(r["fraction"] for r in found) if whole else None,
        "remarks": "" if whole or not found else f"{len(found)} of {len(entries)} seeds run",
    }


def _texts(row: dict[str, Any]) -> list[str]:
    metric = row["metric"]
    weights = write.bits(row["bits"]) + (f", activations {row['activation_bits']}" if row["activation_bits"] else "")
    name = write.strategy(row["strategy"]) + (f", {row['setting']}" if row["setting"] else "")
    return [
        write.TASKS[row["task"]],
        name,
        weights,
        str(row["n_h"]),
        figure(row["paper"], metric),
        measured(row),
        figure(row["paper_integer"], metric),
        integers(row),
        training(row),
        row["remarks"],
    ]


def figure(value: Any, metric: str) -> str:
    """As the paper prints it: three digits where it has three, as in 0.153."""
    found = write.number(value)
    if found is not None and metric not in ("accuracy", "bits per character") and 0.01 <= abs(found) < 1000:
        return f"{found:.3g}"
    return write.figure(value, metric)


def measured(row: dict[str, Any]) -> str:
    """A figure, NC with its figure, or why there is none."""
    if row["status"] == NOT_RUN:
        return NOT_RUN
    if row["status"] == "diverged":
        return f"diverged at step {row['steps']}"
    text = figure(row["measured"], row["metric"])
    return text if row["converged"] else f"NC ({text})"


def integers(row: dict[str, Any]) -> str:
    """The figure of the integers, and with the readout trained again on their states."""
    text = figure(row["integer"], row["metric"])
    return text if row["refitted"] is None else f"{text}, refitted {figure(row['refitted'], row['metric'])}"


def training(row: dict[str, Any]) -> str:
    """How much of the paper's training, and how its schedule went."""
    if row["fraction"] is None:
        return write.NONE
    how = [] if row["schedule"] in ("whole", None) else [row["schedule"]]
    how += ["unfinished"] if row["status"] == "partial" else []
    return ", ".join([write.percent(row["fraction"]), *how])


def _alphas(data: list[dict[str, Any]]) -> Table:
    columns = ["task", "weights", "paper, α_W", "measured, α_W", "paper, α_W α_h", "measured, α_W α_h"]
    columns += ["of the paper's training", "remarks"]

    def text(row: dict[str, Any], key: str) -> str:
        if row["status"] == NOT_RUN and not key.startswith("paper"):
            return NOT_RUN
        return write.NONE if row[key] is None else f"{row[key]:.4g}"

    keys = ("paper_alpha_W", "alpha_W", "paper_alpha_W_alpha_h", "alpha_W_alpha_h")
    rows = [
        [
            write.TASKS[row["task"]],
            write.bits(row["bits"]),
            *(text(row, key) for key in keys),
            training(row),
            row["remarks"],
        ]
        for row in data
    ]
    return Table("alphas", grid.TRAINED["alphas"], columns, rows, data)
