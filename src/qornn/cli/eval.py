"""qornn eval: a trained network on its test set: quantizers off, on, and in integers."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qornn.cli.options import DataDir, Device, Json, data_settings
from qornn.cli.output import print_json, print_table
from qornn.errors import QornnError, SettingsError

if TYPE_CHECKING:
    from qornn.tasks import Task
    from qornn.train import Run


def run(
    what: Annotated[str, typer.Argument(help="A run folder, a program file or zoo:NAME.")],
    bits: Annotated[
        str | None, typer.Option("--bits", help="Quantize weights to this many bits first, without retraining (PTQ).")
    ] = None,
    activation_bits: Annotated[
        int | None,
        typer.Option(
            "--activation-bits",
            help="State bits. With this option `value` is the integer network's score. A stack uses its trained bits.",
        ),
    ] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the task, as in task.test_size=4000; repeatable.")
    ] = None,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a network on its test set: quantizers off, weights quantized, and in integers.

    Example: qornn eval runs/pmnist-projunn-fp-s0 --bits 8 --activation-bits 12

    Example: qornn eval zoo:copy1000-k5 --set task.test_size=4000
    """
    began = time.monotonic()
    other = _task_settings(set)
    if Path(what).is_dir():
        task, figures = _of_run(Path(what), bits, activation_bits, other, data_dir, device)
    elif bits is not None or activation_bits is not None:
        raise SettingsError(f"{what} is a finished program; --bits and --activation-bits work only on runs")
    else:
        task, figures = _of_program(what, other, data_dir)
    found = {
        "task": task.name,
        "metric": task.metric_name,
        **task.facts(),
        "value": figures["value"],
        "baseline": task.naive_baseline,
        "converged": task.converged(figures["value"]),
        **figures,
        "seconds": round(time.monotonic() - began, 3),
        "run": what,
    }
    if json:
        print_json(found)
    else:
        print_table(f"{task.name} on its test set", ["", ""], found.items())


def _task_settings(settings: list[str] | None) -> list[str]:
    for text in settings or []:
        if not text.startswith("task."):
            raise SettingsError(f"{text!r}: a trained network cannot be changed; --set takes only task.NAME=VALUE here")
        if text.partition("=")[0].strip() == "task.name":
            raise SettingsError(f"{text!r}: a network is measured on the task that it was trained on")
    return settings or []


def _of_run(
    folder: Path, bits: str | None, activation_bits: int | None, other: list[str], data_dir: Path | None, device: str
) -> tuple[Task, dict[str, Any]]:
    from dataclasses import replace

    from qornn.bits import parse_bits
    from qornn.lowering.choices import check_trained_bits
    from qornn.lowering.source import Network
    from qornn.recipe import STACK, find_cell
    from qornn.train import load
    from qornn.train.build import build_task
    from qornn.train.device import choose_device
    from qornn.train.evaluate import evaluate, quantized

    trained = load(folder)
    recipe = trained.recipe.override(data_settings(data_dir, trained.recipe.task["name"]))
    trained = replace(trained, recipe=recipe)  # integers are calibrated on what it was trained on
    task, batch = build_task(recipe.override(other)), recipe.train.batch
    model = trained.model.to(choose_device(device))
    used = recipe.model.bits if bits is None else parse_bits(bits)
    layers = model.layers if (lowers := isinstance(model, Network)) else ()
    if not lowers and activation_bits is not None:
        raise SettingsError(f"the baseline {recipe.model.kind!r} has no integer form; leave out --activation-bits")
    check_trained_bits([layer.state_bits for layer in layers], activation_bits)
    if used is None and activation_bits is not None:
        raise SettingsError("full-precision weights have no integers; add --bits to quantize them first")
    with quantized(model, None):
        off = evaluate(model, task, "test", batch, quiet=False)
    on: float | None = None
    integer: float | None = None
    k_a: int | None = None
    refused: str | None = None
    if used is not None:
        with nullcontext() if used == recipe.model.bits else quantized(model, used):
            on = evaluate(model, task, "test", batch, quiet=False)
            if lowers:
                integer, k_a, refused = _in_integers(trained, task, activation_bits)
    cell = None if other else find_cell(recipe, post_bits=None if used == recipe.model.bits else used)
    paper = cell.paper if cell else None
    value = off if on is None else on
    if activation_bits is not None and integer is not None:
        value, paper = integer, cell.facts.get("paper_at", {}).get(str(activation_bits)) if cell else None
    return task, {
        "value": value,
        "bits": recipe.model.weight_bits if bits is None else used,
        "activation_bits": recipe.model.activation_bits if recipe.model.kind == STACK else activation_bits,
        "paper": paper,
        "float": off,
        "weights_quantized": on,
        "integer": integer,
        "integer_activation_bits": k_a,
        **({"integer_refused": refused} if refused else {}),
        "finished": trained.finished,
    }


def _in_integers(trained: Run, task: Task, activation_bits: int | None) -> tuple[float | None, int | None, str | None]:
    """The integer network's figure and state bits. A network that cannot be lowered is an error only if asked for."""
    from qornn.lowering.lower import lower
    from qornn.lowering.score import score

    try:
        program = lower(trained, activation_bits=activation_bits)
        # In the batches of the other figures: a mean of means in another order differs in its last digits.
        return score(program, task, batch=trained.recipe.train.batch), program.activation_bits, None
    except QornnError as error:
        if activation_bits is not None:
            raise
        return None, None, str(error)


def _of_program(what: str, other: list[str], data_dir: Path | None) -> tuple[Task, dict[str, Any]]:
    from qornn.lowering.score import score
    from qornn.recipe import find_cell, from_tables
    from qornn.train.build import build_task
    from qornn.zoo.opening import load_program

    program = load_program(what)
    tables = program.provenance.get("recipe")
    if not isinstance(tables, dict):
        raise SettingsError(f"{what} does not say which task it was trained on; feed it data with program.run(x)")
    recipe = from_tables(tables)
    recipe = recipe.override(data_settings(data_dir, recipe.task["name"]) + other)
    task = build_task(recipe)
    trained_bits = recipe.model.weight_bits
    cell = None if other else find_cell(recipe, post_bits=None if program.bits == trained_bits else program.bits)
    value = score(program, task)
    metric = program.provenance.get("metric")
    return task, {
        "value": value,
        "bits": program.bits,
        "activation_bits": program.activation_bits,
        "paper": cell.facts.get("paper_at", {}).get(str(program.activation_bits)) if cell else None,
        "integer": value,
        "recorded": metric.get("value") if isinstance(metric, dict) and not other else None,
        "true_bytes": program.true_bytes,
    }
