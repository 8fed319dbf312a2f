"""The picture of the README, score against bytes, and the table that gives every point its source.

python tools/overview.py --record

All points of ours come from records; published ones are cited by the paper's recipes or by tools/published.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

sys.path.append(str(Path(__file__).parent))
import published

from qornn.reporting.plots import BLUE, FAINT, INK, RED, clean, own_style
from qornn.reproduce import grid, records
from qornn.reproduce import report_figures as write
from qornn.reproduce.overview import table as overview
from qornn.reproduce.scores import of_cell

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "overview.png"
FEATURES = 9996  # of MiniRocket
OURS, PAPER, PEER = "ours", "the paper's network", "others"
COLOURS = {OURS: RED, PAPER: BLUE, PEER: FAINT}
PANELS = {
    "smnist": "MNIST, one pixel per step",
    "pmnist": "MNIST, permuted pixels",
    "keywords": "12 spoken commands",
    "sets": "18 data sets, mean",
}


class Point(NamedTuple):
    """One network in a panel."""

    panel: str
    network: str
    value: float  # accuracy, percent
    bytes: float
    kind: str
    source: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help=f"renew {PICTURE.relative_to(ROOT)}")
    options = parser.parse_args()
    print(table())
    if options.record:
        FigureCanvasAgg(picture()).print_png(PICTURE, metadata={"Software": None})
        print(PICTURE.relative_to(ROOT))


def points() -> list[Point]:
    """Every point, panel by panel."""
    there = records.read_all(ROOT / "results")
    return [*_mnist("smnist", there), *_mnist("pmnist", there), *_keywords(), *_sets()]


def table() -> str:
    """The points with their sources, in Markdown."""
    lines = [f"| {PANELS[p.panel]} | {p.network} | {p.value:.1f} | {p.bytes:,.0f} | {p.source} |" for p in points()]
    return "\n".join(["| panel | network | accuracy, % | bytes | source |", "| --- | --- | --- | --- | --- |", *lines])


@own_style()
def picture() -> Figure:
    """One panel for each task; up and to the left is better."""
    figure = Figure(figsize=(9, 5.4), layout="constrained", dpi=110, facecolor="white")
    found = points()
    for axes, (panel, title) in zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True):
        clean(axes)
        _draw(axes, [p for p in found if p.panel == panel])
        axes.set_title(title, fontsize=10.5)
    for axes in figure.axes[::2]:
        axes.set_ylabel("accuracy, %")
    handles = [figure.axes[0].scatter([], [], s=38, color=COLOURS[kind], label=kind) for kind in COLOURS]
    handles.append(figure.axes[0].scatter([], [], s=38, color="white", edgecolors=INK, label="hollow: as published"))
    figure.legend(handles=handles, frameon=False, fontsize=9, loc="outside lower center", ncols=4)
    return figure


def _draw(axes: Any, own: list[Point]) -> None:
    """The points with their names; one that is far below the others stands on the edge with its figure."""
    top, middle = max(p.value for p in own), median(p.value for p in own)
    floor = min(p.value for p in own if p.value > top - max(20, 3 * (top - middle)))
    margin = 0.15 * (top - floor)
    low = floor - 2 * margin if any(p.value < floor for p in own) else floor - margin
    axes.set_ylim(low, top + margin)
    axes.set_xscale("log")
    sizes = [p.bytes for p in own]
    axes.set_xlim(min(sizes) / 2, max(sizes) * 10)
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if max(sizes) > 100 * min(sizes) else (1, 3)))
    axes.xaxis.set_major_formatter(FuncFormatter(_kilobytes))
    axes.xaxis.set_minor_locator(NullLocator())
    placed: list[tuple[float, float]] = []
    for p in sorted(own, key=lambda p: -p.value):
        below = p.value < floor
        value = low if below else p.value
        face = "white" if p.source.startswith("published") else COLOURS[p.kind]
        style = {"color": face, "edgecolors": COLOURS[p.kind], "linewidths": 1.4, "zorder": 3, "clip_on": False}
        axes.scatter(p.bytes, value, s=38, marker="v" if below else "o", **style)
        height = value
        while any(abs(height - h) < 0.075 * (top - low) and b / 20 < p.bytes < b * 20 for b, h in placed):
            height -= 0.01 * (top - low)
        placed.append((p.bytes, height))
        name = f"{p.network}: {p.value:.1f}" if below else p.network
        offset = (8, 3 if below else -3)
        axes.annotate(name, (p.bytes, height), textcoords="offset points", xytext=offset, fontsize=8, color=INK)


def _mnist(task: str, there: list[dict[str, Any]]) -> list[Point]:
    """What the paper publishes and cites on its task, and what was trained here."""
    found = []
    for entry in grid.of("performance"):
        size, own = entry.fact("paper_kB"), entry.strategy == "bjorck"
        if entry.task != task or not isinstance(entry.paper, float) or size is None:
            continue
        if own and entry.bits == 8:
            source = "published, the QORNN paper"
            found.append(Point(task, "QORNN, 8 bits", entry.paper, 1024 * size, PAPER, source))
        elif (cited := entry.fact("cited")) is not None:
            name = write.strategy(entry.strategy).removeprefix("STE-")
            name += ", float" if entry.bits is None else f", {entry.bits} bits"
            found.append(
                Point(task, name, entry.paper, 1024 * size, PEER, f"published, {cited}, cited by the QORNN paper")
            )
    row = next(r for r in overview(there).data if r["task"] == task)
    if row["value"] is not None:
        name, source = "QORNN, 8 bits, trained here", f"measured, results/cells/{task}-bjorck-k8*.json"
        found.append(Point(task, name, row["value"], row["bytes"], PAPER, source))
    return found + _beyond(task, there, row["best"]["id"])


def _beyond(task: str, there: list[dict[str, Any]], best: str) -> list[Point]:
    """HadamRNN's configuration, trained here, and the best network beyond the paper."""
    found = []
    for entry in grid.of("structured"):
        own = [r for r in of_cell(entry, there) if r["variant"] is None and r.get("integer")]
        if entry.id in (f"{task}-hadamard-k4", best) and own:
            size = entry.recipe.model.n_h if entry.strategy != "stack" else ""
            name = f"{write.strategy(entry.strategy)} {size}".strip()
            name += ", as in HadamRNN" if entry.id == f"{task}-hadamard-k4" else ""
            value = median(r["integer"]["value"] for r in own)
            source = f"measured, results/cells/{entry.id}*.json"
            found.append(Point(task, name, value, own[0]["integer"]["bytes"], OURS, source))
    return found


