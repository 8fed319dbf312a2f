"""The user's own sequences: arrays in memory, of equal or different lengths, with classes or values to learn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from qornn.errors import SettingsError
from qornn.tasks.base import Batch, Split, Task, check_split, split_rows

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """N sequences in one padded array."""

    x: np.ndarray  # (N, T, C)
    lengths: np.ndarray | None  # (N,) int64 true lengths; None: all of length T

    @classmethod
    def padded(cls, parts: Iterable[np.ndarray]) -> Sequences:
        """Sequences (T_i, C) in one array, zeros after the end of the shorter."""
        parts = list(parts)
        lengths = np.array([len(part) for part in parts], np.int64)
        x = np.zeros((len(parts), int(lengths.max()), parts[0].shape[1]), np.result_type(*{p.dtype for p in parts}))
        for row, part in enumerate(parts):
            x[row, : len(part)] = part
        return cls(x, None if (lengths == lengths[0]).all() else lengths)

    def __len__(self) -> int:
        return len(self.x)

    def rows(self, rows: Any) -> Sequences:
        """Those sequences, padded no further than the longest of them."""
        if self.lengths is None:
            return Sequences(self.x[rows], None)
        lengths = self.lengths[rows]
        return Sequences(self.x[rows][:, : int(lengths.max(initial=1))], lengths)

    def windows(self, window: int) -> Sequences:
        """`window` samples as the channels of one step; samples that fill no window at the end are left out."""
        n, steps = len(self.x), self.x.shape[1] // window
        x = self.x[:, : steps * window].reshape(n, steps, window * self.x.shape[2])
        return Sequences(x, None if self.lengths is None else self.lengths // window)

    def samples(self) -> np.ndarray:
        """Every true sample, padding left out.  # (number of samples, C)"""
        if self.lengths is None:
            return self.x.reshape(-1, self.x.shape[2])
        return self.x[np.arange(self.x.shape[1]) < self.lengths[:, None]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Arrays(Task):
    """One answer per sequence, read from its last state; the metric is the loss, which early stopping watches."""

    name = "arrays"
    readout = "last"

    sequences: dict[Split, Sequences]  # float32, standardised; a split may be missing
    targets: dict[Split, np.ndarray]  # (N,) int64 classes or float32 values
    classes: int | None = None  # None: values
    class_weight: np.ndarray | None = None  # (classes,) of each class in the loss
    noise: float = 0.0  # deviation of what is added to every training sample, drawn anew each time
    copies: Sequences | None = None  # changed copies of the training sequences, all of them once or several times over
    mixup: float = 0.0  # a of Beta(a, a), the shares of two training sequences of one length that are added up; 0: one

    def __post_init__(self) -> None:
        if not len(self.sequences.get("train", ())):
            raise SettingsError("there is nothing to train on; give at least one sequence")
        for split, x in self.sequences.items():
            if len(x) != len(self.targets[check_split(split)]):
                raise SettingsError(
                    f"{len(x)} {split} sequences have {len(self.targets[split])} targets; give one each"
                )
        if self.copies is not None and (not len(self.copies) or len(self.copies) % self.size("train")):
            raise SettingsError(
                f"{len(self.copies)} copies of {self.size('train')} training sequences; copy all of them equally often"
            )

    @property
    def metric_name(self) -> str:  # type: ignore[override]  # a property here: it depends on the targets
        return "squared error" if self.classes is None else "cross-entropy"

    @property
    def n_i(self) -> int:
        return self.sequences["train"].x.shape[2]

    @property
    def n_o(self) -> int:
        return self.classes or 1

    @cached_property
    def naive_baseline(self) -> float:
        """The loss of one guess for all: ln(classes), or the variance of the values."""
        return float(np.var(self.targets["train"])) if self.classes is None else math.log(self.classes)

    @cached_property
    def _mean_weight(self) -> float:
        """Mean class weight of all training sequences."""
        assert self.class_weight is not None
        return float(self.class_weight[self.targets["train"]].mean())

    def size(self, split: Split) -> int:
        return len(self.targets[split]) if check_split(split) in self.targets else 0

    def batch(self, split: Split, index: int, batch: int, *, seed: int = 0) -> Batch:
        import torch

        rows = split_rows(self.size(split), split, index, batch, seed)
        part = self.sequences[split].rows(rows)
        if self.copies is not None and split == "train":
            part = self._copied(part, self.copies, rows, np.random.default_rng([seed, index, 2]))
        lengths = None if part.lengths is None else torch.from_numpy(part.lengths)
        x, target = part.x, self.targets[split][rows]
        if self.mixup and split == "train" and lengths is None:
            x, target = self._mixed(x, target, np.random.default_rng([seed, index, 1]))
        if self.noise and split == "train":
            drawn = np.random.default_rng([seed, index]).standard_normal(x.shape, np.float32)
            x = x + np.float32(self.noise) * drawn
        return Batch(torch.from_numpy(x), torch.from_numpy(target), lengths)

    def _copied(self, part: Sequences, copies: Sequences, rows: np.ndarray, random: np.random.Generator) -> Sequences:
        """One of its copies in place of every other sequence, at random."""
        n = self.size("train")
        chosen = rows + n * random.integers(len(copies) // n, size=len(rows))
        replaced = random.random(len(rows)) < 0.5
        x = copies.x[chosen][:, : part.x.shape[1]]  # of the same lengths
        return Sequences(np.where(replaced[:, None, None], x, part.x), part.lengths)

    def _mixed(self, x: np.ndarray, target: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Each sequence and another one of the batch, added up by random shares, and so their targets (mixup)."""
        share = random.beta(self.mixup, self.mixup, len(x)).astype(np.float32)
        other = random.permutation(len(x))
        if self.classes is not None:
            target = np.eye(self.classes, dtype=np.float32)[target]  # (B, classes)
        return _added(x, share, other), _added(target, share, other)

    def loss(self, y: Tensor, batch: Batch) -> Tensor:
        from qornn.tasks import losses

        if self.classes is None:
            return losses.squared_error(y, batch)
        import torch
        from torch.nn import functional as F

        if self.class_weight is None:
            return F.cross_entropy(y, batch.target)
        weight = torch.as_tensor(self.class_weight / self._mean_weight, dtype=y.dtype, device=y.device)
        # Not the weighted mean of a batch: that takes from a rare class what its weight gives it.
        return F.cross_entropy(y, batch.target, weight=weight, reduction="sum") / len(batch.target)

    def metric(self, y: Tensor, batch: Batch) -> float:
        return float(self.loss(y, batch))


def _added(values: np.ndarray, share: np.ndarray, other: np.ndarray) -> np.ndarray:
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    return share * values + (1 - share) * values[other]
