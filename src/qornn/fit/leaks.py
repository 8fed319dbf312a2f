"""Windows of one recording on both sides of a split: test sequences that equal or overlap training sequences."""

from __future__ import annotations

import numpy as np

from qornn.fit.dataset import Labelled
from qornn.tasks.arrays import Sequences

LARGEST = 8_000_000  # numbers of the training data looked at: about two seconds
OVERLAP = 4  # windows that overlap by at least this part of their length are found
FEWEST = 8  # samples of an overlap; fewer agree by chance
VARIED = 6  # changes of the signal within an overlap: flat parts agree by chance
RARE = 100  # overlapping sequences fewer than this part of the test data are taken for chance
MIX, BASE = np.uint64(0xBF58476D1CE4E5B9), 0x9E3779B97F4A7C15  # odd numbers whose bits look random


def told(train: Labelled, test: Labelled, *, drawn: bool) -> list[str]:
    """A note where the test data looks like the training data; `drawn`: the test part was held out of one file."""
    equal, overlapping = counted(train.x, test.x)
    if overlapping < max(2, len(test) / RARE):
        overlapping = 0
    if not equal and not overlapping:
        return []
    found = [f"{equal} equal one in training"] if equal else []
    found += [f"{overlapping} overlap one in training"] if overlapping else []
    way = (
        "name the group of each sequence with --group COLUMN, or an array `groups`"
        if drawn
        else "split the data by recording, and name the recordings with --group COLUMN or `groups`"
    )
    return [
        f"of {len(test)} test sequences {' and '.join(found)}: windows of one recording seem to be in both parts, "
        f"so the figures are too optimistic; {way}"
    ]


def counted(train: Sequences, test: Sequences) -> tuple[int, int]:
    """How many test sequences equal one in training, and how many others overlap one."""
    most = max(LARGEST // train.x[0].size, 1)
    if len(train) > most:
        train = train.rows(np.random.default_rng(0).permutation(len(train))[:most])
    ours, theirs = _Hashed(train), _Hashed(test)
    equal = np.isin(theirs.whole(), ours.whole())
    length = max(int(np.median(theirs.lengths)) // OVERLAP, FEWEST)
    known, usable = ours.blocks(length)
    found, telling = theirs.blocks(length)
    if not found.shape[1] or not known.shape[1]:
        return int(equal.sum()), 0
    last = np.maximum(theirs.lengths - length, 0)
    ends = np.stack([np.zeros_like(last), last], 1)  # a window overlaps with its beginning or its end
    blocks, counts = (np.take_along_axis(array, ends, 1) for array in (found, telling))
    overlaps = (_are_among(blocks, known[usable]) & counts).any(1)
    return int(equal.sum()), int((overlaps & ~equal).sum())


def _are_among(few: np.ndarray, many: np.ndarray) -> np.ndarray:
    """np.isin, which would sort the many: most of them already differ in their low bits."""
    low = np.uint64(0xFFFF)
    seen = np.zeros(int(low) + 1, bool)
    seen[few & low] = True
    return np.isin(few, many[seen[many & low]])


class _Hashed:
    """Sequences by running sums of hashed samples: the hash of any block is a difference of two of them.

    H(a, b) = Σ h_t·BASE^t for t in a..b-1, divided by BASE^a: an odd number has an inverse modulo 2^64.
    """

    def __init__(self, sequences: Sequences) -> None:
        n, steps, _ = sequences.x.shape
        self.lengths = np.full(n, steps) if sequences.lengths is None else sequences.lengths.astype(np.int64)
        samples = _samples(sequences.x)
        self.changes = _sums((samples[:, 1:] != samples[:, :-1]).astype(np.int32))  # (N, T)
        self.sums = _sums(samples * _powers(BASE, steps))  # (N, T + 1)

    def whole(self) -> np.ndarray:
        """Of each sequence.  # (N,)"""
        ends = np.take_along_axis(self.sums, self.lengths[:, None], 1)[:, 0]
        return ends * MIX + self.lengths.astype(np.uint64)

    def blocks(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Of every block of so many samples, and whether it is inside its sequence and varies.  # two (N, starts)"""
        starts = max(self.sums.shape[1] - length, 0)
        found = (self.sums[:, length:] - self.sums[:, :starts]) * _powers(pow(BASE, -1, 2**64), starts)
        changes = self.changes[:, length - 1 :] - self.changes[:, :starts]
        return found, (changes >= VARIED) & (np.arange(starts) <= (self.lengths - length)[:, None])


def _samples(x: np.ndarray) -> np.ndarray:
    """A hash of all channels of each sample.  # (N, T, C) -> (N, T) uint64"""
    total = np.zeros(x.shape[:2], np.uint64)
    for c in range(x.shape[2]):
        bits = (x[:, :, c].astype(np.float64) + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        bits = (bits ^ (bits >> np.uint64(30))) * MIX
        total = (total ^ bits ^ (bits >> np.uint64(27))) * np.uint64(BASE)
    return total


def _sums(x: np.ndarray) -> np.ndarray:
    """Running sums that begin with 0.  # (N, T) -> (N, T + 1)"""
    return np.concatenate([np.zeros((len(x), 1), x.dtype), np.cumsum(x, 1, dtype=x.dtype)], 1)


def _powers(base: int, n: int) -> np.ndarray:
    """1, base, base² … modulo 2^64.  # (n,)"""
    factors = np.full(n, base, np.uint64)
    factors[:1] = 1
    return np.cumprod(factors, dtype=np.uint64)
