"""How each class fares on the test data: recall, precision and the confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qornn.fit import plots
from qornn.fit.problem import Problem
from qornn.fit.width import Width, row_labels
from qornn.reporting.document import Grid, Picture, Row, Section

WIDEST = 20  # classes up to which the confusion matrix is written out beside its picture
NONE = "–"


def per_class(problem: Problem, chosen: Width) -> list[dict[str, Any]]:
    """For each class of training, then of the test data alone; percent, None where nothing was to be counted."""
    if problem.kind != "classify":
        return []
    counts = np.asarray(chosen.table)
    found: list[dict[str, Any]] = []
    for index, label in enumerate(row_labels(problem)):
        known, total = index < len(problem.classes), int(counts[index].sum())
        right = int(counts[index, index]) if known else 0
        answered = int(counts[:, index].sum()) if known else 0
        shares = {"recall": _percent(right, total), "precision": _percent(right, answered)}
        found.append({"class": str(label), "train": int(np.sum(problem.train.y == label)), "test": total, **shares})
    return found


def section(problem: Problem, chosen: Width, figures: Mapping[str, Any]) -> Section:
    """For the report."""
    labels = row_labels(problem)
    rows = tuple(
        Row(
            (
                c["class"],
                f"{index}" if index < len(problem.classes) else NONE,
                *(f"{c['train']}", f"{c['test']}", _shown(c["recall"]), _shown(c["precision"])),
            )
        )
        for index, c in enumerate(figures["classes"])
    )
    columns = ("class", "output", "training", "test", "recall", "precision")
    grids = [Grid("Classes, in the order of the network's outputs", columns, rows)]
    if len(labels) <= WIDEST:
        lines = (Row((str(label), *map(str, row))) for label, row in zip(labels, chosen.table, strict=True))
        grids.append(Grid("Confusion: truth down, answer across", ("", *map(str, problem.classes)), tuple(lines)))
    png = plots.confusion_png(chosen.table, labels, problem.classes)
    picture = Picture("confusion", f"Confusion matrix of {len(labels)} classes on the test data", png)
    note = (
        "Recall is the share of a class that is answered as such, precision the share of its answers that are right. "
        "Balanced accuracy is the mean recall of all classes of the test data."
    )
    return Section("confusion", "Classes", (note,), tuple(grids), (picture,))


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _shown(share: float | None) -> str:
    return NONE if share is None else f"{share:.1f} %"
