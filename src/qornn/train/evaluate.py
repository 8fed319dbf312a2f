"""Evaluation and the diagnostics that stand beside every loss; consumes no training randomness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from qornn._io.progress import progress
from qornn.baselines import Baseline
from qornn.model import ReadsOut, SequenceLayer
from qornn.tasks.base import Batch, Split, Task
from qornn.train.distributed import Processes
from qornn.train.optim import recurrences, sequence_layers


class Stopped(Exception):
    """A signal asked to stop in the middle of an evaluation."""


@torch.no_grad()
def evaluate(
    model: nn.Module,
    task: Task,
    split: Split,
    batch: int,
    *,
    seed: int = 0,
    processes: Processes | None = None,
    stop: Callable[[], bool] | None = None,
    quiet: bool = True,
) -> float:
    """The task's metric over one pass of the split; Stopped where some process's `stop` says so in between."""
    processes = processes or Processes()
    device = next(model.parameters()).device
    total = torch.zeros(2, dtype=torch.float64)
    parts = progress(
        task.batches(split, batch, seed=seed), total=-(-task.size(split) // batch), what="evaluating", quiet=quiet
    )
    with _evaluating(model):
        for number, part in enumerate(parts):
            if stop is not None and number % processes.world == 0:
                _agree_to_go_on(processes, stop())
            if number % processes.world == processes.rank:
                part = part.to(device)
                y, _ = model(part.x, lengths=part.lengths)
                total += torch.tensor([task.metric(y, part) * part.weight, part.weight], dtype=torch.float64)
    total = processes.sum(total)
    return float(total[0] / total[1]) if total[1] > 0 else float("nan")


@torch.no_grad()
def diagnostics(model: nn.Module, batch: Batch, *, sequences: int = 16) -> dict[str, float]:
    """Diagnostics of every layer and of its states on a few sequences. With several layers, the worst of each.

    Of orthogonal layers ‖W_q W_qᵀ − I‖_F, σ_min, σ_max, the share of clipped weights and max|h|; of rotations max|λ|
    and the share of saturated states.
    """
    found: list[dict[str, float]] = [layer.figures() for layer in sequence_layers(model)]
    with _evaluating(model):
        few = batch.rows(0, sequences).to(next(model.parameters()).device)
        steps = few.x.shape[0] * few.x.shape[1] if few.lengths is None else int(few.lengths.sum())
        with _watching(model, steps) as seen:
            model(few.x, lengths=few.lengths)
            if not seen:  # a network that was not unrolled has shown no state but the last
                for layer in recurrences(model):
                    layer(few.x, lengths=few.lengths)
    found += seen or [{"max_h": float("nan")}]
    worst: dict[str, float] = {}
    for name, value in ((name, value) for figures in found for name, value in figures.items()):
        pick = min if name.endswith("_min") else max
        worst[name] = pick(worst[name], value) if name in worst else value
    return worst


def _agree_to_go_on(processes: Processes, stop: bool) -> None:
    """All processes stop at the same batch, or one would wait for the others' sums."""
    if processes.sum(torch.tensor([float(stop)])) > 0:
        raise Stopped


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Inside the context no layer adds noise."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextmanager
def quantized(model: nn.Module, bits: int | None) -> Iterator[None]:
    """Inside the context weights have `bits` bits, whatever they were trained with (PTQ). None: no rounding."""
    parts = [m for m in model.modules() if isinstance(m, SequenceLayer | ReadsOut | Baseline)]
    with ExitStack() as inside:
        for part in parts:
            inside.enter_context(part.on_bits(bits))
        yield


@contextmanager
def _watching(model: nn.Module, steps: int) -> Iterator[list[dict[str, float]]]:
    """Collects what every layer that runs inside says of its states; of a baseline max|h| of its last states."""
    seen: list[dict[str, float]] = []

    def of_layer(module: nn.Module, inputs: Any, outputs: tuple[Tensor, Tensor]) -> None:
        assert isinstance(module, SequenceLayer)
        seen.append(module.state_figures(outputs[0], steps))

    def of_baseline(module: nn.Module, inputs: Any, outputs: tuple[Tensor, Tensor]) -> None:
        seen.append({"max_h": float(outputs[1].abs().max())})

    hooks = [layer.register_forward_hook(of_layer) for layer in sequence_layers(model)]
    hooks += [m.register_forward_hook(of_baseline) for m in model.modules() if isinstance(m, Baseline)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
