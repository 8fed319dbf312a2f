"""From records to the data of the report's pictures. Missing or invalid curves and values are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from qornn.integer.size import baseline_size, size
from qornn.recipe import Cell
from qornn.reporting.document import Picture, Section
from qornn.reporting.plots import in_picture
from qornn.reproduce import report_figures as write
from qornn.reproduce.report_pictures import Curve, Point, bytes_png, curves_png
from qornn.reproduce.report_records import Record
from qornn.reproduce.report_tables import TASKS, Place, baseline_of
from qornn.tasks import make_task

LOGARITHMIC = ("copy", "adding")  # their loss is their metric, and it falls by decades
BYTES = {"copy": ("performance", "copy190"), "pmnist": ("performance", "ablation", "pmnist360")}
PANELS = ("bjorck", "projunn")  # these have panels of their own, the others share one
STYLES = {"gru": "--", "rnn": ":", "fastrnn": "-.", "fastgrnn": "--", "ptq": "-.", "penalty": ":"}
LARGEST = 1e30  # what is above is divergence, and no axis is drawn for it


def curves_section(records: Sequence[Record]) -> Section:
    """A picture for each task that has a curve."""
    pictures = []
    for task in TASKS:
        drawn = (_curve(record, task) for record in records if record.get("task") == task)
        curves = list({(curve.title, curve.label): curve for curve in drawn if curve}.values())
        if curves:
            metric = make_task(task).metric_name
            curves.sort(key=lambda c: (c.title.startswith("other"), c.title, -(c.bits or 99), c.label))
            png = curves_png(curves, metric=write.METRICS.get(metric, metric), log=task in LOGARITHMIC)
            name = write.TASKS[task]
            alt = f"{name}: validation {metric} by training step, {len(curves)} runs, and the naive baseline"
            pictures.append(Picture(f"curves-{task}", alt, png))
    notes = (
        ("Validation, with the naive baseline dashed; faint lines are the training loss where it has the same unit.",)
        if pictures
        else ("No run has a learning curve yet.",)
    )
    return Section("curves", "Learning curves", notes, pictures=tuple(pictures))


def bytes_section(found: Sequence[Place]) -> Section:
    """Score against bytes, of the paper and measured here."""
    panels = {}
    for task, tables in BYTES.items():
        here = [place for place in found if place.task == task and place.table in tables]
        points = dict.fromkeys(point for place in here for point in _points(place))  # tables repeat each other
        panels[task] = (list(points), baseline_of(here) or 0.0)
    count = sum(point.source in ("measured", "variant") for points, _ in panels.values() for point in points)
    alt = (
        "Two panels, copy and pMNIST: the score against the size in bytes, both logarithmic, better is up; "
        f"the paper's points hollow, {count} measured ones full."
    )
    notes = (
        "Size by the paper's formula, (n_h² + n_h n_i)·k/8 + 4 n_o n_h bytes; for the LSTM the first part counts once "
        "per gate. Hollow: the paper. Full: measured here, with the training that the tables state. Half full: a "
        "variant. Colours and the numbers beside points are weight bits. Runs that did not converge lie on the "
        "baseline.",
    )
    return Section("bytes", "Score against bytes", notes, pictures=(Picture("bytes", alt, bytes_png(panels)),))


def _curve(record: Record, task: str) -> Curve | None:
    rows = record.get("curve")
    rows = [r for r in rows if isinstance(r, list) and len(r) >= 4] if isinstance(rows, list) else []
    log = task in LOGARITHMIC
    loss = tuple(_drawable(((r[0], r[2]) for r in rows), log)) if log else ()
    validation = tuple(_drawable(((r[0], r[3]) for r in rows), log))
    if len(loss) + len(validation) < 2:
        return None
    bits = record.get("bits")
    bits = bits if isinstance(bits, int) else None
    strategy, variant = str(record.get("strategy")), record.get("variant")
    name = write.STRATEGIES.get(strategy) or in_picture(strategy)
    label = "full precision" if bits is None else f"k = {bits}"
    shape = f", $n_h$ = {in_picture(record.get('n_h'))}" + (", $T_0$ = 2000" if _in(record, "copy2000") else "")
    style = "-" if variant is None else "--"
    if strategy in PANELS:
        title = name + shape
    else:
        title, style = "other networks", STYLES.get(strategy, "-")
        if strategy == "ptq":  # one run serves every k
            bits, label = None, "before quantizing"
        label = f"{name}{shape}, {label}"
    label += f", {in_picture(variant)}" if variant is not None else _hyper(record)
    return Curve(title, label, bits, style, write.number(record.get("baseline")), loss, validation)


def _hyper(record: Record) -> str:
    """What tells apart the runs of the table of hyperparameters: the rest of their name."""
    if record.get("table") != ["hyper"]:
        return ""
    return ", " + in_picture(record["id"]).partition(f"-k{record.get('bits')}-")[2]


def _drawable(points: Iterable[tuple[Any, Any]], log: bool) -> Iterable[tuple[float, float]]:
    for x, y in points:
        step, value = write.number(x), write.number(y)
        if step is None or value is None or not 0 <= step <= LARGEST or abs(value) > LARGEST:
            continue
        if value > 0 or not log:
            yield step, value


def _points(place: Place) -> Iterable[Point]:
    cell = place.cell
    if cell.paper == "NU":
        return
    at = (cell.strategy, cell.recipe.model.n_h, cell.bits, _bytes(cell))
    yield Point(*at, write.number(cell.paper), "paper")
    for record in place.records:
        yield Point(*at, _score(record, place.task), "measured" if record.get("variant") is None else "variant")
        integer = record.get("integer")
        if isinstance(integer, Mapping) and record.get("converged") is not False:
            yield Point(*at, _score(integer, place.task), "integer")


def _bytes(cell: Cell) -> float:
    task, model = make_task(**cell.recipe.task), cell.recipe.model
    if model.kind == "qornn":
        found = size(task.n_i, model.n_h, task.n_o, bits=cell.bits)
    else:
        found = baseline_size(model.kind, task.n_i, model.n_h, task.n_o, bits=cell.bits)
    return found.true_bytes if found.paper_bytes is None else found.paper_bytes


def _score(record: Mapping[str, Any], task: str) -> float | None:
    """A value that the axis holds; None, which is drawn on the baseline, for one that is no better."""
    value = write.number(record.get("value"))
    if value is None or record.get("converged") is False:
        return None
    inside = 0 <= value < 100 if task != "copy" else 1e-30 < value < 1
    return value if inside else None


def _in(record: Record, table: str) -> bool:
    tables = record.get("table")
    return isinstance(tables, list) and table in tables
