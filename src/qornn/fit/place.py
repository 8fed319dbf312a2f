"""The folder that a fit writes: its own, or none's; never over something else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from qornn.errors import SettingsError
from qornn.files import to_json, write_atomically

RECORD = "fit.json"  # what the folder is of; written with the first finished width
MARKER = "made by qornn fit"


def check(out: Path, facts: dict[str, Any] | None = None) -> None:
    """Refuse a place that holds something else, or a fit of other data or settings."""
    if not out.exists() and not out.is_symlink():
        _check_parent(out)
        return
    if not out.is_dir():
        raise SettingsError(f"{out} is a file; -o names a folder: choose another place")
    _check_writable(out, out)
    if not any(out.iterdir()):
        return
    held = _held(out)
    if held is None:
        raise SettingsError(f"{out} exists and holds something else than a fit; choose another folder, or empty it")
    if facts is None:
        return
    differing = [name for name in sorted({*facts, *held}) if json.loads(to_json(facts.get(name))) != held.get(name)]
    if differing:
        told = "; ".join(f"{name} {_short(held.get(name))}, now {_short(facts.get(name))}" for name in differing)
        raise SettingsError(
            f"{out} holds a fit of other settings or data ({told}); choose another folder, or delete it"
        )


def _check_parent(out: Path) -> None:
    """The nearest folder that is there must take new ones: an hour of training should not end in an error."""
    nearest = next(path for path in out.absolute().parents if path.exists())
    if not nearest.is_dir():
        raise SettingsError(f"{nearest} is a file, and {out} would lie in it; choose another place")
    _check_writable(nearest, out)


def _check_writable(folder: Path, out: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SettingsError(f"{out} cannot be written: {folder} takes no new files; choose another place")


def claim(out: Path, facts: dict[str, Any]) -> None:
    """Say whose the folder is."""
    write_atomically(out / RECORD, to_json({"marker": MARKER, "facts": facts}, indent=1))


def _held(out: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((out / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("marker") != MARKER or not isinstance(record.get("facts"), dict):
        return None
    return dict(record["facts"])


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 20 else f"{text[:12]}…"
