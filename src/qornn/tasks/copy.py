"""The copy task: remember ten symbols over T0 blanks (paper, appendix on the copy task)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qornn.tasks.base import Batch, Split, Task, check_batch, check_count, check_split, generator, split_rows

if TYPE_CHECKING:
    from torch import Tensor

LENGTH = 10  # symbols to remember
SYMBOLS = 8
BLANK = 0
MARKER = SYMBOLS + 1


@dataclass(frozen=True, kw_only=True)
class Copy(Task):
    """Ten symbols of 1..8, T0 blanks, a marker at position T0 + 11, nine blanks; the last ten targets are the symbols.

    Training sequences are drawn afresh for every batch [ours: the paper counts 512 000 per epoch and does not say
    whether they repeat]; validation and test are fixed sets, streams of their own, for each seed.

    `grow` is the number of training batches over which the blanks rise evenly to T0 [ours]. 0 is T0 from the first
    batch on. Validation and test always have T0.
    """

    name = "copy"
    metric_name = "cross-entropy"
    readout = "all"
    one_hot = True
    n_i = SYMBOLS + 2
    n_o = SYMBOLS + 1  # the marker is never a target

    T0: int = 1000
    grow: int = 0
    train_size: int = 512_000
    validation_size: int = 100
    test_size: int = 100

    def __post_init__(self) -> None:
        for field in ("T0", "train_size", "validation_size", "test_size"):
            check_count(field, getattr(self, field))
        check_count("grow", self.grow, least=0)

    @property
    def T(self) -> int:
        """Length of a sequence."""
        return self.T0 + 2 * LENGTH

    @property
    def naive_baseline(self) -> float:
        """Blanks, then a uniform guess ten times: 10·ln 8/(T0 + 20)."""
        return LENGTH * math.log(SYMBOLS) / self.T

    def size(self, split: Split) -> int:
        return {"train": self.train_size, "validation": self.validation_size, "test": self.test_size}[
            check_split(split)
        ]

    def batch(self, split: Split, index: int, batch: int, *, seed: int = 0) -> Batch:
        import torch

        symbols = self._symbols(split, index, batch, seed)  # (B, 10)
        blanks = self._blanks(split, index)
        x = np.full((len(symbols), blanks + 2 * LENGTH), BLANK)  # (B, T)
        x[:, :LENGTH] = symbols
        x[:, blanks + LENGTH] = MARKER
        target = np.full_like(x, BLANK)  # (B, T)
        target[:, -LENGTH:] = symbols
        return Batch(torch.from_numpy(x), torch.from_numpy(target))

    def loss(self, y: Tensor, batch: Batch) -> Tensor:
        from qornn.tasks import losses

        return losses.cross_entropy(y, batch)

    def metric(self, y: Tensor, batch: Batch) -> float:
        return self.loss(y, batch).item()

    def _blanks(self, split: Split, index: int) -> int:
        """T0, or what it has risen to."""
        if split != "train" or index >= self.grow:
            return self.T0
        return max(1, self.T0 * (index + 1) // self.grow)

    def _symbols(self, split: Split, index: int, batch: int, seed: int) -> np.ndarray:
        if split == "train":
            check_batch(split, index, batch)
            return generator(seed, split, index).integers(1, MARKER, (min(batch, self.train_size), LENGTH))
        rows = split_rows(self.size(split), split, index, batch, seed)
        # The whole set at once: what is tested must not depend on the batch size.
        return generator(seed, split, 0).integers(1, MARKER, (self.size(split), LENGTH))[rows]
