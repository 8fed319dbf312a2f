"""Text of others (names of files and classes, words of records) where not every character can stand; and counts."""

from __future__ import annotations

import re

MARK = "\N{REPLACEMENT CHARACTER}"
_SURROGATES = re.compile("[\ud800-\udfff]")  # how Python holds the bytes of a file name that is not UTF-8
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tabs and ends of lines


def readable(text: str) -> str:
    """The text as UTF-8 can hold it, with a mark for every byte that it cannot."""
    return _SURROGATES.sub(MARK, text)


def harmless(text: str) -> str:
    """The text with a mark for every character that a terminal would obey, as when it moves the cursor."""
    return _CONTROLS.sub(MARK, text)


def counted(n: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "channel"), counted(3, "channel")
    ('1 channel', '3 channels')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
