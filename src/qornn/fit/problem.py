"""What is to be learned from the data, what is held out for it, and how an answer is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qornn.errors import DataError, SettingsError, unknown
from qornn.fit.dataset import Dataset, Labelled

TASKS = ("auto", "classify", "regress")
CHOICE = 0.2  # of the training data, held out to choose among several widths
FEWEST = 20  # sequences a choice may rest on; with fewer it rests on the training data
MANY = 10  # labels shown in an error


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Problem:
    """A task with its parts: `train` is learned from, `choice` chooses the bits, `test` is only measured on."""

    kind: str  # classify or regress
    data: Dataset
    train: Labelled
    choice: Labelled  # the training data itself where too little can be held out, or nothing is to be chosen
    test: Labelled
    classes: tuple[Any, ...]  # of the training data; empty for values
    notes: tuple[str, ...]

    @property
    def metric(self) -> str:
        return "accuracy" if self.kind == "classify" else "R2"

    @property
    def point(self) -> float:
        """What counts as a difference: a point of accuracy, or a hundredth of R2."""
        return 1.0 if self.kind == "classify" else 0.01

    @property
    def chooses(self) -> bool:
        return self.choice is not self.train

    def score(self, truth: np.ndarray, answers: np.ndarray) -> float:
        """Accuracy in percent, or R2 = 1 − Σ(y − ŷ)²/Σ(y − mean)²."""
        if self.kind == "classify":
            return 100 * float(np.mean(truth == answers))
        return 1 - float(np.square(truth - answers).sum() / np.square(truth - truth.mean()).sum())

    def baseline(self) -> float:
        """The score on the test data of one answer for all: the commonest class, or the mean, of training."""
        if self.kind == "classify":
            labels, counts = np.unique(self.data.train.y, return_counts=True)
            return self.score(self.test.y, np.full(len(self.test), labels[counts.argmax()]))
        return self.score(self.test.y, np.full(len(self.test), self.data.train.y.mean()))


def pose(data: Dataset, *, task: str, test_fraction: float | None, seed: int, choose: bool) -> Problem:
    """The data as a problem, with parts held out by the seed where the data has none."""
    kind = kind_of(data.train.y, task)
    data = replace(data, train=_typed(data.train, kind), test=data.test and _typed(data.test, kind))
    notes = [*data.notes, *_constant_channels(data)]
    if kind == "classify":
        check_classes(data.train.y)
    if data.test is None:
        fraction = 0.2 if test_fraction is None else test_fraction
        held = hold_out(data.train.y, fraction, seed, stream=11, by_class=kind == "classify")
        if not held.any():
            raise DataError(
                f"{len(held)} sequences are too few to hold {fraction:.0%} of them out for the test; give more, "
                "a test set of its own, or a larger --test-fraction"
            )
        notes.append(
            f"no test set was given: {held.sum()} of {len(held)} sequences, drawn with seed {seed}, are held out"
        )
        data = replace(data, train=data.train.rows(~held), test=data.train.rows(held))
    elif test_fraction is not None:
        raise SettingsError("the data has a test set already; leave out --test-fraction")
    assert data.test is not None
    if kind == "classify":
        notes += _test_labels(data.train.y, data.test.y)
    else:
        _check_values(data.train.y, data.test.y)
    train = choice = data.train
    if choose:
        held = hold_out(data.train.y, CHOICE, seed, stream=12, by_class=kind == "classify")
        if held.sum() < FEWEST:
            notes.append(
                f"fewer than {FEWEST} sequences could be held out to choose the bits; training data chooses them"
            )
        else:
            train, choice = data.train.rows(~held), data.train.rows(held)
            notes.append(
                f"{held.sum()} training sequences are held out to choose the bits; one width alone trains on them too"
            )
    classes = tuple(np.unique(data.train.y).tolist()) if kind == "classify" else ()
    return Problem(
        kind=kind, data=data, train=train, choice=choice, test=data.test, classes=classes, notes=tuple(notes)
    )


def kind_of(y: np.ndarray, task: str) -> str:
    """auto: numbers of which some are not whole are values, everything else is classes."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    if task == "regress" and y.dtype.kind == "U":
        raise SettingsError(f"--task regress needs numbers, got labels such as {str(y[0])!r}; use --task classify")
    if task != "auto":
        return task
    return "regress" if y.dtype.kind == "f" else "classify"  # readers make whole floats integers


def check_classes(y: np.ndarray) -> None:
    """Two classes or more, and two sequences a class on average."""
    classes = np.unique(y)
    if len(classes) < 2:
        raise DataError(
            f"there is one class only, {classes[0]!s}; a classifier needs at least two: is it the right column?"
        )
    if len(y) < 2 * len(classes):
        raise DataError(
            f"{len(y)} training sequences for {len(classes)} classes are too few: two a class at least; join classes, "
            "or if the labels are values to predict, add --task regress"
        )


def hold_out(y: np.ndarray, fraction: float, seed: int, *, stream: int, by_class: bool) -> np.ndarray:
    """Which sequences are held out: that share of every class, drawn by the seed, one at least staying.  # (N,)"""
    if not 0 < fraction < 1:
        raise SettingsError(f"--test-fraction must lie between 0 and 1, got {fraction}; 0.2 holds a fifth out")
    random = np.random.default_rng([seed, stream])
    held = np.zeros(len(y), bool)
    groups = [np.flatnonzero(y == value) for value in np.unique(y)] if by_class else [np.arange(len(y))]
    for rows in groups:
        count = min(int(fraction * len(rows) + 0.5), len(rows) - 1)
        held[random.permutation(rows)[:count]] = True
    return held


def _typed(part: Labelled, kind: str) -> Labelled:
    if kind == "regress":
        return Labelled(part.x, part.y.astype(np.float64))
    return Labelled(part.x, part.y.astype(str)) if part.y.dtype.kind == "f" else part  # classes named 0.5 and 1.5


def _constant_channels(data: Dataset) -> list[str]:
    samples = data.train.x.samples()
    constant = np.flatnonzero((samples == samples[0]).all(0))
    if len(constant) == samples.shape[1]:
        raise DataError(
            f"every sample of the training data is {samples[0].tolist()}; nothing can be learned: check the file"
        )
    return [f"{data.channel(int(c))} is constant in training and carries no information; it is kept" for c in constant]


def _test_labels(train: np.ndarray, test: np.ndarray) -> list[str]:
    """Labels of the test data that training never showed: their sequences count as wrong."""
    unseen = ~np.isin(test, train)
    if unseen.all():
        raise DataError(
            f"none of the test labels ({_some(test)}) is among those of training ({_some(train)}); check both"
        )
    if not unseen.any():
        return []
    return [
        f"{unseen.sum()} test sequences have labels unseen in training ({_some(test[unseen])}): they count as wrong"
    ]


def _check_values(train: np.ndarray, test: np.ndarray) -> None:
    if (train == train[0]).all():
        raise DataError(f"every training value is {train[0]}; nothing can be learned: is it the right column?")
    if (test == test[0]).all():
        raise DataError(f"every test value is {test[0]}: R2 needs values that differ; give another test set")


def _some(labels: np.ndarray) -> str:
    names = [str(label) for label in np.unique(labels)]
    return ", ".join(names[:MANY]) + (f" and {len(names) - MANY} more" if len(names) > MANY else "")
