"""report.html of a fit: what was measured, on what, what it weighs, and how to feed the device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qornn._io.files import write_atomically
from qornn.fit import classes, plots
from qornn.fit.latency import Latency
from qornn.fit.problem import Problem
from qornn.fit.width import Width
from qornn.integer.program import IntegerProgram
from qornn.integer.program_size import of_program
from qornn.integer.size import Step
from qornn.reporting.document import Document, Grid, Picture, Row, Section
from qornn.reporting.html import to_html
from qornn.verify.folder import find

CHANNELS = 64  # shown
NONE = "–"


def write_report(
    path: Path,
    problem: Problem,
    widths: Sequence[Width],
    program: IntegerProgram,
    figures: Mapping[str, Any],
    facts: Mapping[str, Any],
    waited: Latency | None,
    *,
    name: str,
) -> None:
    """One file, readable without a network."""
    chosen = next(width for width in widths if width.bits == figures["bits"])
    sections = (
        _bits(problem, widths, figures),
        _values(problem, chosen) if waited is None else classes.section(problem, chosen, figures),
        *(() if waited is None else (_latency(waited),)),
        _curves(problem, widths),
        _memory(path.parent / "c", program, figures),
        _device(problem, program, figures, name),
        _data(problem, figures),
        _settings(facts),
    )
    document = Document(_title(figures), _summary(problem, figures), tuple(figures["notes"]), sections)
    write_atomically(path, to_html(document), own=True)


def _title(figures: Mapping[str, Any]) -> str:
    return f"{Path(figures['data']).name}: a recurrent network on {figures['bits']} bits"


def _summary(problem: Problem, figures: Mapping[str, Any]) -> tuple[str, ...]:
    value, baseline = (_score(problem, figures[key]) for key in ("value", "baseline"))
    verdict = "" if figures["converged"] else " The network is no better than the baseline."
    checks = [f"{c['target']} {_verdict(c)}" for c in figures["verification"]]
    return (
        f"{problem.metric.capitalize()} {value} on {len(problem.test)} held-out sequences, measured on the integer "
        f"program itself; the naive baseline is {baseline}.{verdict}",
        f"Weights of {figures['bits']} bits, states of {figures['activation_bits']}, in {figures['true_bytes']} bytes. "
        f"C compared with the program: {', '.join(checks) or 'not compared'}.",
    )


def _verdict(check: Mapping[str, Any]) -> str:
    if check["exact"] is None:
        return "not run"
    return f"exact in {check['steps']} steps" if check["exact"] else "DIFFERENT"


def _bits(problem: Problem, widths: Sequence[Width], figures: Mapping[str, Any]) -> Section:
    choice = "held out to choose the width" if problem.chooses else "training"
    rows = tuple(
        Row(
            (
                f"{w.bits}" + (", chosen" if w.bits == figures["bits"] and len(widths) > 1 else ""),
                *(_score(problem, v) for v in (w.choice, w.value, w.floating)),
                *(f"{w.true_bytes}", f"{len(w.history)}", f"{w.seconds:.0f} s"),
            )
        )
        for w in widths
    )
    columns = ("bits", choice, "test", "test, in floating point", "bytes", "epochs", "training time")
    note = (
        f"The smallest width within {'one point' if problem.kind == 'classify' else '0.01'} of the best on "
        f"{len(problem.choice)} {'held-out' if problem.chooses else 'training'} sequences was chosen. The test data "
        "was not used for this choice."
        if len(widths) > 1
        else "Only one width was trained; --bits 2,3,4,8 compares several."
    )
    png = plots.bits_png(widths, figures["bits"], metric=problem.metric, baseline=figures["baseline"], choice=choice)
    picture = Picture("bits", f"{problem.metric} against the bits of the weights, the chosen width ringed", png)
    grid = Grid(f"{problem.metric.capitalize()}, in integers", columns, rows)
    return Section("bits", f"{problem.metric.capitalize()} against bits", (note,), (grid,), (picture,))


def _values(problem: Problem, chosen: Width) -> Section:
    pairs = np.asarray(chosen.table)
    error = pairs[:, 1] - pairs[:, 0]
    rows = {
        "R2": _score(problem, chosen.value),
        "root mean squared error": f"{math.sqrt(np.square(error).mean()):.4g}",
        "mean absolute error": f"{np.abs(error).mean():.4g}",
        "standard deviation of the true values": f"{pairs[:, 0].std():.4g}",
    }
    picture = Picture("values", "Answers against true values on the test data", plots.values_png(chosen.table))
    grid = Grid(f"Errors on {len(pairs)} test sequences", ("", ""), _rows(rows))
    return Section("values", "Answers against true values", (), (grid,), (picture,))


def _latency(waited: Latency) -> Section:
    """Samples until the answer stays right."""
    found = waited.figures()
    rows = {
        "median, samples": _or_none(found["median"]),
        "90th percentile, samples": _or_none(found["p90"]),
        "sequences with a right final answer": f"{found['right']} of {found['sequences']}",
    }
    note = (
        "Test sequences were streamed through the integer program. The latency of a sequence whose final answer "
        "is right is the number of samples after which its answer no longer changes."
    )
    png = plots.latency_png(waited.samples, waited.sequences)
    picture = Picture("latency", "Share of test sequences whose answer is right and final, against samples seen", png)
    grid = Grid("Samples until the answer stays right", ("", ""), _rows(rows))
    return Section("latency", "Warm-up latency", (note,), (grid,), (picture,))


def _curves(problem: Problem, widths: Sequence[Width]) -> Section:
    loss = "cross-entropy" if problem.kind == "classify" else "squared error, standardised"
    watched = any("validation" in epoch for width in widths for epoch in width.history)
    note = "Solid lines: the validation loss. Faint lines: the training loss." if watched else "The training loss."
    picture = Picture("curves", f"{loss} by epoch, one line per width", plots.curves_png(widths, loss))
    return Section("curves", "Learning curves", (note,), pictures=(picture,))


def _memory(folder: Path, program: IntegerProgram, figures: Mapping[str, Any]) -> Section:
    exported = find(folder)
    shape, operations = of_program(program)
    step = list(operations.values())[-1] if operations else None
    rows = {
        **_layers(program),
        "parameters": f"{program.parameters}",
        **({"weights by the paper's formula, bytes": f"{shape.paper_bytes:.0f}"} if shape else {}),
        "everything that is stored, bytes": f"{program.true_bytes}",
        "constants in flash, as exported, bytes": f"{exported.data_bytes}",
        "state and outputs in RAM, bytes": f"{exported.ram_bytes}",
        "samples per step": f"{figures['window']}",
        **(_operations(step) if step else _work(program)),
        "bits of the accumulator": f"{program.accumulator_bits}",
    }
    names = ("flash_bytes", "ram_bytes", "stack_bytes", "instructions_per_step", "instructions_per_readout")
    measured = tuple(
        Row((check["target"], _verdict(check), *(_or_none(check.get(name)) for name in names)))
        for check in figures["verification"]
    )
    grids = [Grid("Size of the network", ("", ""), _rows(rows))]
    if measured:
        columns = ("target", "C against the program", *(name.replace("_", " ") for name in names))
        grids.append(Grid("Measured on the compiled C; flash with code, RAM without the stack", columns, measured))
    return Section("memory", "Memory", (), tuple(grids))


def _layers(program: IntegerProgram) -> dict[str, str]:
    """What each of several layers is."""
    layers = program.layers if len(program.layers) > 1 else ()
    return {f"layer {i}": layer.describe() for i, layer in enumerate(layers)}


def _work(program: IntegerProgram) -> dict[str, str]:
    """Of layers that the paper's formulas do not know."""
    total = sum(sum(layer.work(source).values()) for layer, source in program.walk())
    return {"multiply-accumulates per step": f"{total}"}


