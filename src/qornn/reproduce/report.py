"""qornn report: everything measured so far beside the paper, as one HTML file and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qornn._io.files import check_file, write_atomically
from qornn.errors import SettingsError
from qornn.reporting.document import Document, Grid, Row, Section
from qornn.reporting.html import to_html
from qornn.reporting.markdown import picture_name, to_markdown
from qornn.reproduce import tables
from qornn.reproduce.report_plots import bytes_section, curves_section
from qornn.reproduce.report_records import Record, read_records
from qornn.reproduce.report_tables import SCORED, Place, places, score_section
from qornn.reproduce.scores import NOT_RUN

TITLE = "Quantized orthogonal recurrent networks: measured beside the paper"
TABLES = (
    *("performance", "sizes", "ablation", "alphas", "complexity", "copy190", "copy2000", "pmnist360", "ptb2048"),
    *("hyper", "adding170", "adding400", "compute", "literature"),
)
READ = (
    "Measured is our test figure; the difference is measured minus paper. On copy and adding, whose figures span "
    "decades, it is a ratio: × 2 is twice the paper's loss. NC: no better than the naive baseline. NU: left out by the "
    "paper as not useful.",
    "A run shorter than the paper's is marked with its share of the paper's training and its learning-rate schedule: "
    "whole, compressed into that share, or cut off where the run ended. A variant has other settings than the paper, "
    "and is never counted as the paper's cell. The 12-bit figure is the same network in integers only.",
)


def report(results: Path, out: Path) -> dict[str, Any]:
    """Write the report into `out`, the same as Markdown and pictures beside it; return what was counted."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise SettingsError(f"the report is an HTML file, got {out}; name it report.html")
    _check_own(out.with_suffix(".md"))
    check_file(out)
    document, counts = compose(results)
    written = {out: to_html(document).encode(), out.with_suffix(".md"): to_markdown(document, out.stem).encode()}
    written |= {out.with_name(picture_name(out.stem, p.name)): p.png for p in document.pictures}
    for path, content in written.items():
        write_atomically(path, content)
    told = {"summary": document.summary[0], "warnings": list(document.warnings)}
    return counts | told | {"files": [str(path) for path in written]}


def _check_own(page: Path) -> None:
    """The path of the Markdown is derived, so a file there that is not a report is never overwritten."""
    heading = f"# {TITLE}"
    if page.exists() and not (page.is_file() and page.read_bytes().startswith(heading.encode())):
        raise SettingsError(f"{page} exists and is not a report; choose another name, so that it is not replaced")


def compose(results: Path) -> tuple[Document, dict[str, Any]]:
    """The report of a results folder, and how many cells it holds of how many."""
    records, warnings = read_records(results)
    found = places(records)
    counts = _counts(found, records)
    sections = (
        bytes_section(found),
        *(score_section(name, found) if name in SCORED else _other_section(name, records) for name in TABLES),
        curves_section(records),
    )
    return Document(TITLE, (*_summary(counts), *READ), tuple(warnings), sections), counts


def _other_section(name: str, records: Sequence[Record]) -> Section:
    """A table without scores, as `qornn reproduce` writes it."""
    made = tables.table(name, records)
    rows = tuple(Row(tuple(row), "not-run" if NOT_RUN in row else "") for row in made.rows)
    return Section(name, made.title, grids=(Grid(f"qornn reproduce {name}", tuple(made.columns), rows),))


def _counts(found: Sequence[Place], records: Sequence[Record]) -> dict[str, Any]:
    measured = {place.entry.id: place.measured for place in found}
    states = [record["status"] for record in measured.values() if record is not None]
    return {
        "cells": len(measured),
        "measured": len(states),
        "done": states.count("done"),
        "partial": states.count("partial"),
        "diverged": states.count("diverged"),
        "variants": sum(record.get("variant") is not None for record in records),
        "machines": sorted({_machine(record["machine"]) for record in records}),
        "versions": sorted({str(record["version"]) for record in records}),
    }


def _summary(counts: Mapping[str, Any]) -> tuple[str, ...]:
    if not counts["measured"] and not counts["variants"]:
        return (
            f"Nothing measured yet: none of the {counts['cells']} cells of the paper's tables has been run. "
            "`qornn reproduce performance` starts; every cell below is the paper's figure alone.",
        )
    states = [f"{counts[state]} {state}" for state in ("done", "partial", "diverged") if counts[state]]
    count = counts["variants"]
    variants = f", and {count} variant{'' if count == 1 else 's'} beside them" if count else ""
    return (
        f"{counts['measured']} of {counts['cells']} cells of the paper's tables measured"
        + (f" ({', '.join(states)})" if states else "")
        + f"{variants}; on {'; '.join(counts['machines'])}; qornn {', '.join(counts['versions'])}.",
    )


def _machine(machine: Mapping[str, Any]) -> str:
    threads = machine["threads"]
    return f"{machine['cpu']} ({threads} thread{'' if threads == 1 else 's'}, {machine['device']})"
