"""The adding task: the sum of two marked numbers of a long sequence (paper, appendix on the adding task)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qornn.tasks.base import Batch, RawInput, Split, Task, check_count, check_split, generator, split_rows

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Adding(Task):
    """T uniform numbers, one marked in each half; the target is the sum of the marked two.

    The training set is fixed and shuffled each epoch, as in the paper. Sequence i is a function of (seed, split, i),
    drawn again whenever it is needed [ours]: 100 000 stored sequences would take 600 MB, a batch of 50 is drawn in
    about 2 ms. When T is odd the second half is the longer one [ours].
    """

    name = "adding"
    metric_name = "mse"
    readout = "last"
    n_i = 2  # value, marker
    n_o = 1

    T: int = 750
    train_size: int = 100_000
    validation_size: int = 2000
    test_size: int = 2000

    def __post_init__(self) -> None:
        check_count("T", self.T, least=2)  # each half holds one marker
        for field in ("train_size", "validation_size", "test_size"):
            check_count(field, getattr(self, field))

    @property
    def naive_baseline(self) -> float:
        """Always answering 1: the variance of the sum of two uniform numbers, 2·1/12 ≈ 0.167."""
        return 1 / 6

    @property
    def raw_input(self) -> RawInput:
        """Values and markers in 0..1, on 15 bits."""
        return RawInput(0, 2**15 - 1, 1 / (2**15 - 1))

    def size(self, split: Split) -> int:
        return {"train": self.train_size, "validation": self.validation_size, "test": self.test_size}[
            check_split(split)
        ]

    def batch(self, split: Split, index: int, batch: int, *, seed: int = 0) -> Batch:
        import torch

        rows = split_rows(self.size(split), split, index, batch, seed)
        x = np.zeros((len(rows), self.T, 2), np.float32)  # (B, T, 2)
        target = np.empty(len(rows), np.float32)  # (B,)
        half = self.T // 2
        for b, row in enumerate(rows.tolist()):
            rng = generator(seed, split, row)
            marked = [int(rng.integers(half)), int(rng.integers(half, self.T))]
            x[b, :, 0] = rng.random(self.T, np.float32)
            x[b, marked, 1] = 1
            target[b] = x[b, marked, 0].sum()
        return Batch(torch.from_numpy(x), torch.from_numpy(target))

    def loss(self, y: Tensor, batch: Batch) -> Tensor:
        from qornn.tasks import losses

        return losses.squared_error(y, batch)

    def metric(self, y: Tensor, batch: Batch) -> float:
        return self.loss(y, batch).item()
