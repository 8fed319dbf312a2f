"""The task to learn from the data, the parts that are held out, and the metric."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qornn.errors import DataError, SettingsError, unknown
from qornn.fit import leaks
from qornn.fit.dataset import Dataset, Labelled
from qornn.fit.split import described, given, hold_out, hold_out_test

METRICS = ("accuracy", "balanced")
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
    split: dict[str, str | None]  # how test and choice were held out, in words
    balanced: bool = False  # every class counts as much as any other

    @property
    def metric(self) -> str:
        if self.kind == "regress":
            return "R2"
        return "balanced accuracy" if self.balanced else "accuracy"

    @property
    def point(self) -> float:
        """What counts as a difference: a point of accuracy, or a hundredth of R2."""
        return 1.0 if self.kind == "classify" else 0.01

    @property
    def chooses(self) -> bool:
        return self.choice is not self.train

    def score(self, truth: np.ndarray, answers: np.ndarray) -> float:
        """Accuracy in percent, the mean recall of the true classes if balanced, or R2 = 1 − Σ(y − ŷ)²/Σ(y − mean)²."""
        if self.kind == "classify" and self.balanced:
            return 100 * float(np.mean([np.mean(answers[truth == label] == label) for label in np.unique(truth)]))
        if self.kind == "classify":
            return 100 * float(np.mean(truth == answers))
        return 1 - float(np.square(truth - answers).sum() / np.square(truth - truth.mean()).sum())

    def baseline(self) -> float:
        """The naive baseline on the test data: always the commonest class, or the mean, of the training data.

        For balanced accuracy it is 100 divided by the number of classes in the test data.
        """
        if self.kind == "classify" and self.balanced:
            return 100 / len(np.unique(self.test.y))
        if self.kind == "classify":
            labels, counts = np.unique(self.data.train.y, return_counts=True)
            return self.score(self.test.y, np.full(len(self.test), labels[counts.argmax()]))
        return self.score(self.test.y, np.full(len(self.test), self.data.train.y.mean()))


def pose(
    data: Dataset, *, task: str, test_fraction: float | None, seed: int, choose: bool, metric: str = "accuracy"
) -> Problem:
    """The data as a problem, with parts held out by the seed where the data has none."""
    kind = kind_of(data.train.y, task)
    by_class = kind == "classify"
    if metric == "balanced" and not by_class:
        raise SettingsError("--metric balanced is for classes, but the labels are values; leave it out")
    data = replace(data, train=_typed(data.train, kind), test=data.test and _typed(data.test, kind))
    notes = [*data.notes, *_constant_channels(data)]
    if by_class:
        check_classes(data.train.y)
    data, test, told = _with_test(data, test_fraction, seed, by_class=by_class)
    assert data.test is not None
    notes += told
    if by_class:
        notes += _test_labels(data.train.y, data.test.y)
    else:
        _check_values(data.train.y, data.test.y)
    train, choice, chosen, told = _with_choice(data.train, seed, choose=choose, by_class=by_class)
    return Problem(
        kind=kind,
        data=data,
        train=train,
        choice=choice,
        test=data.test,
        classes=tuple(np.unique(data.train.y).tolist()) if by_class else (),
        notes=(*notes, *told),
        split={"test": test, "choice": chosen},
        balanced=metric == "balanced",
    )


def _with_test(
    data: Dataset, test_fraction: float | None, seed: int, *, by_class: bool
) -> tuple[Dataset, str, list[str]]:
    """The data with a test part, the split in words, and notes for the user."""
    if data.test is not None and test_fraction is not None:
        raise SettingsError("the data has a test set already; leave out --test-fraction")
    if data.test is not None:
        test, notes = given(data.train, data.test)
        if test == "given":
            notes += leaks.told(data.train, data.test, drawn=False)
        return data, test, notes
    fraction = 0.2 if test_fraction is None else test_fraction
    held = hold_out_test(data.train, fraction, seed, by_class=by_class)
    test = described(data.train, held, by_class=by_class)
    groups = "" if data.train.groups is None else f" ({test})"
    notes = [
        f"no test set was given: {held.sum()} of {len(held)} sequences, drawn with seed {seed}, are held out{groups}"
    ]
    data = replace(data, train=data.train.rows(~held), test=data.train.rows(held))
    if data.train.groups is None:
        assert data.test is not None
        notes += leaks.told(data.train, data.test, drawn=True)
    return data, test, notes


def _with_choice(
    train: Labelled, seed: int, *, choose: bool, by_class: bool
) -> tuple[Labelled, Labelled, str | None, list[str]]:
    """The training part, the part that chooses the bits, the split in words, and notes for the user."""
    if not choose:
        return train, train, None, []
    held = hold_out(train, CHOICE, seed, stream=12, by_class=by_class)
    if held.sum() < FEWEST:
        note = f"fewer than {FEWEST} sequences could be held out to choose the bits; the training data is used instead"
        return train, train, None, [note]
    note = f"{held.sum()} training sequences are held out to choose the bits; a single width trains on them too"
    return train.rows(~held), train.rows(held), described(train, held, by_class=by_class), [note]


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
    """Two classes or more, and two sequences per class on average."""
    classes = np.unique(y)
    if len(classes) < 2:
        raise DataError(
            f"there is one class only, {classes[0]!s}; a classifier needs at least two: check that it is the right "
            "column"
        )
    if len(y) < 2 * len(classes):
        raise DataError(
            f"{len(y)} training sequences for {len(classes)} classes are too few: give at least "
            "two per class, join classes, or add --task regress if the labels are values to predict"
        )


def _typed(part: Labelled, kind: str) -> Labelled:
    if kind == "regress":
        return replace(part, y=part.y.astype(np.float64))
    return replace(part, y=part.y.astype(str)) if part.y.dtype.kind == "f" else part  # classes named 0.5 and 1.5


def _constant_channels(data: Dataset) -> list[str]:
    samples = data.train.x.samples()
    constant = np.flatnonzero((samples == samples[0]).all(0))
    if len(constant) == samples.shape[1]:
        raise DataError(
            f"every sample of the training data is {samples[0].tolist()}, so nothing can be learned; check the file"
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
        raise DataError(
            f"every training value is {train[0]}, so nothing can be learned; check that it is the right column"
        )
    if (test == test[0]).all():
        raise DataError(f"every test value is {test[0]}: R2 needs values that differ; give another test set")


def _some(labels: np.ndarray) -> str:
    names = [str(label) for label in np.unique(labels)]
    return ", ".join(names[:MANY]) + (f" and {len(names) - MANY} more" if len(names) > MANY else "")
