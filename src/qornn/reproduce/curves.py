"""The paper's learning curves, drawn from the records: one panel per strategy, one line per bit width."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qornn._io.files import write_atomically
from qornn.reporting.plots import FAINT, INK, figure_of, own_style, to_png
from qornn.reproduce import grid
from qornn.reproduce import report_figures as write
from qornn.reproduce.scores import Record

COLOURS = {None: INK, 8: "#3b6fb6", 6: "#2a9d8f", 5: "#e09f3e", 4: "#c8553d", 3: "#8e5ea2", 2: FAINT}
WHAT = {  # column of a record's curve, its axis, whether it is logarithmic
    "copy-curves": (3, "validation cross-entropy", True),
    "pmnist-curves": (4, "accuracy on training batches, %", False),
}


@own_style()
def draw(name: str, records: Sequence[Record], out: Path) -> Path:
    """NAME.png in the folder; networks that were not run are named in their panel."""
    column, axis, logarithmic = WHAT[name]
    by_id = {r["id"]: r for r in records}
    figure, panels = figure_of(2, (10, 4.2))
    figure.suptitle(grid.CURVES[name], fontsize=11)
    for axes, strategy in zip(panels, ("projunn", "bjorck"), strict=True):
        entries = [e for e in grid.of(name) if e.strategy == strategy]
        missing = [write.bits(e.bits) for e in entries if e.id not in by_id]
        for entry in entries:
            if entry.id in by_id:
                _line(axes, by_id[entry.id], entry.bits, column)
        baseline = next((by_id[e.id]["baseline"] for e in entries if e.id in by_id), None)
        if column == 3 and baseline is not None:
            axes.axhline(baseline, color=FAINT, linewidth=0.8, linestyle="--", label="naive")
        title = write.strategy(strategy) + (f" (not run: {', '.join(missing)})" if missing else "")
        axes.set(xlabel="epoch", ylabel=axis, title=title)
        if axes.has_data():
            axes.set_yscale("log" if logarithmic else "linear")
            axes.legend(frameon=False)
    path = out / f"{name}.png"
    write_atomically(path, to_png(figure))
    return path


def _line(axes: Any, record: Record, bits: int | None, column: int) -> None:
    points = [(p[1], p[column]) for p in record["curve"] if len(p) > column and p[column] is not None]
    label = "full precision" if bits is None else f"k = {bits}"
    label += {"whole": "", "cut": ", cut short", "compressed": ", compressed"}[record["schedule"]]
    if points:
        axes.plot(*zip(*points, strict=True), color=COLOURS[bits], linewidth=1.2, label=label)
