"""qornn bench: speed compared with other libraries, measured on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qornn.cli.options import Json
from qornn.cli.output import print_json, print_table, print_targets
from qornn.errors import SettingsError, unknown

BENCHES = ("train", "infer")
MODELS = ("stack",)
STACK_RATIOS = ("step_vs_loop", "step_vs_scan", "step_vs_lstm", "copy_fraction")


def run(
    what: Annotated[
        str,
        typer.Argument(
            help="train: recurrence and whole training steps against torch. "
            "infer: integer inference against onnxruntime and torch, and on emulated devices."
        ),
    ],
    shape: Annotated[
        list[str] | None,
        typer.Option(
            help="train: copy, mnist or ptb; with --model stack forda, smnist or ptb. Repeatable. Default: all."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="train: stack compares stacks of rotations with plain torch and torch.nn.LSTM."),
    ] = None,
    map: Annotated[
        str | None, typer.Option(help="train: compare steps of this structured map with those of the dense network.")
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option(help="infer: compare this program (FILE.qornn) with an int8 LSTM of 64 units, per sample."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Interleaved repeats. The output shows medians.")] = 5,
    json: Json = False,
) -> None:
    """Measure speed ratios against other libraries in one run. Use an otherwise idle machine.

    Example: qornn bench train --shape mnist

    Example: qornn bench train --map hadamard

    Example: qornn bench train --model stack --shape forda

    Example: qornn bench infer --json

    Example: qornn bench infer --program fit/model.qornn
    """
    if what not in BENCHES:
        raise unknown("bench", what, BENCHES)
    if model is not None and model not in MODELS:
        raise unknown("model", model, MODELS)
    if what == "infer" and (shape or map or model):
        raise SettingsError("--shape, --map and --model go with bench train; bench infer measures its own networks")
    if map is not None and model is not None:
        raise SettingsError("--map names a map of W, and a stack of rotations has no W; drop --map or --model")
    if what == "train" and program is not None:
        raise SettingsError("--program goes with bench infer; bench train measures its own networks")
    if program is not None:
        figures = _program(program, repeats)
        print_json(figures) if json else _show_samples(figures)
        return
    figures = _train(shape, map, model, repeats) if what == "train" else _infer(repeats)
    if json:
        print_json(figures)
    elif model == "stack":
        _show_stack(figures)
    elif map is not None:
        rows = [[n, f["n_h"], *f["step_seconds"].values(), f["step_vs_dense"]] for n, f in figures["shapes"].items()]
        title = f"A training step, seconds (medians), {figures['threads']} threads"
        print_table(title, ["shape", "n_h", "dense", map, "times faster"], rows)
    else:
        (_show_train if what == "train" else _show_infer)(figures)


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _train(shape: list[str] | None, map: str | None, model: str | None, repeats: int) -> dict[str, Any]:
    from qornn.bench.stack import bench_stack
    from qornn.bench.train import bench_map, bench_train

    if model == "stack":
        return bench_stack(shape, repeats=repeats, say=_say)
    if map is not None:
        return bench_map(map, shape, repeats=repeats, say=_say)
    return bench_train(shape, repeats=repeats, say=_say)


def _infer(repeats: int) -> dict[str, Any]:
    from qornn.bench.infer import bench_infer

    return bench_infer(repeats=repeats, say=_say)


def _program(path: Path, repeats: int) -> dict[str, Any]:
    from qornn.bench.infer import TARGETS, TURNS
    from qornn.bench.infer_stack import bench_samples
    from qornn.integer.storage import load

    return bench_samples(load(path), targets=TARGETS, repeats=repeats * TURNS, say=_say)


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


def _show_stack(figures: dict[str, Any]) -> None:
    rows = [
        [name, *found["step_seconds"].values(), *(found[key] for key in STACK_RATIOS)]
        for name, found in figures["shapes"].items()
    ]
    title = f"A training step, seconds (medians), {figures['threads']} threads, recurrence {figures['recurrence']}"
    columns = ["shape", "qornn", "loop", "scan", "LSTM", "vs loop", "vs scan", "vs LSTM", "copy time / scan time"]
    print_table(title, columns, rows)


def _show_infer(figures: dict[str, Any]) -> None:
    rows: list[list[Any]] = []
    for n_h, streaming in figures["host"].items():
        for B, found in ((1, streaming), (128, streaming["batch_128"])):
            rows.append([n_h, B, "qornn", found["us_per_step"], None, streaming["model_bytes"]])
            if "us_per_step_session" in found:
                rows.append([n_h, B, "qornn, Session.step", found["us_per_step_session"], None, None])
            for name, peer in found["peers"].items():
                rows.append([n_h, B, name, peer["us_per_step"], found.get(f"vs_{name}"), peer["model_bytes"]])
            rows += [[n_h, B, name, f"skipped: {why}", None, None] for name, why in found.get("skipped", {}).items()]
    structured = figures.get("structured", {})
    rows += [
        [found["n_h"], 1, f"qornn, {name}", found["us_per_step"], None, found["true_bytes"]]
        for name, found in structured.items()
    ]
    _show_samples(figures["stack"])
    title = f"Host, {figures['bits']} bits, engine {figures['engine']}, µs per time step of the batch (medians)"
    print_table(title, ["n_h", "batch", "runtime", "µs per step", "qornn is faster by", "model bytes"], rows)
    measured = [("float V", figures["mcu"]), ("8-bit V", figures["mcu_int8_readout"])]
    measured += [(f"{name}, 4-bit V", found["mcu"]) for name, found in structured.items()]
    devices = [
        [target, readout, f"skipped: {found['skipped']}", None, None, None]
        if "skipped" in found
        else [target, readout, *(found[k] for k in ("instructions_per_step", "flash_bytes", "ram_bytes", "layout"))]
        for readout, found_on in measured
        for target, found in found_on.items()
    ]
    columns = ["target", "readout", "instructions per step", "flash bytes", "RAM bytes", "layout"]
    print_table("Emulated devices; instructions, not cycles", columns, devices)
    print_targets(figures.get("targets", []))


def _show_samples(found: dict[str, Any]) -> None:
    rows = [["qornn", found["us_per_sample"], None]]
    rows += [[name, peer["us_per_sample"], found[f"vs_{name}"]] for name, peer in found["peers"].items()]
    rows += [[name, f"skipped: {why}", None] for name, why in found["skipped"].items()]
    title = (
        f"{len(found['layers'])} layers, {found['true_bytes']} bytes, {found['window']} samples per step, one thread"
    )
    print_table(title, ["runtime", "µs per sample", "qornn is faster by"], rows)
    keys = ("instructions_per_sample", "flash_bytes", "ram_bytes", "stack_bytes")
    devices = [
        [target, f"skipped: {row['skipped']}"] + [None] * (len(keys) - 1)
        if "skipped" in row
        else [target, *(row.get(key) for key in keys)]
        for target, row in found["mcu"].items()
    ]
    print_table("Emulated devices", ["target", *(key.replace("_", " ") for key in keys)], devices)
