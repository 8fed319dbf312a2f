"""qornn lower DIR -o FILE: from a trained network to pure integers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qornn.cli.options import ActivationBits, DataDir, Json, data_settings
from qornn.cli.output import print_json, print_table


def run(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The program's file, FILE.qornn.")],
    activation_bits: ActivationBits = None,
    bits: Annotated[str | None, typer.Option("--bits", help="Quantize the weights first, without retraining.")] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            help="Requantization: per-row, or paper (one factor for all rows). Default: per-row; paper for a "
            "structured W."
        ),
    ] = None,
    requant: Annotated[
        str,
        typer.Option(
            help="How sums become states: multiplier. With --scheme paper also thresholds or table (Python only)."
        ),
    ] = "multiplier",
    readout: Annotated[
        str | None,
        typer.Option(
            help="float or int8. With int8 the network has no floats at all. Default: float, or the integers that V "
            "was trained as."
        ),
    ] = None,
    alpha_h: Annotated[
        str | None,
        typer.Option(
            help="Range of the states: max, or a percentile of |h| such as 99.99. Default: max; 99.99 for a structured "
            "W that rounds states of fewer than 12 bits at every step."
        ),
    ] = None,
    clip: Annotated[float, typer.Option(help="Saturate states at this fraction of alpha_h, such as 0.7.")] = 1.0,
    refit: Annotated[
        int, typer.Option(help="Batches on which a float readout is trained again, on the integer states.")
    ] = 0,
    input_bits: Annotated[
        int | None, typer.Option(help="Bits of the inputs. Default: the task's, else lossless.")
    ] = None,
    input_alpha: Annotated[
        float | None, typer.Option(help="Range alpha_i of the inputs; the paper uses 1. Default: lossless.")
    ] = None,
    sequences: Annotated[int, typer.Option(help="Calibration sequences per split; 0: all.")] = 10_000,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Calibrate on training and validation data, write an integer program, and measure it on the test set.

    Example: qornn lower runs/digits -o digits.qornn --readout int8
    """
    from contextlib import nullcontext
    from dataclasses import replace

    from qornn._io.files import check_file
    from qornn.bits import parse_bits
    from qornn.lowering.lower import lower
    from qornn.lowering.score import score
    from qornn.train import load
    from qornn.train.evaluate import quantized

    check_file(out)
    trained = load(folder)
    trained = replace(trained, recipe=trained.recipe.override(data_settings(data_dir, trained.recipe.task["name"])))
    with nullcontext() if bits is None else quantized(trained.model, parse_bits(bits)):
        program = lower(
            trained,
            activation_bits=activation_bits,
            scheme=scheme,  # type: ignore[arg-type]
            requant=requant,  # type: ignore[arg-type]
            readout=readout,  # type: ignore[arg-type]
            alpha_h=alpha_h,
            clip=clip,
            refit=refit,
            input_bits=input_bits,
            input_alpha=input_alpha,
            sequences=sequences or None,
        )
    task = trained.task()
    value = score(program, task)
    program = program.with_provenance(metric={"name": task.metric_name, "value": value})
    program.save(out)
    report = program.provenance["lowering"]
    figures: dict[str, Any] = {
        "task": task.name,
        "metric": task.metric_name,
        "value": value,
        "baseline": task.naive_baseline,
        "converged": task.converged(value),
        "bits": program.bits,
        "activation_bits": program.activation_bits,
        **{key: value for key, value in report.items() if key != "percentiles"},
        "accumulator_bits": program.accumulator_bits,
        "true_bytes": program.true_bytes,
        "file_bytes": out.stat().st_size,
        "file": str(out),
    }
    percentiles = report.get("percentiles")  # of several layers, each has its own
    if json:
        print_json(figures | ({"percentiles": percentiles} if percentiles else {}))
    else:
        named = {f"|h| percentile {p}": value for p, value in (percentiles or {}).items()}
        rows = {key: value for key, value in figures.items() if key != "layers"} | named
        rows |= {f"layer {i}": layer.describe() for i, layer in enumerate(program.layers)} if not percentiles else {}
        print_table(f"{out}", ["", ""], rows.items())
