"""Text of others (names of files and classes, words of records) where not every character can stand."""

from __future__ import annotations

import re
from typing import Any

MARK = "\N{REPLACEMENT CHARACTER}"
_SURROGATES = re.compile("[\ud800-\udfff]")  # how Python holds the bytes of a file name that is not UTF-8


def readable(text: str) -> str:
    """The text as UTF-8 can hold it, with a mark for every byte that it cannot."""
    return _SURROGATES.sub(MARK, text)


def in_picture(text: Any, length: int = 40) -> str:
    """The text as matplotlib shows it letter by letter: no mathematics, a mark for what the font lacks."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties()))
    shown = str(text)
    if len(shown) > length:
        shown = shown[: length - 1] + "…"
    kept = (c if c.isprintable() and font.get_char_index(ord(c)) else MARK for c in shown)
    return "".join(kept).replace("$", "\\$")
