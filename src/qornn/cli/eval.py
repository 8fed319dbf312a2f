"""qornn eval DIR: a trained network on the test set, quantizers on and off."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from qornn.cli.options import DataDir, Device, Json, data_settings
from qornn.cli.output import print_json, print_table


def run(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    bits: Annotated[
        int | None, typer.Option("--bits", help="Quantize to this many bits first, without retraining (PTQ).")
    ] = None,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a run on its test set: as trained, and with the quantizers off.

    Example: qornn eval runs/pmnist-projunn-fp-s0 --bits 8
    """
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
    used = recipe.model.bits if bits is None else bits
    on = None
    if used is not None:
        with quantized(model, used):
            on = evaluate(model, task, "test", batch)
    value = off if on is None else on
    cell = find_cell(recipe, post_bits=bits)
    figures = {
        "task": task.name,
        "metric": task.metric_name,
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
    }
    if json:
        print_json(figures)
    else:
        print_table(f"{task.name} on its test set", ["", ""], figures.items())
