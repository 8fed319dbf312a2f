"""calibrate(): statistics of the states of a trained network on data, in one streaming pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qornn._io.progress import progress
from qornn.errors import SettingsError
from qornn.lowering.source import open_source
from qornn.tasks import Batch, Task

PERCENTILES = (99.0, 99.9, 99.99, 99.999)
BINS = 4096
COUNTED = 2**24  # values at once: histc counts in their own type, and float32 holds every whole number up to here
SEQUENCES = 10_000  # of each split, unless more are asked for
CHECKED = 64  # sequences, spread over the data, on which the finished program is compared with exact arithmetic
PARTS = 8  # batches that they come from


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Statistics of the states of one layer on data."""

    max_h: float = 0.0
    counts: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))  # of |h| in equal bins of 0..top
    top: float = 2.0**-20

    def percentile(self, percent: float) -> float:
        """|h| that this share of the states does not exceed, to one bin."""
        if not 0 < percent <= 100:
            raise SettingsError(f'alpha_h is "max" or a percentile in (0, 100], got {percent!r}')
        if percent == 100:
            return self.max_h
        index = int(np.searchsorted(self.counts.cumsum(), percent / 100 * self.counts.sum()))
        return min((index + 1) * self.top / BINS, self.max_h)

    def report(self) -> dict[str, Any]:
        """As plain numbers."""
        return {"max_h": self.max_h, "percentiles": {str(p): self.percentile(p) for p in PERCENTILES}}

    def with_batch(self, states: Tensor, lengths: Tensor | None) -> States:
        """These statistics with one more batch.  # (B, T, n_h)"""
        size = states.abs()
        max_h = float(size.max())
        if not math.isfinite(max_h):
            raise SettingsError("states are NaN or infinite on the calibration data; such a network cannot be lowered")
        top, counts = self.top, self.counts
        while top < max_h:  # twice the range: two bins become one
            top *= 2
            counts = np.concatenate([counts.reshape(-1, 2).sum(1), np.zeros(BINS // 2, np.int64)])
        if lengths is not None:  # zeros past a sequence's end are no states
            size = size[torch.arange(size.shape[1], device=size.device)[None] < lengths[:, None].to(size.device)]
        return States(max_h=max(self.max_h, max_h), counts=counts + _count(size, top), top=top)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Statistics of a network on data."""

    sequences: int
    max_x: float  # of inputs that are not codes
    layers: tuple[States, ...]
    batches: list[Batch] = field(repr=False)  # the first few sequences, to check the program on

    @property
    def max_h(self) -> float:
        """The largest state of any layer."""
        return max(states.max_h for states in self.layers)

    def percentile(self, percent: float) -> float:
        """|h| that this share of the states of the only layer does not exceed."""
        if len(self.layers) > 1:
            raise SettingsError("each layer has its own percentiles; use calibration.layers[i].percentile(...)")
        return self.layers[0].percentile(percent)


def calibrate(
    source: Any,
    data: Any = None,
    *,
    sequences: int | None = SEQUENCES,
    batch: int = 128,
    seed: int = 0,
    quiet: bool = False,
) -> Calibration:
    """Measure the states of a network on data, for `lower`: a histogram of |h| for each layer, and max|x|.

    - `source`: a run, or an `OrthogonalRNN` or `Stack`.
    - `data` (None): an array (N, T, n_i), codes (N, T), or an iterable of these. None means the training and validation
      data of the run's task; a module alone needs data.
    - `sequences` (10000): at most this many sequences of each split, or of the data. None means all.
    - `batch` (128): sequences per forward pass.
    - `seed` (0): chooses the training sequences.
    - `quiet` (False): no progress bar.
    """
    if sequences is not None and sequences < 1:
        raise SettingsError(f"sequences must be at least 1, or None for all, got {sequences}")
    model, task = open_source(source)
    parts, total = _batches(task, data, sequences, batch, seed)
    every = max(1, (total or 0) // PARTS)
    device = next(model.parameters()).device
    seen = Calibration(sequences=0, max_x=0.0, layers=tuple(States() for _ in model.layers), batches=[])
    with torch.no_grad():
        for number, part in enumerate(progress(parts, total=total, what="calibrating", quiet=quiet)):
            moved = part.to(device)
            given = zip(model.outputs(moved.x, moved.lengths), seen.layers, strict=True)
            found = tuple(states.with_batch(outputs, part.lengths) for outputs, states in given)
            seen = _with(seen, part, found, CHECKED // PARTS if total is None or number % every == 0 else 0)
    if not seen.sequences:
        raise SettingsError("there is no calibration data; give at least one sequence")
    if not all(states.max_h or layer.rounds for states, layer in zip(seen.layers, model.layers, strict=True)):
        raise SettingsError("every state is zero on the calibration data; train the network first")
    return seen


def _batches(
    task: Task | None, data: Any, sequences: int | None, batch: int, seed: int
) -> tuple[Iterable[Batch], int | None]:
    if data is None:
        if task is None:
            raise SettingsError(
                "a module alone has no data; call lower(model, x) with calibration data x, or lower(run)"
            )
        sizes = {split: min(task.size(split), sequences or task.size(split)) for split in ("train", "validation")}
        parts = (
            task.batch(split, start // batch, batch, seed=seed).rows(0, size - start)  # type: ignore[arg-type]
            for split, size in sizes.items()
            for start in range(0, size, batch)
        )
        return parts, sum(-(-size // batch) for size in sizes.values())
    if isinstance(data, Tensor | np.ndarray):
        data = torch.as_tensor(data)
        kept = data[:sequences] if sequences else data
        return (_as_batch(part) for part in kept.split(batch)), -(-len(kept) // batch)
    batches = (part if isinstance(part, Batch) else _as_batch(torch.as_tensor(part)) for part in data)
    return batches if sequences is None else _first(batches, sequences), None


def _first(batches: Iterable[Batch], sequences: int) -> Iterator[Batch]:
    for part in batches:
        yield part.rows(0, sequences)
        sequences -= len(part.x)
        if sequences <= 0:
            return


def _as_batch(x: Tensor) -> Batch:
    return Batch(x if x.ndim == 2 and not x.is_floating_point() else x.float(), torch.zeros(len(x)))


def _with(seen: Calibration, part: Batch, layers: tuple[States, ...], keep: int) -> Calibration:
    return Calibration(
        sequences=seen.sequences + len(part.x),
        max_x=max(seen.max_x, float(part.x.abs().max())),
        layers=layers,
        batches=[*seen.batches, part.rows(0, keep)] if keep and len(seen.batches) < 2 * PARTS else seen.batches,
    )


def _count(size: Tensor, top: float) -> np.ndarray:
    """Values in each of BINS equal bins of 0..top, exactly, with any number of threads.  # (BINS,) int64"""
    counts = np.zeros(BINS, np.int64)
    for part in size.flatten().split(COUNTED):
        counts += torch.histc(part, BINS, 0, top).cpu().numpy().astype(np.int64)
    return counts
