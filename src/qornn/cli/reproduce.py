"""qornn reproduce NAME: a table or a figure of the paper, measured here and set beside the printed one."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qornn.cli.options import DataDir, Device, Json, Set
from qornn.cli.output import print_json, print_table
from qornn.errors import SettingsError

if TYPE_CHECKING:
    from qornn.reproduce.engine import Outcome
    from qornn.reproduce.grid import Job

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def run(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A table: performance, sizes, ablation, alphas, complexity, copy190, copy2000, pmnist360, ptb2048, "
            "hyper, adding170, adding400, compute, literature, structured (not in the paper), or overview, which is "
            "--show without a name. A figure: instability, copy-curves or pmnist-curves."
        ),
    ] = None,
    cells: Annotated[
        str | None, typer.Option(help="Only these cells: ids or parts of them, as in copy-bjorck-k8,pmnist-ptq.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Total wall time of a cell, as in 30m or 2h. Then the cell is saved. Default: no limit."),
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(
            help="Share of the paper's training steps. The learning-rate schedule is compressed to fit. "
            "Default: all steps."
        ),
    ] = None,
    set: Set = None,
    variant: Annotated[
        str | None, typer.Option(help="Name of the change that --set makes. Recorded beside the paper's cell.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights and data. Default: the recipe's.")] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the run folders.")] = Path("runs/reproduce"),
    results: Annotated[Path, typer.Option("--results", "--out", help="Folder of the records and pictures.")] = Path(
        "results"
    ),
    show: Annotated[bool, typer.Option("--show", help="Train nothing. Print the table from the records.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the cells and their state.")] = False,
    engine: Annotated[str, typer.Option(help="local, or ray to spread cells over a cluster.")] = "local",
    workers: Annotated[int, typer.Option(help="With --engine ray: cells that run at the same time.")] = 1,
    docs: Annotated[Path | None, typer.Option(help="Update the tables in this Markdown page.")] = None,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Run a table or figure of the paper, and print measured and published figures side by side.

    If the same command is given again, a stopped run continues where it stopped.

    Example: qornn reproduce performance --cells copy-bjorck-k8 --fraction 0.1
    """
    from qornn.reproduce import grid

    if docs is not None:
        _renew(docs, results)
    if name is None:
        if docs is None and not show:
            raise SettingsError(
                "name a table or a figure, as in `qornn reproduce performance`, or see all tasks with --show"
            )
        if show:
            _overview(results, json)
        return
    grid.check_name(name)
    if name == "instability":
        _instability(results, seed or 0, json)
        return
    jobs: list[Job] = []
    if name in grid.OVERVIEW:
        _overview(results, json)
        return
    if name not in grid.UNTRAINED:
        jobs = grid.make_jobs(
            grid.select(name, cells),
            runs=runs,
            results=results,
            settings=set or [],
            variant=variant,
            seed=seed,
            fraction=fraction,
            budget=None if budget is None else parse_time(budget),
            data_dir=data_dir,
            device=device,
            quiet=json or engine != "local",
        )
    if dry_run:
        _list(name, jobs, json)
        return
    failed = [] if show else _carry_out(jobs, engine, workers, budget)
    _print(name, results, failed, json, only={job.entry.id for job in jobs} if cells else None)
    if failed:
        raise typer.Exit(1)


