"""Pictures that are the same everywhere: whatever names stand in them, whatever the user's matplotlib is set to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from qornn._io.text import MARK


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
