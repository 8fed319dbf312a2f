"""The pictures of a fit's report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from qornn.fit.width import Width
from qornn.reporting.plots import BLUE, COLOURS, DASHED, FAINT, INK, clean, in_picture, own_style, to_png

NUMBERED = 16  # classes up to which the squares of a confusion matrix carry their counts
NAMED = 40  # classes up to which its sides carry names


@own_style()
def curves_png(widths: Sequence[Width], loss: str) -> bytes:
    """The losses by epoch: held-out full, training faint."""
    figure, axes = _figure((7.2, 3.8))
    for width in widths:
        colour = COLOURS.get(width.bits, FAINT)
        epochs = [epoch["epoch"] for epoch in width.history]
        training = [epoch["loss"] for epoch in width.history]
        watched = [epoch["validation"] for epoch in width.history if "validation" in epoch]
        held = len(watched) == len(epochs)
        axes.plot(epochs, training, color=colour, linewidth=0.9 if held else 1.7, alpha=0.45 if held else 1)
        if held:
            axes.plot(epochs, watched, color=colour, linewidth=1.7)
        axes.plot([], [], color=colour, linewidth=1.7, label=f"{width.bits} bits")
    axes.set(xlabel="epoch", ylabel=loss, yscale="log")  # one bad epoch would squeeze a linear scale flat
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False)
    return to_png(figure)


@own_style()
def bits_png(widths: Sequence[Width], chosen: int, *, metric: str, baseline: float, choice: str) -> bytes:
    """The score against the bits, on the test data and on the data that chose the width."""
    figure, axes = _figure((6.4, 3.8))
    bits = [width.bits for width in widths]
    axes.plot(bits, [width.choice for width in widths], "o--", color=FAINT, markerfacecolor="white", label=choice)
    axes.plot(bits, [width.value for width in widths], "o-", color=BLUE, label="test")
    best = next(width for width in widths if width.bits == chosen)
    axes.plot([best.bits], [best.value], "o", color=BLUE, markersize=11, fillstyle="none", markeredgewidth=1.5)
    axes.axhline(baseline, **DASHED)
    axes.annotate(
        "naive baseline",
        (1, baseline),
        (-2, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        color=FAINT,
        fontsize=8.5,
    )
    axes.set(xlabel="bits of the weights", ylabel=metric, xticks=bits)
    axes.margins(x=0.1)
    axes.legend(frameon=False)
    return to_png(figure)


@own_style()
def confusion_png(table: Sequence[Sequence[float]], rows: Sequence[Any], columns: Sequence[Any]) -> bytes:
    """True classes down, answers across; shade is the share of the true class."""
    counts = np.asarray(table, np.float64)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = min(max(3.2, 0.5 * len(rows) + 1.6), 9.0)
    figure = Figure(figsize=(side + 0.6, side), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    if len(rows) <= NUMBERED:
        for (r, c), count in np.ndenumerate(counts):
            colour = "white" if shares[r, c] > 0.6 else INK
            axes.text(c, r, f"{count:.0f}", ha="center", va="center", color=colour, fontsize=8.5)
    if len(rows) <= NAMED:
        axes.set_yticks(range(len(rows)), [in_picture(label, 12) for label in rows])
        axes.set_xticks(
            range(len(columns)), [in_picture(label, 12) for label in columns], rotation=45 if len(rows) > 6 else 0
        )
    axes.set(xlabel="answer", ylabel="truth")
    return to_png(figure)


@own_style()
def latency_png(samples: np.ndarray, sequences: int) -> bytes:
    """The share of all streamed sequences whose answer is right and final, against samples seen."""
    figure, axes = _figure((6.4, 3.2))
    seen = np.sort(samples)
    share = 100 * np.arange(len(seen) + 1) / max(sequences, 1)
    axes.step([0, *seen.tolist()], share, where="post", color=BLUE)
    axes.set(xlabel="samples seen", ylabel="right and final, %", ylim=(0, 102))
    axes.set_xlim(left=0)
    return to_png(figure)


@own_style()
def values_png(table: Sequence[Sequence[float]]) -> bytes:
    """Answers against true values, with the line on which they agree."""
    figure, axes = _figure((5.0, 4.4))
    truth, answers = np.asarray(table, np.float64).T
    low, high = min(truth.min(), answers.min()), max(truth.max(), answers.max())
    axes.plot([low, high], [low, high], **DASHED)
    axes.plot(truth, answers, ".", color=BLUE, markersize=4, alpha=0.6)
    axes.set(xlabel="truth", ylabel="answer")
    return to_png(figure)


def _figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    clean(axes)
    return figure, axes