def _operations(step: Step) -> dict[str, str]:
    return {
        "multiplications per step": f"{step.input.mult + step.recurrent.mult}",
        "additions per step": f"{step.input.add + step.recurrent.add}",
    }


def _device(problem: Problem, program: IntegerProgram, figures: Mapping[str, Any], name: str) -> Section:
    given = program.provenance["input"]
    columns = ("input", "one raw unit", "mean", "standard deviation")
    channels, window = problem.train.x.x.shape[2], figures["window"]
    named = problem.data.channels or tuple(map(str, range(channels)))
    names = [name if window == 1 else f"{name}, sample {j + 1}" for j in range(window) for name in named]
    table = zip(names, given["raw_scale"], given["mean"], given["std"], strict=True)
    rows = tuple(Row((channel, *(f"{number:.6g}" for number in numbers))) for channel, *numbers in table)
    notes = (
        f"{name}_step takes {program.input.n_raw} int16 numbers: sample / raw unit, rounded. {name}_quantize makes "
        "them from floats. Mean and deviation are part of the program."
        + (" A missing sample is -32768, or NaN as a float." if given.get("missing") == "hold" else "")
        + ("" if window == 1 else f" A step takes {window} samples in order, with all channels of each."),
        "README.md in the folder c/ has more. `qornn verify` on that folder replays the test vectors again."
        + (f" {figures['web']} runs the same C in a browser." if figures.get("web") else ""),
    )
    count = program.input.n_raw
    left = "" if count <= CHANNELS else f", the first {CHANNELS} of {count}"
    return Section(
        "device",
        "Feeding the device",
        notes,
        (Grid(f"Inputs of a step, in their order{left}", columns, rows[:CHANNELS]),),
    )


def _data(problem: Problem, figures: Mapping[str, Any]) -> Section:
    parts = {"training": problem.train, "choice of bits": problem.choice, "test": problem.test}
    rows = []
    for name, part in parts.items():
        if name == "choice of bits" and not problem.chooses:
            continue
        steps = part.x.x.shape[1] if part.x.lengths is None else part.x.lengths
        shortest, longest = int(np.min(steps)), int(np.max(steps))
        length = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
        rows.append(Row((name, f"{len(part)}", length, f"{part.x.x.shape[2]}")))
    names = {"test": "test", "choice": "choice of bits", "validation": "validation, used during training"}
    splits = {names[part]: how or "nothing is held out" for part, how in figures["split"].items()}
    grids = (
        Grid("Sequences", ("part", "sequences", "steps", "channels"), tuple(rows)),
        Grid("How each part was held out", ("part", "split"), _rows(splits)),
    )
    return Section("data", "Data", (), grids)


def _settings(facts: Mapping[str, Any]) -> Section:
    rows = {key: "none" if value is None else str(value) for key, value in facts.items()}
    return Section("settings", "Settings", (), (Grid("Everything the figures depend on", ("", ""), _rows(rows)),))


def _rows(texts: Mapping[str, str]) -> tuple[Row, ...]:
    return tuple(Row(pair) for pair in texts.items())


def _score(problem: Problem, value: float) -> str:
    return f"{value:.2f} %" if problem.kind == "classify" else f"{value:.4f}"


def _or_none(value: object) -> str:
    return NONE if value is None else str(value)
