"""What is held out: a share of every class, or whole groups, and how the report says so."""

from __future__ import annotations

import numpy as np

from qornn.errors import DataError, SettingsError
from qornn.estimators.groups import hold_out_groups
from qornn.fit.dataset import Labelled

SHOWN = 5  # groups named in a note


def hold_out(part: Labelled, fraction: float, seed: int, *, stream: int, by_class: bool) -> np.ndarray:
    """Which sequences are held out, drawn by the seed: that share of every class, one at least staying.  # (N,)

    With groups they are whole groups, as near to that share as these allow.
    """
    if not 0 < fraction < 1:
        raise SettingsError(f"--test-fraction must lie between 0 and 1, got {fraction}; 0.2 holds out a fifth")
    random, y = np.random.default_rng([seed, stream]), part.y
    if part.groups is not None:
        return hold_out_groups(part.groups, y if by_class else np.zeros(len(y)), fraction, random)
    held = np.zeros(len(y), bool)
    parts = [np.flatnonzero(y == value) for value in np.unique(y)] if by_class else [np.arange(len(y))]
    for rows in parts:
        count = min(int(fraction * len(rows) + 0.5), len(rows) - 1)
        held[random.permutation(rows)[:count]] = True
    return held


def hold_out_test(part: Labelled, fraction: float, seed: int, *, by_class: bool) -> np.ndarray:
    """The same for the test: something must be held out.  # (N,)"""
    held = hold_out(part, fraction, seed, stream=11, by_class=by_class)
    if held.any():
        return held
    if part.groups is None:
        raise DataError(
            f"{len(held)} sequences are too few to hold out {fraction:.0%} for the test; give more, "
            "a separate test set, or a larger --test-fraction"
        )
    if len(np.unique(part.groups)) == 1:
        raise DataError(
            f"all sequences are of one group, {part.groups[0]!s}, so no group is left for the test; give a separate "
            "test set, or leave the groups out"
        )
    raise DataError(
        "no group can be held out for the test: each has a class that no other group has; give a separate test set, "
        "or leave the groups out"
    )


def described(part: Labelled, held: np.ndarray, *, by_class: bool) -> str:
    """A split in words."""
    if part.groups is not None:
        return f"by group, {len(np.unique(part.groups[held]))} of {len(np.unique(part.groups))} groups"
    return f"{'by class' if by_class else 'at random'}, {held.sum()} of {len(held)} sequences"


def given(train: Labelled, test: Labelled) -> tuple[str, list[str]]:
    """A given test set in words, and a note if groups are in both training and test."""
    if train.groups is None or test.groups is None:
        return "given", []
    own, shared = np.unique(test.groups), np.intersect1d(train.groups, test.groups)
    if not len(shared):
        return f"given, none of its {len(own)} groups in training", []
    told = ", ".join(map(str, shared[:SHOWN])) + (" …" if len(shared) > SHOWN else "")
    note = (
        f"{len(shared)} of the {len(own)} groups of the test set are in training too ({told}): figures may be better "
        "than for new groups"
    )
    return f"given, {len(shared)} of its {len(own)} groups in training too", [note]
