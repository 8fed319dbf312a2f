"""A new task in one file: after T steps, which symbol came first?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qornn.tasks import TASKS, Batch, Split, Task
from qornn.tasks.base import check_count, check_split, generator, split_rows

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class FirstSymbol(Task):
    """T random symbols, one per step; the target is the first one. The other symbols carry no information."""

    name = "first_symbol"
    metric_name = "accuracy"
    higher_is_better = True
    readout = "last"
    one_hot = True  # x holds codes (B, T), not vectors

    T: int = 20
    symbols: int = 4
    train_size: int = 2000
    validation_size: int = 200
    test_size: int = 200

    def __post_init__(self) -> None:
        check_count("symbols", self.symbols, least=2)
        for field in ("T", "train_size", "validation_size", "test_size"):
            check_count(field, getattr(self, field))

    @property
    def n_i(self) -> int:
        return self.symbols

    @property
    def n_o(self) -> int:
        return self.symbols

    @property
    def naive_baseline(self) -> float:
        """One guess in `symbols` is right, in percent."""
        return 100 / self.symbols

    def size(self, split: Split) -> int:
        sizes = {"train": self.train_size, "validation": self.validation_size, "test": self.test_size}
        return sizes[check_split(split)]

    def batch(self, split: Split, index: int, batch: int, *, seed: int = 0) -> Batch:
        import torch

        rows = split_rows(self.size(split), split, index, batch, seed)  # shuffled each epoch in training, else in order
        every = generator(seed, split, 0).integers(self.symbols, size=(self.size(split), self.T))
        x = torch.from_numpy(every[rows])  # (B, T)
        return Batch(x, x[:, 0].clone())

    def loss(self, y: Tensor, batch: Batch) -> Tensor:
        from qornn.tasks import losses

        return losses.cross_entropy(y, batch)

    def metric(self, y: Tensor, batch: Batch) -> float:
        from qornn.tasks import losses

        return losses.accuracy(y, batch)


TASKS["first_symbol"] = FirstSymbol
