"""The pictures of the instability page, drawn from its numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from qornn.reporting.plots import BLUE, FAINT, INK, RED, figure_of, note, own_style, to_png

BITS = {"fp": INK, "8": "#3b6fb6", "5": "#e09f3e", "4": "#c8553d"}
PANELS = {
    "identity": "linear: $W_q$ alone",
    "modrelu": "modReLU",
    "relu": "ReLU: half the units are off at each step",
}


@own_style()
def draw(numbers: dict[str, Any]) -> dict[str, bytes]:
    """PNG files by name."""
    return {
        "instability-powers.png": to_png(_powers(numbers)),
        "instability-singular-values.png": to_png(_singular_values(numbers)),
        "instability-bounds.png": to_png(_bounds(numbers)),
        "gradient-norms.png": to_png(_gradients(numbers)),
    }


def _powers(numbers: dict[str, Any]) -> Figure:
    ks, powers = numbers["settings"]["ks"], numbers["settings"]["powers"]
    figure, (axes,) = figure_of(1, (6.4, 4.4))
    shades = _shades(len(powers))
    for T, shade in zip(powers, shades, strict=True):
        errors = [numbers["powers"][str(k)][str(T)] for k in ks]
        axes.plot(ks, errors, "o-", color=shade, markersize=5, label=f"T = {T}")
    axes.axhline(1, color=FAINT, linewidth=0.8, linestyle="--")
    note(axes, "error as large as $W^T$ itself", (ks[-1], 1), (0, 4), ha="right")
    axes.legend(frameon=False, reverse=True)
    axes.set(yscale="log", xlabel="bits k", xticks=ks, ylabel="$\\|W^T - q_k(W)^T\\|_F\\ /\\ \\|W^T\\|_F$")
    axes.set_title(f"Error of the powers, one random orthogonal W, n = {numbers['settings']['n']}")
    return figure


def _singular_values(numbers: dict[str, Any]) -> Figure:
    ks = numbers["settings"]["ks"]
    figure, (axes,) = figure_of(1, (6.4, 4.4))
    line = {"color": INK, "linewidth": 1}
    axes.boxplot(
        [numbers["singular_values"][str(k)]["ratio"] for k in ks],
        positions=ks,
        widths=0.55,
        patch_artist=True,
        boxprops={"facecolor": "#c9d8ee", "edgecolor": INK, "linewidth": 1},
        medianprops={"color": RED, "linewidth": 1.6},
        whiskerprops=line,
        capprops=line,
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": FAINT},
    )
    axes.axhline(1, color=FAINT, linewidth=0.8, linestyle="--")
    note(axes, "orthogonal", (ks[0] - 0.5, 1), (2, -4), va="top")
    axes.set(xlabel="bits k", xticks=ks, ylabel="$\\sigma_{\\min}(W_q)\\ /\\ \\sigma_{\\max}(W_q)$", ylim=(0, 1.04))
    axes.set_title(f"{numbers['settings']['matrices']} random orthogonal matrices, n = {numbers['settings']['n']}")
    return figure


def _bounds(numbers: dict[str, Any]) -> Figure:
    ks, n = numbers["settings"]["ks"], numbers["settings"]["n"]
    values = [numbers["singular_values"][str(k)] for k in ks]
    figure, (left, right) = figure_of(2, (10, 4.2))
    figure.suptitle(f"Bounds and measurements, n = {n}", fontsize=11)
    left.plot(ks, [v["bound"]["discrepancy"] for v in values], "s--", color=RED, label="the paper's bound")
    _measured(left, ks, values, "discrepancy", BLUE, "measured, median and range")
    left.axhline(n**0.5, color=FAINT, linewidth=0.8, linestyle=":")
    note(left, "what $W_q = 0$ would give", (ks[0] + 0.35, n**0.5), (0, 4))
    left.set(yscale="log", xlabel="bits k", xticks=ks, title="$\\|W_q W_q^\\prime - I\\|_F$")
    left.legend(frameon=False)
    right.plot(ks, [v["bound"]["sigma_max"] for v in values], "s--", color=RED, label="the paper's bounds")
    right.plot(ks, [v["bound"]["sigma_min"] for v in values], "s--", color=RED)
    _measured(right, ks, values, "sigma_max", BLUE, "$\\sigma_{\\max}$ measured")
    _measured(right, ks, values, "sigma_min", "#2a9d8f", "$\\sigma_{\\min}$ measured")
    lowest = min(v["bound"]["sigma_min"] for v in values)
    highest = max(v["bound"]["sigma_max"] for v in values)
    if lowest < 0:
        right.axhspan(min(2 * lowest, -1), 0, color="#eeeeee", zorder=0)
        note(right, "a bound below 0 says nothing", (ks[-1], 1.5 * lowest), (0, 0), ha="right", va="center")
    right.set_yscale("symlog", linthresh=2)
    right.set(xlabel="bits k", xticks=ks, title="singular values of $W_q$", ylim=(min(2 * lowest, -0.2), 8 * highest))
    right.legend(frameon=False)
    return figure


def _gradients(numbers: dict[str, Any]) -> Figure:
    curves, settings = numbers["gradients"], numbers["settings"]
    figure, panels = figure_of(len(curves), (4 * len(curves), 4.2))
    for axes, (activation, by_bits) in zip(panels, curves.items(), strict=True):
        for bits, curve in by_bits.items():
            t = range(1, len(curve["median"]) + 1)
            full = bits == "fp"  # dashed and on top: k = 8 all but hides it
            style = {"linestyle": "--", "zorder": 3, "label": "full precision"} if full else {"label": f"k = {bits}"}
            axes.plot(t, curve["median"], color=BITS[bits], **style)
            axes.fill_between(t, curve["low"], curve["high"], color=BITS[bits], alpha=0.18, linewidth=0)
        axes.set(yscale="log", xlabel="time step t", title=PANELS[activation])
        _few_decades(axes)
    panels[0].set_ylabel("$\\|\\partial L\\,/\\,\\partial h_t\\|$")
    panels[0].legend(frameon=False)
    figure.suptitle(
        f"The gradient on its way back from t = {settings['T']}, untrained, $n_h$ = {settings['n_h']}", fontsize=11
    )
    return figure


def _few_decades(axes: Axes) -> None:
    """About six ticks on a logarithmic axis, at round exponents however far it reaches."""
    low, high = axes.get_ylim()
    decades = math.log10(high / low) / 6
    decades = 5 * round(decades / 5) if decades > 5 else max(1, round(decades))
    axes.yaxis.set_major_locator(LogLocator(base=10.0**decades))
    axes.yaxis.set_minor_locator(NullLocator())


def _measured(axes: Axes, ks: Sequence[int], values: list[dict[str, Any]], name: str, color: str, label: str) -> None:
    """The median, with a bar from the smallest to the largest."""
    rows = [v["measured"][name] for v in values]
    middle = [row["median"] for row in rows]
    reach = [[row["median"] - row["min"] for row in rows], [row["max"] - row["median"] for row in rows]]
    axes.errorbar(ks, middle, yerr=reach, fmt="o-", color=color, capsize=3, markersize=5, label=label)


def _shades(count: int) -> list[tuple[float, ...]]:
    """From light to dark blue."""
    return [tuple(colormaps["Blues"](0.4 + 0.6 * i / max(count - 1, 1))) for i in range(count)]
