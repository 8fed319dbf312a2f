"""The pictures of a report: learning curves, and score against bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from qornn.reporting.plots import COLOURS, DASHED, FAINT, INK, clean, note, own_style, to_png
from qornn.reproduce.report_figures import METRICS

MARKERS = {"bjorck": "o", "projunn": "s", "ptq": "^", "penalty": "v"}
ACCURACIES = (10, 50, 80, 90, 93, 95, 97, 98, 99, 99.9)


@dataclass(frozen=True, slots=True)
class Curve:
    """The learning curve of one run; `title` says in which panel it stands."""

    title: str
    label: str
    bits: int | None
    style: str  # of the line
    baseline: float | None
    loss: tuple[tuple[float, float], ...]  # (step, training loss), where it has the metric's unit
    validation: tuple[tuple[float, float], ...]  # (step, metric)


@dataclass(frozen=True, slots=True)
class Point:
    """One network on the picture of bytes; value None: not converged."""

    strategy: str
    n_h: int
    bits: int | None
    bytes: float
    value: float | None
    source: str  # "paper", "measured", "variant" or "integer"


@own_style()
def curves_png(curves: Sequence[Curve], *, metric: str, log: bool) -> bytes:
    """One panel per title, side by side on one scale."""
    titles = list(dict.fromkeys(curve.title for curve in curves))
    columns = 2 if len(titles) == 4 else min(len(titles), 3)
    rows = -(-len(titles) // columns)
    figure = Figure(figsize=(max(6.4, 3.9 * columns), 3.7 * rows), layout="constrained", facecolor="white")
    first: Axes | None = None
    for i, title in enumerate(titles):
        axes = figure.add_subplot(rows, columns, i + 1, sharey=first)
        first = first or axes
        clean(axes)
        if log:
            axes.set_yscale("log")
        if metric == METRICS["accuracy"]:
            axes.set_ylim(0, 100)
        # Losses fall and accuracies rise: the one leaves the lower left corner free, the other the lower right.
        _draw_curves(axes, [curve for curve in curves if curve.title == title])
        place: dict[str, Any] = {"loc": "lower left"} if log else {}
        if metric == METRICS["accuracy"]:
            place = {"loc": "lower right", "bbox_to_anchor": (1, 0.11)}  # above the baseline
        axes.legend(frameon=False, fontsize=8.5, **place)
        axes.set_title(title, fontsize=11)
        if i % columns == 0:
            axes.set_ylabel(metric)
        if i >= len(titles) - columns:
            axes.set_xlabel("training step")
    assert first is not None
    if log:
        # A start that explodes is no reason to squeeze the rest.
        highest = 30 * max((curve.baseline or 0 for curve in curves), default=0)
        if 0 < highest < first.get_ylim()[1]:
            first.set_ylim(top=highest)
        _decades(first)
    return to_png(figure)


def _draw_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    for curve in curves:
        colour, style, label = COLOURS.get(curve.bits, FAINT), curve.style, curve.label
        if curve.validation:
            if curve.loss:
                axes.plot(*_xy(curve.loss), color=colour, linewidth=0.7, alpha=0.35)
            axes.plot(
                *_xy(curve.validation), style, color=colour, linewidth=1.7, marker="o", markersize=2.6, label=label
            )
        elif curve.loss:
            axes.plot(*_xy(curve.loss), style, color=colour, linewidth=1.2, label=label)
    for baseline in sorted({curve.baseline for curve in curves if curve.baseline is not None}):
        axes.axhline(baseline, **DASHED, label="naive baseline")
    axes.set_xlim(left=0)


@own_style()
def bytes_png(panels: Mapping[str, tuple[Sequence[Point], float]]) -> bytes:
    """By task its points and naive baseline: paper hollow, measured full, both against the paper's size in bytes."""
    figure = Figure(figsize=(11, 5), layout="constrained", facecolor="white")
    for i, (task, (points, baseline)) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), i + 1)
        clean(axes)
        accuracy = task != "copy"
        _draw_points(axes, points, (lambda v: 100 - v) if accuracy else (lambda v: v), baseline)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title("pMNIST: accuracy" if accuracy else "copy, $T_0$ = 1000: cross-entropy", fontsize=11)
        axes.set_xlabel("size by the paper's formula, bytes")
        _byte_ticks(axes)
        if accuracy:
            _accuracy_ticks(axes)
        else:
            axes.invert_yaxis()  # better is up in both panels
            _decades(axes)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return to_png(figure)


