"""The training loop: short, because the retraction and the exact resume must be visible."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from qornn.draws import drawing
from qornn.errors import DivergenceError, SettingsError
from qornn.model import alone
from qornn.recipe import TrainSettings
from qornn.tasks.base import Batch, Split, Task
from qornn.train import checkpoint as checkpoints
from qornn.train import place
from qornn.train.average import Average
from qornn.train.device import choose_device
from qornn.train.distributed import Processes, join
from qornn.train.evaluate import Stopped, diagnostics, evaluate
from qornn.train.log import Display, MetricsLog, draw_curve, read_metrics
from qornn.train.objective import diverged, freeze, named, penalties, verdict
from qornn.train.optim import (
    learning_rate,
    make_optimizer,
    recurrences,
    sequence_layers,
    set_learning_rate,
    step_and_retract,
    total_steps,
)
from qornn.train.process import flush_denormals, stop_politely
from qornn.train.surroundings import own_torch

REPAIR_EVERY = 1000  # steps between looks at whether round-off has carried a retracted W off the manifold
CURVE_SECONDS = 10  # between drawings of the learning curve
EXPLOSION = 1e6  # times the best loss so far
FREEZE = 0.8  # of the training: then the steps of rounded states stay where they are


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: the run was saved and can be resumed."""


