"""Evaluation and the diagnostics that stand beside every loss; consumes no training randomness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from qornn._io.progress import progress
from qornn.baselines import Baseline
from qornn.model import OrthogonalRecurrence, ReadsOut
from qornn.quant import Quantizer, Uniform
from qornn.tasks.base import Batch, Split, Task
from qornn.train.distributed import Processes
from qornn.train.optim import recurrences


class Stopped(Exception):
    """Somebody asked to stop in the middle of an evaluation."""


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
    """‖W_q W_qᵀ − I‖_F, σ_min, σ_max, the share of clipped weights, and max|h| on a few sequences.

    With several layers, the worst of each.
    """
    with _evaluating(model), _largest_states(model) as largest:
        device = next(model.parameters()).device
        few = batch.rows(0, sequences).to(device)
        model(few.x, lengths=few.lengths)
        if not largest:  # a network that was not unrolled has shown no state but the last
            for layer in recurrences(model):
                layer(few.x, lengths=few.lengths)
    found = [_of_layer(layer) for layer in recurrences(model)]
    if not found:
        return {"max_h": max(largest, default=float("nan"))}  # a baseline has no W that should be orthogonal
    worst = {"orthogonality": max, "sigma_min": min, "sigma_max": max, "saturation": max}
    return {key: pick(f[key] for f in found) for key, pick in worst.items()} | {"max_h": max(largest)}


def _agree_to_go_on(processes: Processes, stop: bool) -> None:
    """All processes stop at the same batch, or one would wait for the others' sums."""
    if processes.sum(torch.tensor([float(stop)])) > 0:
        raise Stopped


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, no layer draws noise."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextmanager
def quantized(model: nn.Module, bits: int | None) -> Iterator[None]:
    """Inside, every layer's weights are on `bits` bits, whatever it was trained with (PTQ); None: quantizers off."""
    layers: list[OrthogonalRecurrence | Baseline] = [*recurrences(model), *_baselines(model)]
    before = [(layer.q_W, layer.q_U) for layer in layers]
    readers = [m for m in model.modules() if isinstance(m, ReadsOut) and (m.q_V or m.layers[-1].quantizes_V)]
    before_V = [reader.q_V for reader in readers]
    for reader in readers:
        reader.q_V = None if bits is None else Uniform(bits)
    for layer, own in zip(layers, before, strict=True):
        layer.q_W, layer.q_U = (None if bits is None else (q or Uniform(bits)).with_bits(bits) for q in own)
        if isinstance(layer, OrthogonalRecurrence) and layer.map.structured:
            layer.q_W = None  # nothing of W is stored
    try:
        yield
    finally:
        for layer, (q_W, q_U) in zip(layers, before, strict=True):
            layer.q_W, layer.q_U = q_W, q_U
        for reader, q_V in zip(readers, before_V, strict=True):
            reader.q_V = q_V


def _baselines(model: nn.Module) -> list[Baseline]:
    return [module for module in model.modules() if isinstance(module, Baseline)]


def _of_layer(layer: OrthogonalRecurrence) -> dict[str, float]:
    if layer.map.structured:  # its matrix is not stored, and may be too large to write out
        singular = layer.map.singular_values(layer.W_raw).cpu().double()
        distance, saturation = (singular.square() - 1).norm(), 0.0
    else:
        W = layer.W()
        W_q = (W if layer.q_W is None else layer.q_W(W)).cpu().double()
        singular = torch.linalg.svdvals(W_q)
        distance = (W_q @ W_q.mT - torch.eye(layer.n_h, dtype=torch.float64)).norm()
        saturation = _clipped_share(W, layer.q_W)
    return {
        "orthogonality": float(distance),
        "sigma_min": float(singular.min()),
        "sigma_max": float(singular.max()),
        "saturation": saturation,
    }


def _clipped_share(W: Tensor, quantizer: Quantizer | None) -> float:
    """Share of entries farther than half a step from their level: those the grid's ends cut off."""
    if quantizer is None:
        return 0.0
    integers, alpha = quantizer.to_int(W)
    half_step = alpha / 2**quantizer.bits
    cut = (W - quantizer.dequantize(integers, alpha)).abs() > half_step * (1 + 1e-4)
    return float(cut.cpu().double().mean())


@contextmanager
def _largest_states(model: nn.Module) -> Iterator[list[float]]:
    """Collects max|h| of every orthogonal layer, or of a baseline's last states, that runs inside."""
    largest: list[float] = []

    def look(module: nn.Module, inputs: Any, outputs: tuple[Tensor, Tensor]) -> None:
        largest.append(float(outputs[1 if isinstance(module, Baseline) else 0].abs().max()))

    watched: list[nn.Module] = [*recurrences(model), *_baselines(model)]
    hooks = [layer.register_forward_hook(look) for layer in watched]
    try:
        yield largest
    finally:
        for hook in hooks:
            hook.remove()
