"""A bar on anything that takes more than a moment: live on a terminal, nothing in a pipe or when quiet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], *, total: int | None, what: str, quiet: bool = False) -> Iterable[T]:
    """The items, with a bar on standard error while they pass."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        return items
    return track(items, what, total=total, console=console, transient=True)
