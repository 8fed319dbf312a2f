"""A report as Markdown, its pictures as files beside it."""

from __future__ import annotations

from urllib.parse import quote

from qornn._io.text import readable
from qornn.reporting.document import Document, Grid, Section

_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {c: f"\\{c}" for c in "\\`*_[]|~"}


def to_markdown(document: Document, stem: str) -> str:
    """The text; its pictures are looked for under `picture_name`."""
    parts = [f"# {_plain(document.title)}", *map(_plain, document.summary)]
    parts += [f"**Warning:** {_plain(text)}" for text in document.warnings]
    for section in document.sections:
        parts += _section(section, stem)
    return readable("\n\n".join(parts) + "\n")


def picture_name(stem: str, name: str) -> str:
    return f"{stem}-{name}.png"


def _section(section: Section, stem: str) -> list[str]:
    parts = [f"## {_plain(section.title)}", *map(_plain, section.notes)]
    parts += [f"![{_plain(p.alt)}]({_link(picture_name(stem, p.name))})" for p in section.pictures]
    return parts + [part for grid in section.grids for part in (f"**{_plain(grid.caption)}**", _grid(grid))]


def _link(file: str) -> str:
    return quote(file, errors="surrogateescape")  # the bytes of a name that is not UTF-8


def _grid(grid: Grid) -> str:
    rule = ["---:" if numeric else "---" for numeric in grid.numeric]
    lines = [map(_plain, grid.columns), rule, *(map(_plain, row.texts) for row in grid.rows)]
    return "\n".join("| " + " | ".join(texts) + " |" for texts in lines)


def _plain(text: str) -> str:
    """The text as Markdown shows it: no markup, no line breaks, no HTML."""
    return "".join(_SPECIAL.get(c, c) for c in " ".join(text.split()))
