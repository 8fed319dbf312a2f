"""Files of the page, and of its WebAssembly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files


def text(name: str) -> str:
    """A template as it is."""
    return (files(__name__) / name).read_text(encoding="utf-8")


def fill(name: str, words: Mapping[str, object]) -> str:
    """A template with its @words@ put in."""
    return re.sub(r"@(\w+)@", lambda match: str(words[match[1]]), text(name))
