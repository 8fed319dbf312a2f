"""One table for the whole paper: its network as published, the same trained here, and our best network."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from qornn.reproduce import grid
from qornn.reproduce import report_figures as write
from qornn.reproduce.grid import Entry
from qornn.reproduce.scores import NOT_RUN, Record, Table, figure, of_cell
from qornn.tasks import TASKS

COLUMNS = (
    "task",
    "metric",
    "the paper, 8 bits",
    "kB",
    "trained here, 12-bit integers",
    "of the paper's training",
    "bytes",
    "our best network, integers",
    "bytes",
    "minutes",
    "which",
)
SHOWN = ("copy", "adding", "smnist", "pmnist", "ptb")


def table(records: Sequence[Record]) -> Table:
    """A row for each task of the paper."""
    data = [_row(_dense(task), records) for task in SHOWN]
    return Table("overview", grid.OVERVIEW["overview"], COLUMNS, [_texts(row) for row in data], data)


def verdict(records: Sequence[Record]) -> str:
    """How many cells of the paper were run, and how many are at its figure or better.

    Of an ablation a better score is no success.
    """
    run = reached = own = missing = 0
    for entry in grid.entries():
        if not isinstance(entry.paper, int | float) or entry.tables == ["ablation"]:
            continue
        there = [r for r in of_cell(entry, records) if r["value"] is not None]
        good = [r for r in there if better(entry.task, [r["value"], entry.paper]) == r["value"]]
        run += bool(there)
        missing += not there
        reached += bool(good)
        own += any(r["variant"] is None for r in good)
    return (
        f"{reached} of the {run} cells run are at the paper's figure or better, {own} of them with the paper's own "
        f"settings; {missing} were not run (ablations are not counted)"
    )


def better(task: str, values: Iterable[float]) -> float:
    """The best of these figures of a task."""
    return max(values) if TASKS[task].higher_is_better else min(values)


def _dense(task: str) -> Entry:
    """The paper's own network: STE-Björck with 8 bits."""
    return next(
        e for e in grid.entries() if (e.task, e.strategy, e.bits) == (task, "bjorck", 8) and e.paper is not None
    )


def _row(entry: Entry, records: Sequence[Record]) -> dict[str, Any]:
    own = [r for r in of_cell(entry, records) if r.get("integer")]
    here = min(own, key=lambda r: _rank(entry.task, _integers(r)), default=None)
    return {
        "task": entry.task,
        "metric": TASKS[entry.task].metric_name,
        "paper": entry.paper,
        "kB": entry.fact("paper_kB"),
        "value": here and _integers(here),
        "bytes": here and here["integer"]["bytes"],
        "fraction": here and here["fraction"],
        "variant": here and here["variant"],
        "best": _best(entry, records),
    }


def _integers(record: Record) -> float:
    """The figure in integers; where the readout was trained again on integer states, of that network."""
    integer = record["integer"]
    refitted = integer.get("refit")
    return float((refitted if isinstance(refitted, dict) else integer)["value"])


def _best(dense: Entry, records: Sequence[Record]) -> dict[str, Any] | None:
    """The best median in integers of the networks beyond the paper, on the paper's length of the task."""
    T0 = dense.recipe.task.get("T0")
    found = []
    for entry in grid.of("structured"):
        own = [r for r in of_cell(entry, records) if r["variant"] is None and r.get("integer")]
        if entry.task == dense.task and entry.recipe.task.get("T0") == T0 and own:
            median = statistics.median(r["integer"]["value"] for r in own)
            minutes = min(r["seconds"] for r in own) / 60  # others shared their processor
            own_facts = {"bytes": own[0]["integer"]["bytes"], "minutes": minutes, "seeds": len(own)}
            found.append({"id": entry.id, "strategy": entry.strategy, "value": median} | own_facts)
    return min(found, key=lambda row: _rank(dense.task, row["value"]), default=None)


def _rank(task: str, value: float) -> float:
    return -value if TASKS[task].higher_is_better else value


def _texts(row: dict[str, Any]) -> list[str]:
    metric, best = row["metric"], row["best"]
    ours = [NOT_RUN, write.NONE, write.NONE, write.NONE]
    if best is not None:
        seeds = "" if best["seeds"] == 1 else f", median of {best['seeds']} seeds"
        ours = [figure(best["value"], metric), f"{best['bytes']:,}", f"{best['minutes']:.1f}"]
        ours.append(write.strategy(best["strategy"]) + seeds)
    return [
        write.TASKS[row["task"]],
        metric,
        figure(row["paper"], metric),
        write.NONE if row["kB"] is None else str(row["kB"]),
        NOT_RUN if row["value"] is None else figure(row["value"], metric),
        write.NONE
        if row["value"] is None
        else write.percent(row["fraction"]) + (", other settings" * bool(row["variant"])),
        write.NONE if row["bytes"] is None else f"{row['bytes']:,}",
        *ours,
    ]
