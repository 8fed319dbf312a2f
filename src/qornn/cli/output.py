"""Output of figures: one JSON object, or a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from qornn._io.files import to_json
from qornn._io.text import harmless


def print_json(figures: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    print(to_json(figures))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on standard output."""
    table = Table(title=Text(harmless(title)), title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(harmless(text(value))) for value in row))
    console = Console()
    if not console.is_terminal:
        console.width = 200  # a pipe or a file has no edge to fold at
    console.print(table)


def print_files(files: Mapping[str, object]) -> None:
    """The files that matter, one per line."""
    width = max(map(len, files))
    for what, path in files.items():
        print(f"{what:{width}}  {harmless(str(path))}")


def print_targets(rows: Iterable[Mapping[str, object]]) -> None:
    """Every target, what is missing on this machine to run it, and the command that installs that."""
    columns = ["target", "runs on", "ready", "missing", "install with"]
    keys = ("target", "device", "ready", "missing", "install")
    print_table("Targets", columns, ([row[key] for key in keys] for row in rows))


def text(value: object) -> str:
    """A figure as people write it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else f"{value:.5g}"
    return str(value)


def bits_text(bits: int | None) -> str:
    return "fp" if bits is None else str(bits)
