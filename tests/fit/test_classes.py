"""Recall and precision of every class."""

from types import SimpleNamespace

import numpy as np

from qornn.fit.classes import per_class, section


def problem(kind="classify"):
    labels = ["a"] * 4 + ["b"] * 2 + ["z"]
    part = SimpleNamespace(y=np.array(labels))
    return SimpleNamespace(kind=kind, classes=("a", "b", "c"), test=part, train=SimpleNamespace(y=np.array(["a", "b"])))


TABLE = SimpleNamespace(table=[[3, 1, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]])  # a, b, c, z by what was answered


def test_recall_is_by_truth_and_precision_by_answer():
    a, b, c, z = per_class(problem(), TABLE)
    assert a == {"class": "a", "train": 1, "test": 4, "recall": 75.0, "precision": 75.0}
    assert (b["recall"], b["precision"]) == (50.0, 100 / 3)
    assert (c["test"], c["recall"], c["precision"]) == (0, None, None)
    assert (z["test"], z["recall"], z["precision"]) == (1, 0.0, None)


def test_the_report_has_a_line_for_each_class():
    grid = section(problem(), TABLE, {"classes": per_class(problem(), TABLE)}).grids[0]
    assert grid.columns == ("class", "output", "training", "test", "recall", "precision")
    assert [row.texts for row in grid.rows][1:] == [
        ("b", "1", "1", "2", "50.0 %", "33.3 %"),
        ("c", "2", "0", "0", "–", "–"),
        ("z", "–", "0", "1", "0.0 %", "–"),
    ]


def test_values_have_no_classes():
    assert per_class(problem("regress"), None) == []
