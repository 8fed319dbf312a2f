"""The folder that a fit writes: new, empty or its own. Other files are never overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qornn._io.files import reporting, to_json, write_atomically
from qornn._io.folders import is_free
from qornn._io.foreign import Unreadable, read_json
from qornn.errors import SettingsError

RECORD = "fit.json"  # what the folder is of; written with the first finished width
RESULT = "result.json"
MARKER = "made by qornn fit"


def check(out: Path, facts: dict[str, Any] | None = None) -> None:
    """Refuse a place that holds something else, or a fit of other data or settings."""
    if is_free(out):
        return
    held = _held(out)
    if held is None:
        raise SettingsError(f"{out} exists and does not hold a fit; choose another folder, or empty it")
    if facts is None:
        return
    differing = [name for name in sorted({*facts, *held}) if json.loads(to_json(facts.get(name))) != held.get(name)]
    if differing:
        told = "; ".join(f"{name} {_short(held.get(name))}, now {_short(facts.get(name))}" for name in differing)
        raise SettingsError(
            f"{out} holds a fit of other settings or data ({told}); choose another folder, or delete it"
        )


def claim(out: Path, facts: dict[str, Any]) -> None:
    """Mark the folder as one of a fit."""
    write_atomically(out / RECORD, to_json({"marker": MARKER, "facts": facts}, indent=1), own=True)


def open_again(out: Path) -> None:
    """Remove the figures. They are written last, so their presence means that the other files are complete."""
    with reporting(out):
        (out / RESULT).unlink(missing_ok=True)


def _held(out: Path) -> dict[str, Any] | None:
    try:
        record = read_json(out / RECORD)
    except Unreadable:
        return None
    if not isinstance(record, dict) or record.get("marker") != MARKER or not isinstance(record.get("facts"), dict):
        return None
    return dict(record["facts"])


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 20 else f"{text[:12]}…"
