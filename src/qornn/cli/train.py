"""qornn train TASK: train a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qornn.cli.options import Bits, DataDir, Device, Json, Map, Model, Set, data_settings
from qornn.cli.output import bits_text, print_json, print_table


def run(
    task: Annotated[str, typer.Argument(help="A name from `qornn list`.")],
    model: Model = "qornn",
    map: Map = None,
    bits: Bits = "recipe",
    activation_bits: Annotated[
        str,
        typer.Option("--activation-bits", help="State bits of --model stack, 4 to 16, or fp for float states."),
    ] = "recipe",
    steps: Annotated[int | None, typer.Option(help="Training steps. Default: the epochs of the recipe.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights and data. Default: the recipe's.")] = None,
    device: Device = "auto",
    set: Set = None,
    out: Annotated[Path | None, typer.Option("--out", help="Run folder, new or empty. Default: runs/TASK-….")] = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Run a few batches and estimate time and memory.")] = False,
    json: Json = False,
) -> None:
    """Train a network by its recipe, in a folder that `qornn resume` can continue.

    Example: qornn train copy --bits 6 --set task.T0=200 --set train.lr=2e-4 --steps 1500

    Example: qornn train digits --model stack --bits 4 --activation-bits 8 --set model.width=24
    """
    from qornn.recipe import resolve

    settings = data_settings(data_dir, task) + list(set or [])
    settings += [f"train.{key}={value}" for key, value in (("steps", steps), ("seed", seed)) if value is not None]
    recipe = resolve(task, model=model, map=map, bits=bits, activation_bits=activation_bits, settings=settings)

    from qornn.train import run as runs
    from qornn.train.distributed import rank

    if dry_run:
        figures = runs.dry_run(recipe, device=device)
        if rank() == 0:
            report(figures, json, f"{task}, {bits_text(recipe.model.bits)}: estimated")
        return
    finish(lambda: runs.start(recipe, out, device=device), json)


def finish(training: Any, json: bool) -> None:
    """Run the training and print its result. An interruption prints how to continue."""
    from qornn.train import Interrupted
    from qornn.train.distributed import rank

    try:
        run = training()
    except Interrupted as stopped:
        typer.echo(str(stopped), err=True)
        raise typer.Exit(130) from None
    if rank() == 0:
        report(run.result, json, f"{run.recipe.task['name']}, {bits_text(run.recipe.model.bits)}")


def report(figures: dict[str, Any], json: bool, title: str) -> None:
    if json:
        print_json(figures)
    else:
        print_table(title, ["", ""], figures.items())
