"""qornn eval DIR: a trained network on the test set, quantizers on and off."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from qornn.cli.options import DataDir, Device, Json, data_settings
from qornn.cli.output import print_json, print_table


def run(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    bits: Annotated[
        str | None, typer.Option("--bits", help="Quantize to this many bits first, without retraining (PTQ).")
    ] = None,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a run on its test set: as trained, and with the quantizers off.

    Example: qornn eval runs/pmnist-projunn-fp-s0 --bits 8
    """
    from qornn.bits import parse_bits
    from qornn.recipe import find_cell
    from qornn.train import load
    from qornn.train.build import build_task
    from qornn.train.evaluate import evaluate, quantized
    from qornn.train.loop import choose_device

    trained = load(folder)
    recipe = trained.recipe.override(data_settings(data_dir, trained.recipe.task["name"]))
    task, batch = build_task(recipe), recipe.train.batch
    model = trained.model.to(choose_device(device))
    began = time.monotonic()
    with quantized(model, None):
        off = evaluate(model, task, "test", batch)
    trained_bits, on = recipe.model.bits, None
    used = trained_bits if bits is None else parse_bits(bits)
    if used is not None:
        with nullcontext() if used == trained_bits else quantized(model, used):
            on = evaluate(model, task, "test", batch)
    value = off if on is None else on
    cell = find_cell(recipe, post_bits=None if used == trained_bits else used)
    figures = {
        "task": task.name,
        "metric": task.metric_name,
        **task.facts(),
        "value": value,
        "baseline": task.naive_baseline,
        "converged": task.converged(value),
        "bits": used,
        "activation_bits": None,
        "paper": cell.paper if cell else None,
        "float": off,
        "weights_quantized": on,
        "integer": None,
        "seconds": round(time.monotonic() - began, 3),
        "run": str(folder),
        "finished": trained.finished,
    }
    if json:
        print_json(figures)
    else:
        print_table(f"{task.name} on its test set", ["", ""], figures.items())
