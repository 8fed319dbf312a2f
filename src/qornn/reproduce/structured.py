"""The table beyond the paper: structured recurrences, medians over seeds, beside the paper's own dense network."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from qornn.recipe import STACK
from qornn.reproduce import grid
from qornn.reproduce import report_figures as write
from qornn.reproduce.grid import Entry
from qornn.reproduce.scores import NOT_RUN, Record, Table, figure, of_cell
from qornn.tasks import TASKS

COLUMNS = (
    "task",
    "network",
    "U and V",
    "n_h",
    "bytes",
    "measured",
    "seeds",
    "12-bit integers",
    "8-bit integers",
    "minutes",
    "the paper's dense network",
)


def table(records: Sequence[Record]) -> Table:
    """Every structured network with its records of all seeds."""
    data = [_row(entry, records) for entry in grid.of("structured")]
    return Table("structured", grid.BEYOND["structured"], COLUMNS, [_texts(row) for row in data], data)


def _row(entry: Entry, records: Sequence[Record]) -> dict[str, Any]:
    own = [r for r in of_cell(entry, records) if r["variant"] is None and r["value"] is not None]
    integers = [r["integer"] for r in own if r.get("integer")]
    dense = _dense(entry)
    return {
        "id": entry.id,
        "task": entry.task,
        "strategy": entry.strategy,
        "setting": ", ".join(f"{key} = {value}" for key, value in entry.changed if key != "n_h"),
        "bits": entry.bits,
        "bits_V": entry.recipe.model.bits_V or entry.bits,
        "n_h": _size(entry),
        "metric": TASKS[entry.task].metric_name,
        "measured": [r["value"] for r in own],
        "integer": [i["value"] for i in integers],
        "narrow": [r["narrow"]["value"] for r in own if r.get("narrow")],
        "bytes": integers[0]["bytes"] if integers else None,
        "seconds": min((r["seconds"] for r in own if r["seconds"]), default=None),  # others shared their processor
        "paper": None if dense is None else {"bits": dense.bits, "value": dense.paper, "kB": dense.fact("paper_kB")},
    }


def _dense(entry: Entry) -> Entry | None:
    """The paper's network on the same task at 8 bits, in its first table that has one of the same length."""
    T0 = entry.recipe.task.get("T0")
    same = [
        e
        for e in grid.entries()
        if (e.task, e.strategy, e.bits) == (entry.task, "bjorck", 8) and e.recipe.task.get("T0") == T0
    ]
    return next((e for e in same if e.paper is not None), None)


def _size(entry: Entry) -> str:
    """Units of a layer; a stack has several layers."""
    model = entry.recipe.model
    return f"{model.layers} × {model.width}" if model.kind == STACK else str(model.n_h)


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def _texts(row: dict[str, Any]) -> list[str]:
    metric, paper = row["metric"], row["paper"]

    def middle(values: list[float]) -> str:
        return figure(_median(values), metric) if values else write.NONE

    beside = write.NONE
    if paper is not None:
        size = "" if paper["kB"] is None else f", {paper['kB']} kB"
        beside = f"{figure(paper['value'], metric)} ({paper['bits']} bits{size})"
    name = write.strategy(row["strategy"]) + (f", {row['setting']}" if row["setting"] else "")
    spread = [figure(v, metric) for v in (min(row["measured"]), max(row["measured"]))] if row["measured"] else []
    several = len(row["measured"]) > 1
    return [
        write.TASKS[row["task"]],
        name,
        write.bits(row["bits"]) + ("" if row["bits_V"] == row["bits"] else f", {write.bits(row['bits_V'])}"),
        row["n_h"],
        write.NONE if row["bytes"] is None else str(row["bytes"]),
        middle(row["measured"]) + (f" ({spread[0]} to {spread[1]})" if several else "") if spread else NOT_RUN,
        str(len(row["measured"])) if spread else write.NONE,
        middle(row["integer"]),
        middle(row["narrow"]),
        write.NONE if row["seconds"] is None else f"{row['seconds'] / 60:.1f}",
        beside,
    ]
