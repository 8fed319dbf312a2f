"""The picture of a demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qornn._io.files import write_atomically


def draw(
    colors: dict[str, str],
    rows: dict[str, dict[str, Any]],
    curves: dict[str, list[tuple[float, float]]],
    path: Path,
) -> None:
    """Accuracy over the training, and what it costs in bytes."""
    from io import BytesIO

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    for title, color in colors.items():
        epochs, values = zip(*curves[title], strict=True)
        left.plot([epoch / epochs[-1] for epoch in epochs], values, color=color, label=title)
        row, wrapped = rows[title], title.replace(", ", ",\n")
        right.barh(wrapped, row["true_bytes"] / 1024, color=color)
        right.text(row["true_bytes"] / 1024, wrapped, f" {row['value']:.1f} %", va="center")
    right.invert_yaxis()
    left.axhline(10, color="black", linestyle=":", linewidth=1, label="guessing")
    left.set(xlabel="share of the training", ylabel="validation accuracy (%)", ylim=(0, 100))
    left.set_title("Digits, read pixel by pixel")
    left.legend(frameon=False, loc="lower right", fontsize=8)
    right.set(xlabel="kB to store", title="Size and test accuracy")
    right.tick_params(axis="y", labelsize=8)
    right.margins(x=0.3)
    right.spines[["top", "right"]].set_visible(False)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=120, format="png")
    write_atomically(path, drawn.getvalue(), own=True)
