"""Images read one pixel per step and classified at the end: what smnist, pmnist and digits share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from qornn.bits import INPUT_BITS, lossless
from qornn.errors import SettingsError
from qornn.tasks.base import Batch, Picture, RawInput, Split, Task, check_count, check_split, split_rows

if TYPE_CHECKING:
    from torch import Tensor

CLASSES = 10


class Images(NamedTuple):
    """Images and their classes, in the bytes they are stored in."""

    pixels: np.ndarray  # (N, T) uint8
    labels: np.ndarray  # (N,) uint8


@dataclass(frozen=True, kw_only=True)
class Pixels(Task):
    """Ten classes of images; x_t is pixel t divided by the brightest value, or (pixel − centre)/spread."""

    metric_name = "accuracy"
    higher_is_better = True
    readout = "last"
    n_i = 1
    n_o = CLASSES
    peak: ClassVar[int]
    side: ClassVar[int]
    pen: ClassVar[float]  # these three as in Picture
    box: ClassVar[int]
    by_ink: ClassVar[bool] = False

    limit: int | None = None  # only the first so many training images, for quick trials
    centre: int = 0  # the pixel that x = 0 stands for
    spread: int | None = None  # pixels per unit of x; None: the brightest
    input_bits: int | None = None  # fewer than a pixel has: trained on what lower(input_bits=) leaves of it

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_count("limit", self.limit)
        if self.spread is not None:
            check_count("spread", self.spread)
        check_count("centre", self.centre, least=0)
        if self.input_bits is not None and (isinstance(self.input_bits, bool) or self.input_bits not in INPUT_BITS):
            low, high = INPUT_BITS[0], INPUT_BITS[-1]
            raise SettingsError(f"input_bits of a pixel must be in {low}..{high}, got {self.input_bits!r}")

    @abstractmethod
    def load(self) -> dict[Split, Images]:
        """The three splits, the whole of them."""

    @property
    def naive_baseline(self) -> float:
        """One class in ten, in percent."""
        return 100 / CLASSES

    @property
    def raw_input(self) -> RawInput:
        """The pixel as it is stored."""
        return RawInput(0, self.peak, 1 / (self.spread or self.peak), self.centre, self.input_bits)

    @property
    def picture(self) -> Picture:
        """The image and the order in which it is read."""
        order = self.arrange(np.arange(self.side**2)[None])[0]
        return Picture(self.side, tuple(order.tolist()), self.pen, self.box, self.by_ink)

    def size(self, split: Split) -> int:
        return len(self._images[check_split(split)].labels)

    def batch(self, split: Split, index: int, batch: int, *, seed: int = 0) -> Batch:
        import torch

        rows = split_rows(self.size(split), split, index, batch, seed)
        pixels, labels = self._images[split]
        x = self._coarse(self.arrange(pixels[rows]).astype(np.int32) - self.centre)  # (B, T)
        x = x.astype(np.float32) / np.float32(self.spread or self.peak)
        return Batch(torch.from_numpy(x[:, :, None]), torch.from_numpy(labels[rows].astype(np.int64)))

    def _coarse(self, raw: np.ndarray) -> np.ndarray:
        """Raw samples without the bits that the device drops, rounded and saturated as it does."""
        drop = 0 if self.input_bits is None else lossless(0, self.peak, self.centre) - self.input_bits
        if drop <= 0:
            return raw
        assert self.input_bits is not None
        top = 2 ** (self.input_bits - 1)
        return ((raw + (1 << drop >> 1)) >> drop).clip(-top, top - 1) << drop

    def arrange(self, pixels: np.ndarray) -> np.ndarray:
        """The order in which the pixels are read."""
        return pixels

    def loss(self, y: Tensor, batch: Batch) -> Tensor:
        from qornn.tasks import losses

        return losses.cross_entropy(y, batch)

    def metric(self, y: Tensor, batch: Batch) -> float:
        from qornn.tasks import losses

        return losses.accuracy(y, batch)

    @cached_property
    def _images(self) -> dict[Split, Images]:
        splits = self.load()
        train = splits["train"]
        return splits | {"train": Images(train.pixels[: self.limit], train.labels[: self.limit])}
