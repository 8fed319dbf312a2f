"""What a network is to learn, and one training of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qornn.estimators.design import Design
from qornn.estimators.network import Network
from qornn.estimators.standard import Standard
from qornn.estimators.threads import threads
from qornn.estimators.warp import warped
from qornn.tasks.arrays import Arrays, Sequences

COPIES = 4000  # sequences that are made by warping, about; each of few is warped often
MOST_COPIES = 32  # of one sequence


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Lesson:
    """Sequences with their targets, and how they are given to a network."""

    sequences: Sequences
    standard: Standard
    y: np.ndarray  # (N,) classes or standardised values
    classes: int | None  # None: values
    seed: int
    options: dict[str, Any]  # of Arrays: noise, class_weight

    def taught(self, design: Design, held: np.ndarray) -> tuple[Network, list[dict[str, float]]]:
        """A network trained on all but what is held out (N,), and one record per epoch."""
        window = design.window(self.sequences)
        sequences, standard = self.sequences.windows(window), self.standard.wide(window)
        network = design.network(sequences, standard, self.classes or 1, self.seed)
        x = _inputs(network, sequences)
        rows = {"train": np.flatnonzero(~held)} | ({"validation": np.flatnonzero(held)} if held.any() else {})
        task = Arrays(
            sequences={split: x.rows(r) for split, r in rows.items()},  # type: ignore[misc]
            targets={split: self.y[r] for split, r in rows.items()},  # type: ignore[misc]
            classes=self.classes,
            copies=self._copies(design, network, rows["train"], window),
            **self.options,
        )
        with threads(network.work(design.batch(len(rows["train"])) * x.x.shape[1])):
            history = design.train(network, task, self.seed)
            network.seen = network.look(sequences)
        return network, history

    def _copies(self, design: Design, network: Network, rows: np.ndarray, window: int) -> Sequences | None:
        """The inputs of copies of these sequences that are warped in time, all of them several times over."""
        deviation = design.warp(len(self.sequences), classes=self.classes is not None)
        if not deviation:
            return None
        times = max(1, min(MOST_COPIES, COPIES // len(rows)))
        sequences = self.sequences.rows(np.tile(rows, times))
        found = warped(sequences, deviation, np.random.default_rng([self.seed, 3]))
        return _inputs(network, found.windows(window))

    def best_of(self, designs: Sequence[Design], held: np.ndarray, *, verbose: bool) -> Design:
        """The design whose network has the smallest loss on what is held out; the first where nothing is."""
        if len(designs) == 1 or not held.any():
            return designs[0]
        losses, began, networks = list[float](), time.monotonic(), len(designs) + 1
        for number, design in enumerate(designs, 1):
            if verbose:
                _tell(number, networks, f"to compare: {design.describe()}", began)
            losses.append(self.taught(design, held)[1][-1]["validation"])
        best = designs[int(np.argmin(losses))]
        if verbose:
            _tell(networks, networks, f"the better one on all sequences: {best.describe()}", began)
        return best


def _tell(number: int, of: int, what: str, began: float) -> None:
    """The number of the network that is trained now, and the time left if each takes as long as those before."""
    done = number - 1
    seconds = (time.monotonic() - began) / max(done, 1) * (of - done)
    more = f", about {seconds:.0f} s more" if done else ""
    print(f"network {number} of {of}, {what}{more}", file=sys.stderr, flush=True)


def _inputs(network: Network, sequences: Sequences) -> Sequences:
    x = network.inputs(sequences)
    return Sequences(x.x.astype(np.float32, copy=False), x.lengths)
