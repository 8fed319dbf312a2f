"""Small trained programs that come with the package, each with the record of how it was made and measured."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from qornn.errors import unknown

PREFIX = "zoo:"


def names() -> list[str]:
    """Every program of the zoo."""
    return sorted(path.stem for path in _folder().glob("*.qornn"))


def file(name: str) -> Path:
    """The program's file."""
    return _existing(name, "qornn")


def record(name: str) -> dict[str, Any]:
    """How it was trained and lowered, and its measured figures."""
    return dict(json.loads(_existing(name, "json").read_text(encoding="utf-8")))


def _existing(name: str, suffix: str) -> Path:
    if name not in names():
        raise unknown("program of the zoo", name, names())
    return _folder() / f"{name}.{suffix}"


def _folder() -> Path:
    return Path(str(resources.files("qornn") / "zoo"))
