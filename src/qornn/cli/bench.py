"""qornn bench: how fast, against what, measured here and now."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qornn.cli.options import Json
from qornn.cli.output import print_json, print_table
from qornn.errors import unknown

BENCHES = ("train",)


def run(
    what: Annotated[str, typer.Argument(help="train: recurrence and whole training steps against torch.")],
    shape: Annotated[list[str] | None, typer.Option(help="copy, mnist or ptb; all by default; repeatable.")] = None,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats; medians are given.")] = 5,
    json: Json = False,
) -> None:
    """Measure ratios against peers in one run; run it on an otherwise idle machine.

    Example: qornn bench train --shape mnist
    """
    if what not in BENCHES:
        raise unknown("bench", what, BENCHES)
    from qornn.bench.train import bench_train

    figures = bench_train(shape, repeats=repeats, say=lambda text: typer.echo(text, err=True))
    if json:
        print_json(figures)
        return
    rows: list[list[Any]] = []
    for name, found in figures["shapes"].items():
        rows += [[name, key, value] for key, value in found.items() if not isinstance(value, dict)]
        rows += [
            [name, f"{key}: {k}", v]
            for key, value in found.items()
            if isinstance(value, dict)
            for k, v in value.items()
        ]
    title = f"sgemm {figures['peak_gflops']} GFLOP/s, {figures['threads']} threads, recurrence {figures['recurrence']}"
    print_table(title, ["shape", "figure", ""], rows)
