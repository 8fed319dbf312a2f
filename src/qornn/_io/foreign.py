"""Reading files that others may have written: regular files within limits, or an error in one line."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

LARGEST = 1 << 26  # bytes of a file of text
DEEPEST = 50  # lists and tables within one another
MOST_BITS = 4096  # of a whole number: more digits than these cannot be printed
LONGEST = 200  # characters of a reason


class Unreadable(ValueError):
    """Why a file cannot be read. The caller adds the name of the file and what to do."""


def read_bytes(path: Path, *, largest: int = LARGEST) -> bytes:
    """A regular file's contents: a pipe might never end, and a device has no end."""
    try:
        if path.exists() and not path.is_file():
            raise Unreadable("it is not a regular file")
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > largest:
                raise Unreadable(f"it is larger than {largest} bytes")
            return file.read()
    except (OSError, ValueError) as error:  # ValueError: a name that no system takes
        raise Unreadable(getattr(error, "strerror", None) or reason(error)) from error


def is_there(path: Path) -> bool:
    """Whether there is such a file. False for a name that the system does not allow."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_text(path: Path, *, largest: int = LARGEST) -> str:
    """A regular file's contents as UTF-8."""
    try:
        return read_bytes(path, largest=largest).decode()
    except UnicodeDecodeError as error:
        raise Unreadable(reason(error)) from error


def parse_json(text: str | bytes) -> Any:
    """JSON whose values later code can hold, compare and print."""
    try:
        return _checked(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise Unreadable(reason(error)) from error


def parse_toml(text: str) -> dict[str, Any]:
    """TOML of the same kind."""
    try:
        return dict(_checked(tomllib.loads(text)))
    except (ValueError, RecursionError) as error:
        raise Unreadable(reason(error)) from error


def read_json(path: Path) -> Any:
    """A file of JSON."""
    return parse_json(read_text(path))


def is_number(value: object) -> bool:
    """A float, or an int that a float can hold; a bool is neither."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023
    return whole or isinstance(value, float)


def is_count(value: object, *, most: int = 2**53) -> bool:
    """A whole number of 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def reason(error: Exception) -> str:
    """What an error says, in one short line."""
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _checked(value: Any, depth: int = DEEPEST) -> Any:
    if isinstance(value, dict | list):
        if not depth:
            raise Unreadable(f"it is nested more than {DEEPEST} deep")
        for item in value.values() if isinstance(value, dict) else value:
            _checked(item, depth - 1)
    elif isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise Unreadable(f"it holds a whole number of {value.bit_length()} bits")
    return value