def parse_time(text: str) -> float:
    """Seconds in 90s, 30m, 2h or 1h30m."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise SettingsError(f"--budget is a time such as 90s, 30m or 1h30m, got {text!r}")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def _carry_out(jobs: list[Job], engine: str, workers: int, budget: str | None) -> list[Outcome]:
    """Run the cells that are not recorded yet. Returns the jobs that failed."""
    from qornn.reproduce import cells
    from qornn.reproduce.engine import run as carry_out
    from qornn.reproduce.records import FINISHED

    open_jobs = [job for job in jobs if cells.state(job) not in FINISHED]
    if len(open_jobs) < len(jobs):
        _say(f"{len(jobs) - len(open_jobs)} of {len(jobs)} cells are recorded already and are not run again")
    outcomes = carry_out(open_jobs, engine=engine, workers=workers)  # a wrong engine is reported before the estimate
    if open_jobs:
        _say(_estimate(open_jobs, workers))
    failed = []
    try:
        for outcome in outcomes:
            _say(_line(outcome))
            failed += [outcome] if outcome.error else []
    except (cells.Interrupted, KeyboardInterrupt) as stopped:
        _say(f"{str(stopped) or 'interrupted'}; the same command continues")
        raise typer.Exit(130) from None
    return failed


def _estimate(jobs: list[Job], workers: int) -> str:
    from qornn.errors import QornnError
    from qornn.reproduce import cells

    probed: dict[tuple[Any, ...], float | None] = {}
    seconds: dict[Path, float | None] = {}  # by run folder: PTQ cells share one
    for job in jobs:
        if job.folder not in seconds:
            try:
                seconds[job.folder] = cells.seconds_left(job, probed)
            except QornnError:  # the job will fail with the same words
                seconds[job.folder] = None
    known = [s for s in seconds.values() if s is not None]
    unknown = f", {len(seconds) - len(known)} unknown" if len(known) < len(seconds) else ""
    return f"{len(jobs)} cells to go, about {_duration(sum(known) / workers)} of training{unknown}"


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def _line(outcome: Outcome) -> str:
    if outcome.record is None:
        return f"{outcome.job.id}: failed: {outcome.error}"
    from qornn.reproduce import scores

    r = outcome.record
    return f"{r['id']}: {scores.measured({**r, 'measured': r['value']})} (paper {r['paper']}), {scores.training(r)}"


def _list(name: str, jobs: list[Job], json: bool) -> None:
    from qornn.reproduce import cells, records

    rows = []
    for job in jobs:
        found = records.read(job.id, job.results) or {}
        rows.append(
            {"id": job.id, "state": cells.state(job), "fraction": found.get("fraction"), "value": found.get("value")}
            | {"paper": job.entry.paper, "run": job.folder.name}
        )
    if json:
        print_json({"name": name, "cells": rows})
    else:
        print_table(f"{name}: {len(rows)} cells", ["id", "state", "fraction", "value", "paper", "run"], _values(rows))


def _print(name: str, results: Path, failed: list[Outcome], json: bool, only: AbstractSet[str] | None) -> None:
    """The table, or those of its rows that --cells names."""
    from qornn.reproduce import grid, tables

    there = _whole_records(results)
    made = tables.table(name, there)
    shown = [only is None or row.get("cell") in only for row in made.data]
    data = list(compress(made.data, shown))
    pictures = []
    if name in grid.CURVES:
        from qornn.reproduce.curves import draw

        pictures.append(str(draw(name, there, results)))
    if json:
        failures = {outcome.job.id: outcome.error for outcome in failed}
        print_json({"name": name, "title": made.title, "rows": data, "pictures": pictures, "failed": failures})
        return
    print_table(made.title, made.columns, compress(made.rows, shown))
    for path in pictures:
        print(path)


def _overview(results: Path, json: bool) -> None:
    """Every task in one table, and how many cells reach the paper's figure."""
    from qornn.reproduce import overview

    there = _whole_records(results)
    made, verdict = overview.table(there), overview.verdict(there)
    if json:
        print_json({"name": made.name, "title": made.title, "rows": made.data, "verdict": verdict})
        return
    print_table(made.title, made.columns, made.rows)
    print(verdict)


def _instability(out: Path, seed: int, json: bool) -> None:
    from qornn.reproduce.instability import instability

    figures = instability(out, seed=seed)
    if json:
        print_json(figures)
    else:
        for path in [*sorted(out.glob("*.png")), out / "instability.json"]:
            print(path)


def _renew(page: Path, results: Path) -> None:
    from qornn._io.files import write_atomically
    from qornn.reproduce import tables

    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"cannot read the page {page}: {error.strerror or error}") from error
    write_atomically(page, tables.renew(text, _whole_records(results)))


def _whole_records(results: Path) -> list[dict[str, Any]]:
    """Records that tables can be made from. Damaged ones are named and skipped."""
    from qornn.reproduce.report_records import read_records

    whole, warnings = read_records(results) if results.is_dir() else ([], [])
    for warning in warnings:
        _say(warning)
    return whole


def _values(rows: list[dict[str, Any]]) -> list[list[Any]]:
    return [list(row.values()) for row in rows]


def _say(text: str) -> None:
    typer.echo(text, err=True)
