"""Structured against dense networks: accuracy over bytes and over instructions of an emulated Cortex-M4.

python tools/structured.py --record

Accuracy and bytes are those of the records in results/cells, the best variant of each network; hollow is the paper's
own figure of the dense one, which it trained for longer. A step costs the same whatever the weights, so its
instructions are counted on an untrained network of the same shape.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import qornn
from qornn._io.files import to_json
from qornn.integer.inputs import make_samples
from qornn.recipe import Recipe, from_tables
from qornn.reproduce import records
from qornn.reproduce import report_figures as write
from qornn.structure import MAPS
from qornn.train.build import build_model
from qornn.verify import measure

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "results" / "structured.json"
PICTURES = {"bytes": ROOT / "docs" / "structured-bytes.png", "instructions": ROOT / "docs" / "structured-steps.png"}
TARGET = "cortex-m4"
TASKS = ("smnist", "pmnist")
APART, HIGH = 6, 0.06  # names so many times the bytes, and so much of the height, from one another do not touch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="also renew the record and the pictures")
    options = parser.parse_args()
    found = [point | {"instructions": instructions(point.pop("settings"))} for point in points()]
    print(to_json(found, indent=1))
    if options.record:
        RECORD.write_text(to_json({"target": TARGET, "points": found}, indent=1) + "\n", encoding="utf-8")
        for what, path in PICTURES.items():
            draw(path, what, json.loads(RECORD.read_text(encoding="utf-8"))["points"])


def points() -> list[dict[str, Any]]:
    """One point per network: its best variant's median accuracy over seeds, in 12-bit integers, and its bytes."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records.read_all(ROOT / "results"):
        if (
            record["task"] in TASKS
            and record.get("integer")
            and record["settings"]["model"]["map"] in (*MAPS, "bjorck")
        ):
            groups.setdefault((record["cell"], record["variant"] or ""), []).append(record)
    found = [
        {
            "cell": cell,
            "variant": variant,
            "task": own[0]["task"],
            "map": own[0]["settings"]["model"]["map"],
            "bits": own[0]["bits"],
            "n_h": own[0]["n_h"],
            "value": statistics.median(r["integer"]["value"] for r in own),
            "bytes": own[0]["integer"]["bytes"],
            "paper": own[0]["paper"],
            "settings": own[0]["settings"],
        }
        for (cell, variant), own in sorted(groups.items())
        if own[0]["strategy"] != "ptq"
    ]
    best: dict[str, dict[str, Any]] = {}
    for point in found:
        if point["cell"] not in best or point["value"] > best[point["cell"]]["value"]:
            best[point["cell"]] = point
    return list(best.values())


def instructions(settings: dict[str, Any]) -> int:
    """Of a step: the same network untrained, lowered on noise and exported."""
    recipe: Recipe = from_tables(settings)
    model = build_model(recipe, _Shape())  # type: ignore[arg-type]
    x = torch.rand(4, 50, 1, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        if model.recurrence.b is not None:  # type: ignore[union-attr]
            model.recurrence.b.normal_(generator=torch.Generator().manual_seed(1))  # type: ignore[union-attr]
    program = qornn.lower(model, x, quiet=True, input=make_samples(0, 255, 1 / 255, channels=1))
    with tempfile.TemporaryDirectory() as folder:
        return int(measure(qornn.export.c(program, Path(folder) / "c", name="net"), TARGET)["instructions_per_step"])


class _Shape:
    """A task as far as building a network asks: one pixel per step, ten classes at the end."""

    n_i, n_o, readout = 1, 10, "last"


def draw(path: Path, what: str, found: list[dict[str, Any]]) -> None:
    """Accuracy over bytes or instructions, one panel per task."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(TASKS), sharex=True)
    for axes, task in zip(panels, TASKS, strict=True):
        own = sorted((p for p in found if p["task"] == task), key=lambda p: p[what])
        lines = _lines([(p[what], p["value"]) for p in own])
        for point, line in zip(own, lines, strict=True):
            color = "C0" if point["map"] in MAPS else "C3"
            name = f"{write.strategy(point['map'])} {point['n_h']}, {point['bits']} bits"
            heights = {"full": point["value"]} | ({"none": point["paper"]} if point["paper"] else {})
            for fill, height in heights.items():
                axes.plot(point[what], height, "o", color=color, fillstyle=fill)
            axes.annotate(
                name,
                (point[what], point["value"]),
                xytext=(0, -11 - 9 * line),
                textcoords="offset points",
                fontsize=7,
                ha="center",
                arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.5} if line else None,
            )
        axes.set(title=write.TASKS[task], xscale="log", xlabel=f"{what} a step" if what != "bytes" else "bytes")
        axes.set_xticks([2000, 10_000, 50_000], minor=False)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.3, y=0.15)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("test accuracy in 12-bit integers, %")
    figure.savefig(path, dpi=110)


def _lines(places: list[tuple[float, float]]) -> list[int]:
    """How many lines lower each name stands, so that it covers none before it; places go from left to right."""
    heights = [y for _, y in places]
    step = HIGH * (max(heights) - min(heights)) or 1.0
    taken: list[tuple[float, float]] = []
    lines = []
    for x, y in places:
        free = (n for n in range(9) if all(x > APART * a or abs(y - n * step - b) >= step for a, b in taken))
        lines.append(next(free, 0))
        taken.append((x, y - lines[-1] * step))
    return lines


if __name__ == "__main__":
    main()
