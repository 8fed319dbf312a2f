"""What a task is: batches that are a function of (seed, index), a loss, a metric and the naive baseline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from qornn.errors import SettingsError, unknown

if TYPE_CHECKING:
    from torch import Tensor

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class Picture(NamedTuple):
    """A square image of which every step reads one pixel."""

    side: int
    order: tuple[int, ...]  # step t reads pixel order[t], counted row by row
    pen: float  # width of a stroke in the data, in pixels
    box: int  # how long a drawing is in the data, its longer side, in pixels
    by_ink: bool  # whether the middle is where its ink balances, or that of its box


class RawInput(NamedTuple):
    """How inputs come from a sensor: whole numbers in low..high; x = scale·(raw − offset), on `bits` bits if said."""

    low: int
    high: int
    scale: float
    offset: int = 0
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs and targets of B sequences."""

    x: Tensor  # (B, T, n_i) float32, or one-hot codes (B, T) int64
    target: Tensor  # (B,) or (B, T) int64 classes, or (B,) float32 values
    lengths: Tensor | None = None  # (B,) int64 true lengths; None: all of length T

    @property
    def weight(self) -> int:
        """How many targets count: the denominator of the mean loss."""
        if self.lengths is not None and self.target.ndim == 2:
            return int(self.lengths.sum())
        return self.target.numel()

    def rows(self, start: int, stop: int) -> Batch:
        """Sequences start..stop-1: one process's share of a global batch."""
        return Batch(*(None if t is None else t[start:stop] for t in (self.x, self.target, self.lengths)))  # type: ignore[arg-type]

    def to(self, device: Any) -> Batch:
        return Batch(*(None if t is None else t.to(device) for t in (self.x, self.target, self.lengths)))  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """A task's fields are its settings: the keys of a recipe's [task] table."""

    name: ClassVar[str]
    metric_name: ClassVar[str]
    higher_is_better: ClassVar[bool] = False
    readout: ClassVar[Literal["last", "all"]]
    one_hot: ClassVar[bool] = False  # inputs are codes

    @property
    @abstractmethod
    def n_i(self) -> int:
        """Width of the input (the number of symbols when inputs are one-hot codes)."""

    @property
    @abstractmethod
    def n_o(self) -> int:
        """Width of the output."""

    @property
    @abstractmethod
    def naive_baseline(self) -> float:
        """The metric of the best predictor that ignores the input."""

    @abstractmethod
    def size(self, split: Split) -> int:
        """Number of sequences in the split."""

    @abstractmethod
    def batch(self, split: Split, index: int, batch: int, *, seed: int = 0) -> Batch:
        """Batch number `index` of the split, a pure function of its arguments.

        Training batches exist for every index ≥ 0 (a new shuffle or fresh sequences each epoch); a validation or test
        batch is part `index` of one pass in a fixed order.
        """

    @abstractmethod
    def loss(self, y: Tensor, batch: Batch) -> Tensor:
        """Mean over the targets that count; differentiable."""

    @abstractmethod
    def metric(self, y: Tensor, batch: Batch) -> float:
        """The figure people report, as a mean over the targets of this batch."""

    def batches(self, split: Split, batch: int, *, seed: int = 0, start: int = 0) -> Iterator[Batch]:
        """Batches from number `start` on: endless for training, one pass for validation and test."""
        check_split(split)
        check_count("batch", batch)
        index = start
        while split == "train" or index * batch < self.size(split):
            yield self.batch(split, index, batch, seed=seed)
            index += 1

    def steps_per_epoch(self, batch: int) -> int:
        """Training batches in one pass; the incomplete one at the end is left out."""
        return max(self.size("train") // batch, 1)

    @property
    def raw_input(self) -> RawInput | None:
        """The integers a device is fed; None for codes, or where the data must say."""
        return None

    @property
    def picture(self) -> Picture | None:
        """How to draw an input by hand; None where inputs are no pictures."""
        return None

    def facts(self) -> dict[str, Any]:
        """Facts that must be shown with every figure of this task. By default none."""
        return {}

    def converged(self, value: float) -> bool:
        """Better than the naive baseline by 1 %, or one point of accuracy; otherwise NC, as in the paper."""
        if self.higher_is_better:
            return value > self.naive_baseline + 1.0
        return value < 0.99 * self.naive_baseline


def check_split(split: Split) -> Split:
    """The split itself, or the error that names the three."""
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    return split


def check_count(name: str, value: object, *, least: int = 1) -> None:
    """Refuse anything but a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SettingsError(
            f"{name} must be a whole number of at least {least}, got {value!r}; set {name}={least} or more"
        )


def check_batch(split: Split, index: int, batch: int) -> None:
    """Refuse an invalid batch number or batch size."""
    check_split(split)
    check_count("index", index, least=0)
    check_count("batch", batch)


def generator(seed: int, split: Split, index: int, *, stream: int = 0) -> np.random.Generator:
    """Random numbers of one thing: independent streams for every (seed, split, index) and purpose (`stream`)."""
    check_count("seed", seed, least=0)
    return np.random.default_rng([seed, SPLITS.index(check_split(split)), index, stream])


def shuffled_rows(n: int, index: int, batch: int, seed: int) -> np.ndarray:
    """Rows of training batch `index`: each epoch is a fresh permutation of 0..n-1 cut into full batches."""
    batch = min(batch, n)
    per_epoch = n // batch
    first = (index % per_epoch) * batch
    return _epoch_order(n, index // per_epoch, seed)[first : first + batch]


def split_rows(n: int, split: Split, index: int, batch: int, seed: int) -> np.ndarray:
    """Rows of batch `index` among the n of a split: shuffled for training, otherwise in order and once."""
    check_batch(split, index, batch)
    if split == "train":
        return shuffled_rows(n, index, batch, seed)
    if index * batch >= n:
        held = f"the {n} {split} sequences make {-(-n // batch)} batches of {batch}"
        raise SettingsError(f"{split} batch {index} does not exist: {held}; iterate with batches({split!r}, {batch})")
    return np.arange(index * batch, min((index + 1) * batch, n))


@lru_cache(maxsize=2)
def _epoch_order(n: int, epoch: int, seed: int) -> np.ndarray:
    """Permutation of one epoch, kept because every batch of the epoch asks for it."""
    # Stream 1: the shuffle must not share its random numbers with the data of sequence `epoch`.
    order = generator(seed, "train", epoch, stream=1).permutation(n)
    order.flags.writeable = False  # one cached array serves every caller
    return order
