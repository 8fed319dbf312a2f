"""Text of others (names of files and classes, words of records) where not every character can stand."""

from __future__ import annotations

import re

MARK = "\N{REPLACEMENT CHARACTER}"
_SURROGATES = re.compile("[\ud800-\udfff]")  # how Python holds the bytes of a file name that is not UTF-8


def readable(text: str) -> str:
    """The text as UTF-8 can hold it, with a mark for every byte that it cannot."""
    return _SURROGATES.sub(MARK, text)
