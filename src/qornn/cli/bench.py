"""qornn bench: how fast, against what, measured here and now."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qornn.cli.options import Json
from qornn.cli.output import print_json, print_table
from qornn.errors import SettingsError, unknown

BENCHES = ("train", "infer")


def run(
    what: Annotated[
        str,
        typer.Argument(
            help="train: recurrence and whole training steps against torch. "
            "infer: integer inference against onnxruntime and torch, and on emulated devices."
        ),
    ],
    shape: Annotated[
        list[str] | None, typer.Option(help="train: copy, mnist or ptb; all by default; repeatable.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Interleaved repeats; medians are given.")] = 5,
    json: Json = False,
) -> None:
    """Measure ratios against peers in one run; run it on an otherwise idle machine.

    Example: qornn bench train --shape mnist

    Example: qornn bench infer --json
    """
    if what not in BENCHES:
        raise unknown("bench", what, BENCHES)
    if what == "infer" and shape:
        raise SettingsError("--shape goes with bench train; bench infer measures n_h = 170 and 256")
    figures = _train(shape, repeats) if what == "train" else _infer(repeats)
    if json:
        print_json(figures)
    else:
        (_show_train if what == "train" else _show_infer)(figures)


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _train(shape: list[str] | None, repeats: int) -> dict[str, Any]:
    from qornn.bench.train import bench_train

    return bench_train(shape, repeats=repeats, say=_say)


def _infer(repeats: int) -> dict[str, Any]:
    from qornn.bench.infer import bench_infer

    return bench_infer(repeats=repeats, say=_say)


def _show_train(figures: dict[str, Any]) -> None:
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


def _show_infer(figures: dict[str, Any]) -> None:
    rows: list[list[Any]] = []
    for n_h, streaming in figures["host"].items():
        for B, found in ((1, streaming), (128, streaming["batch_128"])):
            rows.append([n_h, B, "ours", found["us_per_step"], None, streaming["model_bytes"]])
            if "us_per_step_session" in found:
                rows.append([n_h, B, "ours, Session.step", found["us_per_step_session"], None, None])
            for name, peer in found["peers"].items():
                rows.append([n_h, B, name, peer["us_per_step"], found.get(f"vs_{name}"), peer["model_bytes"]])
            rows += [[n_h, B, name, f"skipped: {why}", None, None] for name, why in found.get("skipped", {}).items()]
    title = f"Host, {figures['bits']} bits, engine {figures['engine']}, µs a time step of the batch (medians)"
    print_table(title, ["n_h", "batch", "who", "µs a step", "ours is faster", "model bytes"], rows)
    devices = [
        [target, readout, f"skipped: {found['skipped']}", None, None, None]
        if "skipped" in found
        else [target, readout, *(found[k] for k in ("instructions_per_step", "flash_bytes", "ram_bytes", "layout"))]
        for readout, key in (("float V", "mcu"), ("8-bit V", "mcu_int8_readout"))
        for target, found in figures[key].items()
    ]
    columns = ["target", "readout", "instructions a step", "flash bytes", "RAM bytes", "layout"]
    print_table("Emulated devices; instructions, not cycles", columns, devices)
