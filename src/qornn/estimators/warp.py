"""Copies of sequences in which time runs now faster, now slower: more to learn from where sequences are few."""

from __future__ import annotations

import numpy as np

from qornn.tasks.arrays import Sequences

KNOTS = 6  # places, evenly spaced, that are moved in time by random amounts; the samples between follow them


def warped(sequences: Sequences, deviation: float, random: np.random.Generator) -> Sequences:
    """Every sequence once, its knots moved by that deviation, a share of its length."""
    x = sequences.x.copy()
    lengths = np.full(len(x), x.shape[1]) if sequences.lengths is None else sequences.lengths
    for row, length in enumerate(lengths):
        if length > 1:
            x[row, :length] = _warped(x[row, :length], deviation, random)
    return Sequences(x, sequences.lengths)


def _warped(samples: np.ndarray, deviation: float, random: np.random.Generator) -> np.ndarray:
    """The same number of samples, read at other times.  # (T, C)"""
    last = len(samples) - 1
    knots = np.linspace(0, last, KNOTS)
    moved = knots + len(samples) * deviation * random.standard_normal(KNOTS)
    at = np.clip(np.interp(np.arange(len(samples)), knots, moved), 0, last)
    before = np.minimum(at.astype(np.int64), last - 1)
    share = (at - before)[:, None]
    found = (1 - share) * samples[before] + share * samples[before + 1]
    if samples.dtype.kind != "f":
        return np.rint(found).astype(samples.dtype)
    nearest = samples[np.rint(at).astype(np.int64)]
    return np.where(np.isnan(found), nearest, found)  # a missing sample takes no neighbour with it