class Trainer:
    """Trains a model on a task: `Trainer(model, task, settings).run()`.

    - `model`: the network, which is moved to the device and trained in place.
    - `task`: gives batches, loss and metric, as `make_task` makes it.
    - `settings` (None): the `TrainSettings`: optimizer, learning rate, epochs and so on. None means their defaults.
    - `out` (None): the run folder for metrics, curve and checkpoints. None keeps nothing on disk.
    - `device` ("auto"): auto, cpu, cuda or mps. auto takes CUDA, then MPS, then the CPU.
    - `quiet` (False): no progress bar and no messages.

    A checkpoint holds everything that the next step depends on. After `restore(checkpoint)` a run ends with the same
    bits as one never interrupted, on the same machine with the same number of threads and processes. Layers draw random
    numbers only from (seed, step, process): see qornn/draws.py.
    """

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        settings: TrainSettings | None = None,
        *,
        out: str | Path | None = None,
        device: str = "auto",
        quiet: bool = False,
    ) -> None:
        self.settings = settings or TrainSettings()
        self.device = choose_device(device)
        self.processes = self._join()
        self.rows = self.processes.share(min(self.settings.batch, task.size("train")))
        self.model, self.task = model.to(self.device), task
        self.out = Path(out) if out is not None else None
        self.quiet = quiet or not self.processes.first
        self.layers = recurrences(model)
        self.rounding, self.parameters = sequence_layers(model), list(model.parameters())  # every step asks for them
        self.optimizer = make_optimizer(model, self.settings)
        self.generator = torch.Generator().manual_seed(self.settings.seed + 2**32)  # of the retraction alone
        self.steps_per_epoch = task.steps_per_epoch(self.settings.batch)
        self.total = self.settings.steps or total_steps(self.steps_per_epoch, self.settings)
        self.average = Average(self.settings.average, self.total)
        self.recipe: dict[str, dict[str, Any]] = {"train": asdict(self.settings)}  # checkpoints belong to it
        self.step = 0
        self.resuming = False  # what the folder holds is this run's own
        self.best = math.inf  # smallest training loss so far
        self.seconds = 0.0  # of training, over all sittings
        self._log_length = 0
        self._asked: list[int] = []  # signals to stop
        self._unseen: dict[str, float] | None = None  # of a step whose evaluation was stopped, for its record
        self._drawn = 0.0  # when the curve was
        self._project(tolerance=1e-6)

    def _join(self) -> Processes:
        return join(self.device)

    @own_torch()
    def run(self) -> dict[str, Any]:
        """Train to the end; the result's figures, measured on the test set once."""
        with place.keep(self.out, first=self.processes.first):
            return self._run()

    def _run(self) -> dict[str, Any]:
        began = time.monotonic() - self.seconds
        if self.out is not None and self.processes.first:
            if not self.resuming:
                place.check_new(self.out)
            read_metrics(self.out / "metrics.jsonl")  # damaged, it would end the run at the next drawing
        log = MetricsLog(self.out if self.processes.first else None, length=self._log_length)
        model = self.processes.wrap(self.model)
        try:
            with (
                flush_denormals(),
                Display(self.total, start=self.step, quiet=self.quiet) as display,
                stop_politely() as self._asked,
            ):
                try:
                    self._train(model, log, display, began)
                    result = self._final(began)
                except Stopped:
                    self.save(log.length)
                    raise self._interrupted() from None
            log.write({"step": self.step, **{k: v for k, v in result.items() if isinstance(v, int | float)}})
        finally:
            log.close()
        return result

    def _train(self, model: nn.Module, log: MetricsLog, display: Display, began: float) -> None:
        if self._unseen is not None:
            batch = self.task.batch("train", self.step - 1, self.settings.batch, seed=self.settings.seed)
            self._record(log, display, batch, self._unseen["loss"], self._unseen["norm"])
        batches = self.task.batches("train", self.settings.batch, seed=self.settings.seed, start=self.step)
        saved, s = time.monotonic(), self.settings
        for batch in batches:
            if self.step >= self.total:
                break
            loss, norm, stop = self._one_step(model, batch, bool(self._asked))
            self.step += 1
            self.average.add_(self.model, self.step)
            if self.step == self.total:
                self._take_average()
            self.seconds = time.monotonic() - began
            display.step(self.step, loss)
            self._record(log, display, batch, loss, norm)
            due = s.checkpoint_every and self.step % s.checkpoint_every == 0
            if stop or due or time.monotonic() - saved > s.checkpoint_seconds or self.step == self.total:
                self.save(log.length)
                saved = time.monotonic()
            if stop and self.step < self.total:
                raise self._interrupted()

    def _take_average(self) -> None:
        self.average.apply_(self.model)
        if self.average.mean:
            self._project()  # a mean of orthogonal matrices is not one

    def _interrupted(self) -> Interrupted:
        way_on = f", saved; `qornn resume {self.out}` continues" if self.out else ""
        return Interrupted(f"interrupted at step {self.step} of {self.total}{way_on}")

    def _one_step(self, model: nn.Module, batch: Batch, asked: bool) -> tuple[float, float, bool]:
        """One update; loss over the global batch, gradient norm, and whether some process was asked to stop."""
        share = batch.rows(*self.rows)
        part = share.to(self.device)
        try:
            # Frozen or not is a function of the step alone, so that resuming repeats it.
            freeze(self.rounding, self.step >= FREEZE * self.total)
            with drawing(self.settings.seed, self.step, self.processes.rank), alone(self.processes.world == 1):
                y, h = model(part.x, lengths=part.lengths)
        except SettingsError as error:  # weights that no map accepts any more, or a bad sample
            raise self._stopped(str(error)) from error
        self._last = part, y.detach()
        # DDP averages over processes; this weight makes the average the mean over the global batch's targets.
        loss = self.task.loss(y, part) * (share.weight * self.processes.world / batch.weight)
        state_penalty = self.settings.state_penalty * (len(part.x) * self.processes.world / len(batch.x))
        self.optimizer.zero_grad(set_to_none=True)
        (loss + penalties(self.layers, h, state_penalty)).backward()
        norm = self._clip()
        facts = torch.tensor([loss.item() / self.processes.world, float(asked)], dtype=torch.float64)
        value, stop = self.processes.sum(facts).tolist()
        self._check(value, norm)
        set_learning_rate(self.optimizer, learning_rate(self.step, self.steps_per_epoch, self.settings))
        step_and_retract(self.optimizer, self.layers, self.generator)
        if (self.step + 1) % REPAIR_EVERY == 0:
            self._project()
        return value, norm, stop > 0

    def _clip(self) -> float:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if self.settings.clip:
            nn.utils.clip_grads_with_norm_(self.parameters, self.settings.clip, norm)
        return float(norm)

    def _check(self, loss: float, norm: float) -> None:
        """Stop at NaN or explosion, before it reaches the weights."""
        limit = EXPLOSION * max(self.best, self.task.naive_baseline if not self.task.higher_is_better else 1.0)
        self.best = min(self.best, loss) if math.isfinite(loss) else self.best
        if math.isfinite(norm) and loss <= limit:
            return
        raise self._stopped(f"the norm of the gradient is {norm:g}" if loss <= limit else f"the loss is {loss:g}")

    def _stopped(self, what: str) -> DivergenceError:
        saved = checkpoints.files(self.out / "checkpoint") if self.out else []
        return diverged(self.step, what, self.settings.lr, saved[-1] if saved else None, recurrent=bool(self.layers))

    def _record(self, log: MetricsLog, display: Display, batch: Batch, loss: float, norm: float) -> None:
        s, record = self.settings, dict[str, Any]()
        if self.step % s.log_every == 0 or self.step in (1, self.total):
            lr = learning_rate(self.step - 1, self.steps_per_epoch, s)
            record = {"loss": loss, "training": self._training(), "grad_norm": norm, "lr": lr}
            record["seconds"] = round(self.seconds, 3)
        if self.step % (s.eval_every or self.steps_per_epoch) == 0 or self.step == self.total:
            self._unseen = {"loss": loss, "norm": norm, "training": record.get("training", math.nan)}
            value = self._evaluate("validation")
            self._unseen = None
            found = diagnostics(self.model, batch)
            record |= {"validation": None if math.isnan(value) else value, **found}
            if self.processes.first:
                display.say(f"step {self.step}  loss {loss:.4g}  {verdict(self.task, value)}  {named(found)}")
        if record:
            log.write({"step": self.step, "epoch": round(self.step / self.steps_per_epoch, 4), **record})
        if "validation" in record and self.out is not None and self.processes.first:
            now = time.monotonic()
            if now - self._drawn > CURVE_SECONDS or self.step == self.total:
                self._drawn = now
                draw_curve(self.out, metric=self.task.metric_name, baseline=self.task.naive_baseline)

    def _training(self) -> float:
        """The metric of this step's batch, before the step; with several processes, of a share."""
        if self._unseen is not None:
            return self._unseen["training"]
        part, y = self._last
        return self.task.metric(y, part)

    def _evaluate(self, split: Split) -> float:
        return evaluate(
            self.model,
            self.task,
            split,
            self.settings.batch,
            processes=self.processes,
            stop=lambda: bool(self._asked),
        )

    def _final(self, began: float) -> dict[str, Any]:
        value = self._evaluate("test")
        few = next(self.task.batches("test", self.settings.batch))
        return {
            "metric": self.task.metric_name,
            **self.task.facts(),
            "value": value,
            "baseline": self.task.naive_baseline,
            "converged": self.task.converged(value),
            "steps": self.step,
            "seconds": round(time.monotonic() - began, 3),
            "device": str(self.device),
            **diagnostics(self.model, few),
        }

    def save(self, log_length: int = 0) -> None:
        """Write a checkpoint of the run as it stands."""
        if self.out is None or not self.processes.first:
            return
        extra = {
            "log_length": log_length,
            "seconds": self.seconds,
            "best": self.best,
            "threads": torch.get_num_threads(),
            "device": str(self.device),
            "optimizer": self.settings.optimizer,
            "unmoved": checkpoints.unmoved(self.optimizer, self.model),
            "recipe": self.recipe,
            "unseen": self._unseen,
        }
        state = checkpoints.Checkpoint(
            self.step,
            self.model.state_dict(),
            checkpoints.optimizer_state(self.optimizer, self.model),
            {"retraction": self.generator.get_state()},
            extra,
            self.average.mean,
        )
        checkpoints.save(self.out / "checkpoint", state)

    def restore(self, path: Path) -> None:
        """Go on from a checkpoint."""
        state = checkpoints.load(path)
        made, best, seconds, length = checkpoints.demand(state, path, "optimizer", "best", "seconds", "log_length")
        checkpoints.check_recipe(path, {"train": {"optimizer": made}}, self.recipe)
        checkpoints.check_recipe(path, state.extra.get("recipe"), self.recipe)
        checkpoints.load_into(self.model, state.model, path)
        checkpoints.load_optimizer(self.optimizer, self.model, state, path)
        checkpoints.set_generator(self.generator, state.rng.get("retraction"), path)
        self.step, self.best, self.seconds, self._log_length = state.step, float(best), float(seconds), length
        self._unseen = state.extra.get("unseen")
        self.average.restore(state.average, self.model, state.step, path)
        self._project(tolerance=1e-3)  # wide: a healthy checkpoint must go on unchanged, bit for bit

    def _project(self, tolerance: float = 1e-4) -> None:
        for layer in self.layers:
            layer.map.project_(layer.W_raw.detach(), tolerance=tolerance)

    @own_torch()
    def probe(self, repeats: int = 2) -> float:
        """Seconds a training step takes, after one to warm up; leaves the weights changed."""
        with flush_denormals():
            model = self.processes.wrap(self.model)
            batches = self.task.batches("train", self.settings.batch, seed=self.settings.seed)
            self._one_step(model, next(batches), False)
            began = time.monotonic()
            for _ in range(repeats):
                self._one_step(model, next(batches), False)
            return (time.monotonic() - began) / repeats
