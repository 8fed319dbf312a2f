"""A report as one HTML file: no scripts, no network, pictures inside, light or dark as the reader's system is."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib import resources

from qornn._io.text import readable
from qornn.reporting.document import Document, Grid, Picture, Row, Section


def to_html(document: Document) -> str:
    """Every text of the document passes through `escape`: a record cannot add markup."""
    style = (resources.files("qornn") / "reporting" / "report.css").read_text(encoding="utf-8")
    links = "".join(f'<li><a href="#{_slug(s.name)}">{escape(s.title)}</a></li>\n' for s in document.sections)
    warnings = "".join(f'<p class="warning" role="note">Warning: {escape(text)}</p>\n' for text in document.warnings)
    return readable(
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(document.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{escape(document.title)}</h1>\n"
        + "".join(f'<p class="summary">{escape(text)}</p>\n' for text in document.summary)
        + f"{warnings}</header>\n"
        f'<nav aria-label="Contents">\n<ul>\n{links}</ul>\n</nav>\n<main>\n'
        + "".join(map(_section, document.sections))
        + "</main>\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    name = _slug(section.name)
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{escape(section.title)}</h2>\n'
        + "".join(f"<p>{escape(note)}</p>\n" for note in section.notes)
        + "".join(map(_picture, section.pictures))
        + "".join(map(_grid, section.grids))
        + "</section>\n"
    )


def _grid(grid: Grid) -> str:
    kinds = [' class="figure"' if numeric else "" for numeric in grid.numeric]
    head = "".join(f'<th scope="col"{k}>{escape(c)}</th>' for k, c in zip(kinds, grid.columns, strict=True))
    # A wide table scrolls by itself; tabindex lets the keyboard reach it.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(grid.caption)}">\n<table>\n'
        f"<caption>{escape(grid.caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "".join(_row(row, kinds) for row in grid.rows)
        + "</tbody>\n</table>\n</div>\n"
    )


def _row(row: Row, kinds: Sequence[str]) -> str:
    kind = f' class="{_slug(row.kind)}"' if row.kind else ""
    cells = "".join(f"<td{k}>{escape(text)}</td>" for k, text in zip(kinds[1:], row.texts[1:], strict=True))
    return f'<tr{kind}><th scope="row">{escape(row.texts[0])}</th>{cells}</tr>\n'


def _picture(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode("ascii")
    return f'<figure><img alt="{escape(picture.alt)}" src="data:image/png;base64,{data}"></figure>\n'


def _slug(name: str) -> str:
    """A name as an attribute: letters, digits and hyphens alone."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name)
