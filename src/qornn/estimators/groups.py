"""Sequences that belong together, such as those of one person: a held-out part takes all of a group, or none."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from qornn.errors import SettingsError
from qornn.estimators.tensors import from_torch

TRIED = 4000  # groups looked at, in several random orders where there are few: the best order is taken
ORDERS = 50


def group_numbers(groups: Any, n: int) -> np.ndarray | None:
    """The number of each sequence's group; labels are of any hashable kind. None where there are none.  # (N,)"""
    if groups is None:
        return None
    labels = _labels(groups)
    if len(labels) != n:
        raise SettingsError(f"X has {n} sequences but groups has {len(labels)} labels; give one per sequence")
    numbers: dict[Any, int] = {}
    found = np.empty(n, np.int64)
    for row, label in enumerate(labels):
        if _is_missing(label):
            raise SettingsError(
                f"groups holds {label} at row {row}, which is not a group; name one, or drop that sequence"
            )
        try:
            found[row] = numbers.setdefault(label, len(numbers))
        except TypeError as error:
            raise SettingsError(f"groups holds {label!r} at row {row}; use text or numbers as labels") from error
    return found


def hold_out_groups(
    groups: np.ndarray, classes: np.ndarray, fraction: float, random: np.random.Generator
) -> np.ndarray:
    """Which sequences are held out: those of whole groups, near that share of all and of each class.  # (N,)

    A class always keeps sequences that are not held out. Where no group leaves that, none is held out.
    """
    group, label = (np.unique(found, return_inverse=True)[1] for found in (groups, classes))
    counts = np.zeros((group.max() + 1, label.max() + 1))
    np.add.at(counts, (group, label), 1)
    orders = min(max(TRIED // len(counts), 1), ORDERS)
    tried = [_pick(counts, fraction, random.permutation(len(counts))) for _ in range(orders)]
    best = min(tried, key=lambda picked: _distance(counts[picked].sum(0), counts.sum(0), fraction))
    return np.isin(group, best)


def _pick(counts: np.ndarray, fraction: float, order: np.ndarray) -> np.ndarray:
    """Groups in that order, each taken if this comes nearer; at least one of those that may be.  # (picked,)"""
    total, held = counts.sum(0), np.zeros(counts.shape[1])
    picked: list[int] = []
    for g in order.tolist():
        more = held + counts[g]
        if (more < total).all() and _distance(more, total, fraction) < _distance(held, total, fraction):
            held = more
            picked.append(g)
    if not picked:
        allowed = order[(counts[order] < total).all(1)].tolist()
        picked = sorted(allowed, key=lambda g: _distance(counts[g], total, fraction))[:1]
    return np.array(picked, np.int64)


def _distance(held: np.ndarray, total: np.ndarray, fraction: float) -> float:
    """Distance from the requested share of all sequences and of each class; all classes count equally."""
    return float(abs(held.sum() / total.sum() - fraction) + np.abs(held / total - fraction).mean())


def _labels(groups: Any) -> list[Any]:
    groups = from_torch(groups, "groups")
    shape = getattr(groups, "shape", (0,))
    if isinstance(groups, str | bytes | Mapping | Set) or not hasattr(groups, "__len__") or len(shape) != 1:
        told = f"shape {tuple(shape)}" if len(shape) != 1 else f"{type(groups).__name__}"
        raise SettingsError(f"groups must be a list or array of one label per sequence, got {told}")
    return list(groups)


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas' NA is neither equal nor different; arrays are refused as not hashable
        return type(label).__name__ == "NAType"
