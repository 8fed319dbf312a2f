"""Pictures that look the same everywhere, whatever names they contain and whatever matplotlib is set to."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from qornn._io.text import MARK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
FAINT = "#8a8a8a"
BLUE, RED = "#3b6fb6", "#c8553d"
COLOURS: dict[int | None, str] = {
    None: INK,
    8: "#3b6fb6",
    6: "#2a9d8f",
    5: "#e09f3e",
    4: "#c8553d",
    3: "#8e5ea2",
    2: "#7a5c45",
}  # by the bits of the weights
DASHED: dict[str, Any] = {"color": FAINT, "linewidth": 0.9, "linestyle": (0, (4, 3)), "zorder": 1}


@contextmanager
def own_style() -> Iterator[None]:
    """matplotlib's own settings: a matplotlibrc that asks for LaTeX would end a training at its first plot."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


def in_picture(text: Any, length: int = 40) -> str:
    """The text as matplotlib shows it letter by letter: no mathematics, a mark for what the font lacks."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties()))
    shown = str(text)
    if len(shown) > length:
        shown = shown[: length - 1] + "…"
    kept = (c if c.isprintable() and font.get_char_index(ord(c)) else MARK for c in shown)
    return "".join(kept).replace("$", "\\$")


def figure_of(panels: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """A figure of its own, outside pyplot's global state, with its panels side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = [figure.add_subplot(1, panels, i + 1) for i in range(panels)]
    for each in axes:
        clean(each)
        each.title.set_fontsize(11)
    return figure, axes


def clean(axes: Axes) -> None:
    """A panel without a box, with faint lines across."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)


def note(axes: Axes, text: str, at: tuple[float, float], shift: tuple[int, int], **alignment: Any) -> None:
    """A few faint words beside a point."""
    axes.annotate(text, at, shift, textcoords="offset points", color=FAINT, fontsize=9, **alignment)


def to_png(figure: Figure) -> bytes:
    """The picture as a file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    memory = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(memory, format="png", dpi=150, metadata={"Software": None})
    return memory.getvalue()
