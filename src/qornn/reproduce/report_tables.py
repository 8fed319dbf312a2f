"""The paper's tables of scores as tables of a report: every cell, run or not, measured beside published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from qornn.recipe import Cell
from qornn.reporting.document import Grid, Row, Section
from qornn.reproduce import grid
from qornn.reproduce import report_figures as write
from qornn.reproduce.grid import Entry
from qornn.reproduce.report_records import Record
from qornn.reproduce.scores import OF_SEEDS, changes, of_cell
from qornn.tasks import make_task

SCORED = tuple(name for name in grid.TRAINED if name != "alphas")
COLUMNS = (
    *("network", "weights", "n_h", "measured", "paper", "difference", "12-bit integers", "paper, 12-bit"),
    *("of the paper's training", "schedule", "steps", "minutes", "state"),
)
TASKS = ("copy", "pmnist", "smnist", "ptb", "adding")  # in the paper's order
_BLANK = (write.NONE,) * 4


@dataclass(frozen=True, slots=True)
class Place:
    """A cell of a table of the paper, and what was measured for it."""

    table: str
    entry: Entry
    cell: Cell
    records: tuple[Record, ...]  # the paper's setting first, then variants

    @property
    def task(self) -> str:
        return self.entry.task

    @property
    def measured(self) -> Record | None:
        """The run at the paper's setting, if there is one."""
        return next((r for r in self.records if r["id"] == self.entry.id), None)


def places(records: Sequence[Record]) -> list[Place]:
    """Every scored cell of the paper, in the order of its tables."""
    return [
        Place(table, entry, _cell(entry, table), tuple(of_cell(entry, records)))
        for table in SCORED
        for task in TASKS
        for entry in grid.of(table)
        if entry.task == task
    ]


def _cell(entry: Entry, table: str) -> Cell:
    """The entry's cell of that table; one of several seeds together has no figure of its own, and comes last."""
    here = [cell for cell in entry.cells if cell.table == table]
    return min(here, key=lambda cell: "note" in cell.facts)


def score_section(name: str, found: Iterable[Place]) -> Section:
    """One table of the paper, one grid per task."""
    here = [place for place in found if place.table == name]
    tasks = list(dict.fromkeys(place.task for place in here))
    return Section(
        name=name, title=grid.TRAINED[name], grids=tuple(_grid([p for p in here if p.task == task]) for task in tasks)
    )


def baseline_of(found: Sequence[Place]) -> float | None:
    """The naive baseline; that of Penn TreeBank lies in its data, which a report must not need, so a record tells."""
    if found[0].task != "ptb":
        return make_task(**found[0].cell.recipe.task).naive_baseline
    told = (write.number(record["baseline"]) for place in found for record in place.records)
    return next((baseline for baseline in told if baseline is not None), None)


def metric_of(cell: Cell) -> str:
    return make_task(**cell.recipe.task).metric_name


def _grid(found: Sequence[Place]) -> Grid:
    cell = found[0].cell
    task, metric = found[0].task, metric_of(cell)
    caption = f"{write.TASKS.get(task, task)}: {write.METRICS.get(metric, metric)}"
    if (baseline := baseline_of(found)) is not None:
        caption += f"; naive baseline {write.figure(baseline, metric, digits=3)}"
    rows = [row for place in found for row in _rows(place, metric)] + _seeds(found, metric)
    return Grid(caption, COLUMNS, tuple(rows))


def _rows(place: Place, metric: str) -> list[Row]:
    rows = [] if place.measured else [_not_run(place, metric)]
    return rows + [_measured(place, record, metric) for record in place.records]


def _seeds(found: Sequence[Place], metric: str) -> list[Row]:
    """The cells that are the least, the middle or the largest of several runs."""
    cells = {
        cell.facts["note"]: cell
        for place in found
        for cell in place.entry.cells
        if "note" in cell.facts and cell.table == place.table
    }
    rows = []
    for note, cell in cells.items():
        seeds = [place.measured for place in found if note in [c.facts.get("note") for c in place.entry.cells]]
        values = [value for r in seeds if r is not None and (value := write.number(r["value"])) is not None]
        whole = len(values) == len(seeds)
        value = OF_SEEDS[note.split()[0]](values) if whole else None
        figures = (write.figure(value, metric), write.figure(cell.paper, metric))
        texts: tuple[str, ...] = (f"{write.strategy(cell.strategy)} ({note})", *_shape(cell), *figures)
        texts += (write.difference(value, cell.paper, metric), write.NONE, write.NONE, *_BLANK)
        state = "from the seeds above" if whole else f"not run: {len(values)} of {len(seeds)} seeds"
        rows.append(Row((*texts, state), "" if whole else "not-run"))
    return rows


def _not_run(place: Place, metric: str) -> Row:
    paper, integer = _paper(place)
    figures = (write.NONE, write.figure(paper, metric), write.NONE, write.NONE, write.figure(integer, metric))
    return Row((_network(place), *_shape(place.cell), *figures, *_BLANK, "not run"), "not-run")


def _measured(place: Place, record: Record, metric: str) -> Row:
    value, status = record["value"], record["status"]
    paper, paper_integer = _paper(place)
    texts = (
        _network(place, record),
        write.bits(record["bits"]),
        str(record["n_h"]),
        write.figure(value, metric) + (" NC" if value is not None and record["converged"] is False else ""),
        write.figure(paper, metric),
        write.difference(value, paper, metric),
        write.figure((record["integer"] or {}).get("value"), metric),
        write.figure(paper_integer, metric),
        write.percent(record["fraction"]),
        record["schedule"] or write.NONE,
        write.whole(record["steps"]),
        write.minutes(record["seconds"]),
        status + (f": {record['note']}" if record.get("note") else ""),
    )
    return Row(texts, "variant" if record is not place.measured else "" if status == "done" else "unfinished")


def _network(place: Place, record: Record | None = None) -> str:
    """The strategy, what of the settings tells this cell from its neighbours, and how the run departs from it."""
    cell, train = place.cell, place.entry.recipe.train
    marks = []
    if place.table == "hyper":
        marks.append(f"seed {train.seed}" if "note" in cell.facts else f"lr {_lr(train.lr)}, batch {train.batch}")
    if "activation_bits" in cell.facts:
        marks.append(f"{cell.facts['activation_bits']}-bit activations")
    if "cited" in cell.facts:
        marks.append(f"paper cites {cell.facts['cited']}")
    name = write.strategy(cell.strategy) + (f" ({'; '.join(marks)})" if marks else "")
    if record is None or record["id"] == place.entry.id:
        return name
    kind = "another seed" if record["variant"] is None else f"variant {record['variant']}"
    return f"{name}, {kind}: {changes(record, place.entry)}"


def _paper(place: Place) -> tuple[Any, Any]:
    """The published figure, and that of the network with 12-bit activations."""
    facts = place.cell.facts
    return (None, None) if "note" in facts else (place.cell.paper, facts.get("paper_at", {}).get("12"))


def _lr(lr: float) -> str:
    return f"{lr:.0e}".replace("e-0", "e-")


def _shape(cell: Cell) -> tuple[str, str]:
    return write.bits(cell.bits), str(cell.recipe.model.n_h)
