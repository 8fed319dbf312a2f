"""Tables of the paper that need no training: sizes, operations, minutes per epoch, and the articles it cites."""

from __future__ import annotations

import statistics
import tomllib
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from qornn.integer.inputs import make_samples
from qornn.integer.size import Size, baseline_size, complexity, size
from qornn.integer.stack_size import stack_size
from qornn.integer.structured_size import structured_size
from qornn.recipe import STACK, Recipe, resolve, strategies
from qornn.reproduce import grid
from qornn.reproduce import report_figures as write
from qornn.reproduce.scores import Record, Table
from qornn.structure import MAPS as STRUCTURED
from qornn.tasks import Task, make_task

UNSIZED = {"copy": "NC", "smnist": "NU", "ptb": "NU"}  # what the paper prints where it gives no size
SHOWN_BITS = 5  # of the table of operations: the fewest that the paper solves every task with


def sizes(records: Sequence[Record]) -> Table:
    """By the formula, beside the published figure; the true bytes count what the formula leaves out."""
    data: list[dict[str, Any]] = []
    for entry in grid.entries():
        if "sizes" not in entry.tables and not ("performance" in entry.tables and entry.task in UNSIZED):
            continue
        found, cited = size_of(entry.recipe), entry.fact("cited")
        other = entry.recipe.model.kind != "qornn"
        data.append(
            {
                "id": entry.id,
                "task": entry.task,
                "strategy": entry.strategy,
                "bits": entry.bits,
                "n_h": entry.recipe.model.n_h,
                "paper_kP": entry.fact("paper_kP") or (None if entry.fact("paper_kB") else UNSIZED[entry.task]),
                "kP": round(found.parameters / 1000, 1),
                "paper_kB": entry.fact("paper_kB") or UNSIZED[entry.task],
                "kB": None if found.paper_kB is None else round(found.paper_kB, 1),
                "true_bytes": found.true_bytes,
                "remarks": f"cited: {cited}; the formula is for our own, dense" if cited and other else "",
            }
        )
    columns = ["task", "network", "weights", "n_h", "paper, kP", "formula, kP", "paper, kB", "formula, kB"]
    columns += ["everything stored, bytes", "remarks"]
    rows = [
        [write.TASKS[r["task"]], write.strategy(r["strategy"]), write.bits(r["bits"]), str(r["n_h"])]
        + [_plain(r[key]) for key in ("paper_kP", "kP", "paper_kB", "kB")]
        + [write.whole(r["true_bytes"]), r["remarks"]]
        for r in data
    ]
    return Table("sizes", grid.UNTRAINED["sizes"], columns, rows, data)


def size_of(recipe: Recipe) -> Size:
    """The size of the network a recipe trains."""
    task, m = _task(recipe), recipe.model
    if m.kind == STACK:
        return stack_size(
            task.n_i,
            task.n_o,
            width=m.width,
            pairs=m.n_pairs,
            layers=m.layers,
            skip=m.skip,
            bits=m.bits,
            bits_V=m.bits_V,
            lambda_bits=m.lambda_bits,
            input_bytes=_input_bytes(task, m.input_bits),
        )
    if m.kind != "qornn":
        return baseline_size(m.kind, task.n_i, m.n_h, task.n_o, bits=m.bits, scale=m.scale)
    if m.map in STRUCTURED:
        widths: dict[str, Any] = {"bits": m.bits, "bits_U": m.bits_U, "bits_V": m.bits_V}
        bias = m.activation == "identity"
        return structured_size(m.map, task.n_i, m.n_h, task.n_o, **widths, **m.shape, bias=bias)
    return size(task.n_i, m.n_h, task.n_o, bits=m.bits, bits_U=m.bits_U, scale=m.scale, activation=m.activation)


def _input_bytes(task: Task, bits: int | None) -> int:
    """What raw samples take to become inputs; where only the data say what they are, one shift for each channel."""
    if task.one_hot:
        return 0
    raw = task.raw_input
    if raw is None:
        return make_samples(-(2**15), 2**15 - 1, 1.0, channels=task.n_i, bits=bits).stored_bytes
    return make_samples(*raw[:4], channels=task.n_i, bits=raw.bits or bits).stored_bytes