def _draw_points(axes: Axes, points: Sequence[Point], scale: Callable[[float], float], baseline: float) -> None:
    floor = scale(baseline)
    axes.axhline(floor, **DASHED)
    axes.annotate(
        "naive baseline",
        (0, floor),
        (3, -4),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="top",
        color=FAINT,
        fontsize=8.5,
    )
    lines: dict[tuple[str, int], list[Point]] = {}
    for point in points:
        if point.source == "paper":
            lines.setdefault((point.strategy, point.n_h), []).append(point)
    for (strategy, _), line in lines.items():
        line.sort(key=lambda p: p.bytes)
        at = [(p.bytes, floor if p.value is None else scale(p.value)) for p in line]
        if strategy in MARKERS:
            axes.plot(*_xy(at), color="#bdbdbd", linewidth=0.9, zorder=2)
        for p, (x, y) in zip(line, at, strict=True):
            _mark(axes, p, x, y)
            if strategy == "bjorck":
                note(axes, "FP" if p.bits is None else f"{p.bits}", (x, y), (0, 6), ha="center")
    for p in points:
        if p.source != "paper":
            _mark(axes, p, p.bytes, floor if p.value is None else scale(p.value))


def _mark(axes: Axes, point: Point, x: float, y: float) -> None:
    colour = COLOURS.get(point.bits, FAINT)
    face = "white" if point.source == "paper" else colour
    shape = "D" if point.source == "integer" else MARKERS.get(point.strategy, "P")
    size = {"paper": 6.0, "measured": 7.5, "variant": 7.5, "integer": 4.0}[point.source]
    edge = "white" if point.source == "integer" else colour
    axes.plot(
        [x],
        [y],
        shape,
        color=colour,
        markerfacecolor=face,
        markeredgecolor=edge,
        markeredgewidth=0.8 if point.source == "integer" else 1.3,
        markersize=size,
        fillstyle="bottom" if point.source == "variant" else "full",
        zorder={"paper": 3, "measured": 4, "variant": 4, "integer": 5}[point.source],
    )


def _legend() -> list[Line2D]:
    def handle(marker: str, face: str, label: str, **options: Any) -> Line2D:
        options = {"color": INK, "markersize": 6.5, **options}
        return Line2D([], [], marker=marker, linestyle="", markerfacecolor=face, label=label, **options)

    grey: dict[str, Any] = {"color": "#bdbdbd"}
    return [  # columns of two: where a figure comes from, and below it what network it is of
        handle("o", "white", "paper"),
        handle("o", "#bdbdbd", "STE-Björck", **grey),
        handle("o", INK, "measured"),
        handle("s", "#bdbdbd", "STE-projUNN", **grey),
        handle("o", INK, "measured, a variant", fillstyle="bottom"),
        handle("^", "#bdbdbd", "PTQ", **grey),
        handle("D", INK, "measured, 12-bit integers", markersize=4.5),
        handle("v", "#bdbdbd", "STE-pen", **grey),
        handle("", "white", ""),
        handle("P", "#bdbdbd", "LSTM, FastRNN, FastGRNN", **grey),
    ]


def _xy(points: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    pairs = list(points)
    return [x for x, _ in pairs], [y for _, y in pairs]


def _decades(axes: Axes) -> None:
    """At most about eight labelled decades."""
    low, high = sorted(axes.get_ylim())
    each = max(1, math.ceil(math.log10(high / low) / 8))
    axes.yaxis.set_major_locator(LogLocator(base=10.0**each))
    axes.yaxis.set_minor_locator(NullLocator())


def _byte_ticks(axes: Axes) -> None:
    low, high = axes.get_xlim()
    kB = [k for k in (5, 10, 20, 30, 50, 100, 200, 500, 1000, 2000, 5000) if low <= 1024 * k <= high]
    axes.xaxis.set_major_locator(FixedLocator([1024 * k for k in kB]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1024:.0f} kB"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_locator(NullLocator())


def _accuracy_ticks(axes: Axes) -> None:
    """The axis is the logarithm of the error, which tells 94 from 95; its labels are accuracies."""
    axes.invert_yaxis()
    high, low = axes.get_ylim()
    shown = [a for a in ACCURACIES if low <= 100 - a <= high]
    axes.yaxis.set_major_locator(FixedLocator([100 - a for a in shown]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda e, _: f"{100 - e:g} %"))
    axes.yaxis.set_minor_locator(NullLocator())
