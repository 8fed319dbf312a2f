"""The contents of a report. HTML and Markdown are written from the same strings and cannot disagree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WORDS = ("–", "FP", "NC", "NU", "not run")  # that stand where a figure would


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; the first text names it."""

    texts: tuple[str, ...]
    kind: str = ""  # "not-run", "variant", "unfinished" or nothing: how it is shown


@dataclass(frozen=True, slots=True)
class Grid:
    """One table with its caption."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns are figures, and so are set to the right."""
        return tuple(all(map(_is_figure, column)) for column in zip(*(row.texts for row in self.rows), strict=True))


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG in the text. `alt` describes it for readers who cannot see it."""

    name: str
    alt: str
    png: bytes


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    name: str  # the anchor, and the name that `qornn reproduce` takes
    title: str
    notes: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    title: str
    summary: tuple[str, ...]
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def pictures(self) -> Iterable[Picture]:
        return (picture for section in self.sections for picture in section.pictures)


def _is_figure(text: str) -> bool:
    return text in WORDS or text.lstrip("+−× ")[:1].isdigit()