def operations(records: Sequence[Record]) -> Table:
    """The paper's formulas, then what they come to on each task."""
    data: list[dict[str, Any]] = [{"task": "any", "bits": None, **line} for line in _literature()["operations"]]
    for name in ("copy", "smnist", "ptb", "adding"):
        recipe = resolve(name, bits=SHOWN_BITS)
        task, n_h = _task(recipe), recipe.model.n_h
        found = complexity(task.n_i, n_h, bits=SHOWN_BITS, one_hot=task.one_hot, input_bits=2 if task.one_hot else 9)
        for layer, part in (("input matrix", "input"), ("recurrent matrix", "recurrent")):
            for what, key in (("multiplications", "mult"), ("additions", "add")):
                counts = {column: getattr(getattr(step, part), key) for column, step in found.items()}
                line = {"task": f"{name}, n_i={task.n_i}, n_h={n_h}, k={SHOWN_BITS}", "bits": SHOWN_BITS}
                data.append({**line, "layer": layer, "operation": what, **counts})
    kinds = ("full_precision", "quantized_weights", "fully_quantized")
    columns = ["task", "matrix", "operation", "full precision", "quantized weights", "fully quantized"]
    columns += ["reading one column (ours)"]
    rows = [[r["task"], r["layer"], r["operation"], *(_count(r.get(k)) for k in (*kinds, "column_read"))] for r in data]
    return Table("complexity", grid.UNTRAINED["complexity"], columns, rows, data)


def compute(records: Sequence[Record]) -> Table:
    """Minutes per epoch: the paper's on its card, ours from the seconds of the records, median over bit widths."""
    data: list[dict[str, Any]] = []
    for task in ("copy", "pmnist", "ptb"):
        for strategy, settings in strategies(task).items():
            if "paper_minutes" not in settings:
                continue
            plain = [e for e in grid.of("compute") if (e.task, e.strategy) == (task, strategy)]
            n_h = plain[0].recipe.model.n_h
            epochs = {e.id: e.recipe.train.epochs for e in plain if e.recipe.model.n_h == n_h}
            own = [r for r in records if r["id"] in epochs and r["seconds"] and r["fraction"]]
            found = [r["seconds"] / 60 / (r["fraction"] * epochs[r["id"]]) for r in own]
            data.append(
                {
                    "task": task,
                    "strategy": strategy,
                    "n_h": n_h,
                    "paper_minutes": settings["paper_minutes"],
                    "minutes": round(statistics.median(found), 2) if found else None,
                    "runs": len(found),
                    "machine": "; ".join(sorted({_machine(r) for r in own})),
                }
            )
    columns = ["task", "network", "n_h", "paper, RTX 3080", "measured", "runs", "machine"]
    rows = [
        [
            write.TASKS[r["task"]],
            write.strategy(r["strategy"]),
            str(r["n_h"]),
            _plain(r["paper_minutes"]),
            "not run" if r["minutes"] is None else _plain(r["minutes"]),
            str(r["runs"]),
            r["machine"] or write.NONE,
        ]
        for r in data
    ]
    return Table("compute", grid.UNTRAINED["compute"], columns, rows, data)


def literature(records: Sequence[Record]) -> Table:
    """The rows of the paper's survey, all cited, none measured here."""
    data = [
        {"task": block["task"], "metric": block["metric"], "reference": article["reference"], "T": article.get("T")}
        | dict(zip(("model", "weights", "activations", "score"), row, strict=True))
        | {"cited": True}
        for block in _literature()["task"]
        for article in block["article"]
        for row in article["rows"]
    ]
    columns = ["task", "reference", "T", "model", "weights", "activations", "score", "metric", "source"]
    keys = ("task", "reference", "T", "model", "weights", "activations", "score", "metric")
    rows = [[*(_plain(r[key]) for key in keys), "cited"] for r in data]
    return Table("literature", grid.UNTRAINED["literature"], columns, rows, data)


TABLES: dict[str, Callable[[Sequence[Record]], Table]] = {
    "sizes": sizes,
    "complexity": operations,
    "compute": compute,
    "literature": literature,
}


def _task(recipe: Recipe) -> Task:
    settings = dict(recipe.task)
    return make_task(settings.pop("name"), **settings)


def _machine(record: Record) -> str:
    threads = record["machine"]["threads"]
    return f"{record['machine']['cpu']}, {threads} thread{'s' if threads != 1 else ''}"


def _literature() -> dict[str, Any]:
    return tomllib.loads((resources.files("qornn.reproduce") / "literature.toml").read_text(encoding="utf-8"))


def _plain(value: Any) -> str:
    return write.NONE if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _count(value: Any) -> str:
    return value if isinstance(value, str) else write.whole(value)
