"""The Trainer with the best weights kept: stopped when the held-out loss no longer falls, or after one whole cycle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from qornn.errors import DivergenceError
from qornn.tasks.base import Batch
from qornn.train.distributed import Processes
from qornn.train.evaluate import evaluate
from qornn.train.log import Display, MetricsLog
from qornn.train.loop import Interrupted, Trainer

EPOCH = 16  # steps that an epoch counts as at least: a loss after fewer says little
SMALLEST_GAIN = 1e-3  # of the watched loss, relative
SOLVED = 1e-3  # of the naive loss: nothing is left to learn
EVALUATED = 512  # sequences at once
LINES = 100  # at most, printed during a whole cycle


class _Enough(Exception):
    """The watched loss has not fallen for `patience` epochs."""


class EarlyStopping(Trainer):
    """Keeps the weights of the epoch with the smallest watched loss, and stops `patience` epochs after it.

    An epoch of fewer than 16 steps counts as that share of one.
    """

    patience: float  # epochs
    history: list[dict[str, float]]
    kept: dict[str, Tensor]

    def fit(self, patience: int) -> list[dict[str, float]]:
        """Train; the model is left with the best weights. Return one record per epoch."""
        self.patience, self.history, self.kept = patience * max(EPOCH / self.steps_per_epoch, 1.0), [], {}
        self._smallest, self._since, self._losses = math.inf, 0, list[float]()
        try:
            self.run()
        except _Enough:
            pass
        except Interrupted as error:
            raise KeyboardInterrupt(str(error)) from error
        except DivergenceError as error:
            raise DivergenceError(
                f"training diverged at step {self.step}; remove outliers from X, use a smaller lr "
                f"(now {self.settings.lr:g}) or more bits"
            ) from error
        self.model.load_state_dict(self.kept)
        return self.history

    def _record(self, log: MetricsLog, display: Display, batch: Batch, loss: float, norm: float) -> None:
        self._losses.append(loss)
        if self.step % self.steps_per_epoch and self.step != self.total:
            return
        epoch = {"epoch": len(self.history) + 1, "loss": float(np.mean(self._losses))}
        self._losses.clear()
        if self.task.size("validation") and self._watches():
            epoch["validation"] = evaluate(self.model, self.task, "validation", EVALUATED)
        self.history.append(epoch)
        if self._is_told(len(self.history)):
            display.say("  ".join(f"{name} {value:.4g}" for name, value in epoch.items()))
        self._judge(epoch)

    def _is_told(self, epoch: int) -> bool:
        return True

    def _watches(self) -> bool:
        """Whether to evaluate on the held-out part now."""
        return True

    def _judge(self, epoch: dict[str, float]) -> None:
        """Keep the weights, or stop."""
        watched = epoch.get("validation", epoch["loss"])
        if watched < self._smallest * (1 - SMALLEST_GAIN) or self.step <= self.settings.warmup:
            self._since = 0  # the warm-up is no time to judge
        else:
            self._since += 1
        if watched < self._smallest or not self.kept:
            self._smallest = min(watched, self._smallest)
            self._keep()
        if self._since >= self.patience or watched < SOLVED * self.task.naive_baseline:
            raise _Enough

    def _keep(self) -> None:
        self.kept = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}

    def _join(self) -> Processes:
        return Processes()  # never a group: an estimator trains alone, whatever started the process it is in

    def _final(self, began: float) -> dict[str, Any]:
        return {}  # there is no test set: the user holds it


class WholeCycle(EarlyStopping):
    """Runs the whole schedule and keeps the last weights. The held-out part is evaluated once, at the end."""

    def fit(self, patience: int = 1) -> list[dict[str, float]]:
        """Train; patience has no meaning."""
        return super().fit(patience)

    def _is_told(self, epoch: int) -> bool:
        """At most a hundred lines are printed, even for thousands of short epochs."""
        return epoch % -(-self.settings.epochs // LINES) == 0

    def _watches(self) -> bool:
        return self.step == self.total

    def _judge(self, epoch: dict[str, float]) -> None:
        if self.step == self.total:
            self._keep()
