"""What the parameter `map` decides: the kind of network, how it is trained, and what its parameters mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from qornn.errors import SettingsError, shown
from qornn.estimators.network import Network
from qornn.estimators.standard import Standard
from qornn.tasks.arrays import Arrays, Sequences


class Design(ABC):
    """A kind of network as an estimator's parameters ask for it."""

    def __init__(self, estimator: Any) -> None:
        self.asked = estimator

    @abstractmethod
    def check(self) -> None:
        """Refuse parameters that this kind of network does not have, before the data is looked at."""

    @property
    @abstractmethod
    def shape(self) -> dict[str, Any]:
        """layers, width, pairs and skip of the network."""

    @property
    @abstractmethod
    def held_fraction(self) -> float:
        """The share of the sequences that is held out."""

    @property
    @abstractmethod
    def noise(self) -> float:
        """Deviation of what is added to every training sample."""

    def mixup(self, n: int) -> float:
        """The parameter `mixup`, of n sequences."""
        return 0.0 if self.asked.mixup is None else float(self.asked.mixup)

    def warp(self, n: int, *, classes: bool) -> float:
        """The parameter `warp`, of n sequences with classes or with values to learn."""
        return 0.0 if self.asked.warp is None else float(self.asked.warp)

    @abstractmethod
    def window(self, sequences: Sequences) -> int:
        """Samples per step."""

    def common_window(self, parts: Sequence[Sequences]) -> int | str:
        """The parameter `window` for data that comes in parts, the first to train on."""
        return min(self.window(part) for part in parts)

    def choices(self, sequences: Sequences, *, classes: bool) -> list[Design]:
        """Designs with no setting left open, to be compared on held-out data. Without such data the first is used."""
        return [self]

    def trains_on(self, held: np.ndarray) -> np.ndarray:
        """What stays held out (N,) when the chosen design is trained."""
        return held

    def describe(self) -> str:
        """How this design differs from the other choices."""
        return f"window {self.asked.window}"

    @abstractmethod
    def network(self, sequences: Sequences, standard: Standard, n_o: int, seed: int) -> Network:
        """The network before training, with what turns these sequences of windows into its inputs."""

    @abstractmethod
    def train(self, network: Network, task: Arrays, seed: int) -> list[dict[str, float]]:
        """Train it in place; one record per epoch."""

    @abstractmethod
    def batch(self, n: int) -> int:
        """Batch size, for n training sequences."""

    def refuse(self, why: str, **unused: Any) -> None:
        """Refuse parameters that have no effect here, unless they have their defaults."""
        for name, default in unused.items():
            value = getattr(self.asked, name)
            value = value.item() if isinstance(value, np.generic) else value
            if type(value) is not type(default) or value != default:
                raise SettingsError(f"{name}={shown(value)} {why}; leave {name} out")
