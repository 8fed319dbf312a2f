"""The errors. Every message says what is wrong, what was given, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

# Names that were choices once, and what to say of them.
RETIRED: Final = {
    ("map", "quaternion"): "its runs open with qornn 0.1; 'cycle' takes fewer bytes, less time and narrower states",
    ("layout", "bytes"): "qornn 0.1 was the last to write one byte per weight",
}


class QornnError(Exception):
    """Base of every error raised on purpose; the command line prints it without a traceback."""


class SettingsError(QornnError, ValueError):
    """A value, name or shape given by the caller that cannot be used."""


class DataError(QornnError):
    """A data file that is absent, damaged or not what it should be."""


class CheckpointError(QornnError):
    """A checkpoint that is absent, damaged or of another model."""


class ProgramError(QornnError):
    """An invalid integer program: a range, shape or bound that does not hold, or a damaged file."""


class WriteError(QornnError):
    """A file that could not be written; whatever was there before is still there."""


class DivergenceError(QornnError):
    """Training produced NaN or exploded."""


def unknown(kind: str, name: object, choices: Iterable[str]) -> SettingsError:
    """The error for a name that is not among the choices: lists them and suggests the nearest one."""
    names = sorted(choices)
    if isinstance(name, str) and (kind, name) in RETIRED:
        return SettingsError(f"the {kind} {name!r} is retired: {RETIRED[kind, name]}; choose from {', '.join(names)}")
    near = difflib.get_close_matches(name[:60], names, n=1, cutoff=0.5) if isinstance(name, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return SettingsError(f"unknown {kind} {shown(name)}; choose from {', '.join(names)}.{hint}")


def shown(value: object, *, length: int = 60) -> str:
    """A value of a file as an error says it: short, whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or lists within lists without end
        return f"a huge {type(value).__name__}"
    return text if len(text) <= length else f"{text[:length]}…"
