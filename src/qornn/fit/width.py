"""One bit width: trained, lowered and measured, and kept on disk so that it need not be done again."""

from __future__ import annotations

import hashlib
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qornn._io.files import to_json, write_atomically
from qornn._io.foreign import is_number, read_json
from qornn.errors import QornnError
from qornn.estimators import QORNNClassifier, QORNNRegressor
from qornn.estimators.design import Design
from qornn.estimators.windows import check_long_enough
from qornn.fit.problem import Problem
from qornn.fit.split import described
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import load, save

DRAWN = 2000  # test values kept for the picture of a regression


@dataclass(frozen=True, kw_only=True)
class Width:
    """What was measured at one width; every figure but `floating` is of the integer program."""

    key: str  # of settings and data: who asks for another key trains again
    bits: int
    choice: float  # score on the data that chooses the bits
    value: float  # score on the test data
    floating: float  # the same in floating point: with states in float64, or rounded as in training
    true_bytes: int
    seconds: float
    history: list[dict[str, float]]  # losses by epoch
    table: list[list[float]]  # confusion, true × answered; or pairs true, answered
    warnings: list[str]
    validation: str | None = None  # how what training watched was held out, in words; None: nothing was

    def save(self, folder: Path, program: IntegerProgram) -> None:
        """k4.qornn, then k4.json, which says that both are whole, and by a digest that they belong together."""
        path = folder / f"k{self.bits}.qornn"
        save(program, path, own=True)
        figures = {**asdict(self), "sha256": _digest(path)}
        write_atomically(path.with_suffix(".json"), to_json(figures, indent=1), own=True)


def find(folder: Path, bits: int, key: str) -> tuple[Width, IntegerProgram] | None:
    """A width finished before with the same settings and data; None where there is none, or it is damaged."""
    path = folder / f"k{bits}.qornn"
    try:
        figures = read_json(path.with_suffix(".json"))
        if figures.pop("key") != key or figures.pop("sha256") != _digest(path):
            return None
        width = Width(key=key, **figures)
        return (width, load(path)) if _is_whole(width, bits) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, QornnError):
        return None


def _is_whole(width: Width, bits: int) -> bool:
    """Whether a report can be made of it: numbers where there should be, and a table of equal rows."""
    numbers = (width.choice, width.value, width.floating, width.true_bytes, width.seconds)
    history = all({"epoch", "loss"} <= epoch.keys() and all(map(is_number, epoch.values())) for epoch in width.history)
    table = len({len(row) for row in width.table}) == 1 and all(is_number(cell) for row in width.table for cell in row)
    words = all(isinstance(word, str) for word in (*width.warnings, width.validation or ""))
    return width.bits == bits and all(map(is_number, numbers)) and bool(width.history) and history and table and words


def train(
    problem: Problem, bits: int, *, key: str, estimator: dict[str, Any], quiet: bool
) -> tuple[Width, IntegerProgram]:
    """Train, lower and measure."""
    began = time.monotonic()
    model = make_estimator(problem.kind, bits, verbose=not quiet, **estimator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(problem.train.for_estimator(), problem.train.y, groups=problem.train.groups)
        program = model.to_program()
    answers = model.predict(problem.test.for_estimator(), integer=True)
    floats = model.predict(problem.test.for_estimator())
    chosen = model.predict(problem.choice.for_estimator(), integer=True)
    value, held = problem.score(problem.test.y, answers), model.held_out_
    width = Width(
        key=key,
        bits=bits,
        choice=problem.score(problem.choice.y, chosen),
        value=value,
        floating=problem.score(problem.test.y, floats),
        true_bytes=program.true_bytes,
        seconds=time.monotonic() - began,
        history=[{name: float(number) for name, number in epoch.items()} for epoch in model.history_],
        table=_table(problem, answers),
        warnings=[str(warning.message) for warning in caught],
        validation=described(problem.train, held, by_class=problem.kind == "classify") if held.any() else None,
    )
    return width, program.with_provenance(metric={"name": problem.metric, "value": value})


def make_estimator(kind: str, bits: int, **settings: Any) -> Any:
    """The estimator with its own defaults for whatever is not set."""
    return (QORNNClassifier if kind == "classify" else QORNNRegressor)(bits=bits, **settings)


def window_for(problem: Problem, design: Design) -> int | str:
    """The estimators' `window`. Every sequence, also of the test data, must fill at least one."""
    parts = [part.x for part in (problem.train, problem.choice, problem.test)]
    found = design.common_window(parts)
    if not isinstance(found, str):
        for part in parts:
            check_long_enough(part, found)
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _table(problem: Problem, answers: np.ndarray) -> list[list[float]]:
    truth = problem.test.y
    if problem.kind == "regress":
        rows = np.linspace(0, len(truth) - 1, min(len(truth), DRAWN)).astype(int)
        return np.stack([truth[rows], answers[rows]], 1).tolist()
    labels = row_labels(problem)
    return [[int(np.sum((truth == t) & (answers == a))) for a in problem.classes] for t in labels]


def row_labels(problem: Problem) -> list[Any]:
    """Rows of a confusion matrix: the classes, then whatever labels the test data alone has."""
    own = set(np.unique(problem.test.y).tolist()) - set(problem.classes)
    return [*problem.classes, *sorted(own)]