def _keywords() -> list[Point]:
    found = []
    for name, seen in _record("keywords.json").items():
        if name in ("small", "large"):
            size = max(run["bytes"] for run in seen["runs"])
            found.append(
                Point("keywords", f"stack, {name}", seen["accuracy"], size, OURS, "measured, results/keywords.json")
            )
    peers = [p for p in published.KEYWORDS if p.score is not None and p.source]
    return found + [Point("keywords", p.network, p.score, p.bytes, PEER, f"published, {p.source}") for p in peers]


def _sets() -> list[Point]:
    """Means over all sets that have an accuracy, cross-validated on their training parts."""
    sets = [
        s for s in _record("defaults.json")["sets"].values() if all(m in s for m in ("stack", "single", "minirocket"))
    ]
    names = {
        "stack": ("stack, the default", OURS),
        "single": ("single layer", PAPER),
        "minirocket": ("MiniRocket", PEER),
        "nearest": ("nearest neighbour", PEER),
    }
    source = "measured, results/defaults.json"
    return [
        Point("sets", name, fmean(s[key]["accuracy"] for s in sets), fmean(_bytes(s, key) for s in sets), kind, source)
        for key, (name, kind) in names.items()
    ]


def _bytes(seen: dict[str, Any], method: str) -> float:
    """Bytes to keep; of other methods in float32.

    MiniRocket keeps a bias for each feature and its weights, one per class or one for two classes. The nearest
    neighbour keeps the training data.
    """
    if method == "minirocket":
        rows = seen["classes"] if seen["classes"] > 2 else 1
        return 4.0 * (FEATURES * (1 + rows) + rows)
    if method == "nearest":
        return 4.0 * seen["sequences"] * seen["samples"] * seen["channels"]
    return float(seen[method]["bytes"])


def _kilobytes(value: float, position: int) -> str:
    return f"{value / 1000:g} kB" if value < 1e6 else f"{value / 1e6:g} MB"


def _record(name: str) -> Any:
    return json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
