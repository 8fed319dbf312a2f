"""Digits read pixel by pixel: train, convert to integers, export, verify, and write something to look at."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from qornn import export
from qornn._io.zig import zig
from qornn.demo.picture import draw
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import load, save
from qornn.lowering.lower import lower
from qornn.lowering.score import score
from qornn.recipe import resolve
from qornn.train.log import read_metrics
from qornn.train.run import Run, start
from qornn.verify import measure, needs

MEASURED = ("steps", "exact", "instructions_per_step", "flash_bytes", "ram_bytes", "stack_bytes")
TARGETS = ("host", "cortex-m4")
MCU = "pip install 'qornn[mcu]'"


class Network(NamedTuple):
    """One row of the table."""

    title: str
    color: str
    file: str | None  # of the integer program; None: stays as it was trained
    choices: dict[str, Any]  # of the recipe


NETWORKS = (
    Network("stack of rotations, full precision", "tab:gray", None, {"model": "stack", "bits": "fp"}),
    Network("stack of rotations, integers: 4-bit weights", "tab:green", "digits", {"model": "stack", "bits": 4}),
    Network("the paper's single layer, integers: 4-bit weights", "tab:blue", "digits-layer", {"bits": 4}),
)


@dataclass
class Demo:
    """What a demo found, and what it wrote."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    devices: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)  # what it is: where it is
    notes: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """As `qornn demo --json` prints them."""
        files = {what: str(path) for what, path in self.files.items()}
        return {"networks": self.rows, "devices": self.devices, "files": files, "notes": self.notes}


def demo(out: Path, *, settings: Sequence[str] = (), say: Callable[[str], None] = print) -> Demo:
    """Do all of it in the folder `out`; `say` is called at the start of every part."""
    found, curves = Demo(), {}
    for number, network in enumerate(NETWORKS, 1):
        say(f"[{number}/{len(NETWORKS) + 1}] training on digits: {network.title}")
        run, found.rows[network.title], curves[network.title] = _train(network, fresh(out), settings)
        if network.file:
            found.rows[network.title] |= _lower(run, out / f"{network.file}.qornn")
    say(f"[{len(NETWORKS) + 1}/{len(NETWORKS) + 1}] exporting the 4-bit stack as C")
    program = load(out / "digits.qornn")
    found.files["network"] = out / "digits.qornn"
    found.files["C"] = export.c(program, out / "c", name="digits")
    _verify(found, say)
    found.files["picture"] = out / "demo.png"
    draw({network.title: network.color for network in NETWORKS}, found.rows, curves, found.files["picture"])
    _page(found, program, out / "web", say)
    return found


def fresh(out: Path) -> Path:
    """A folder for this run's own: earlier ones are left alone."""
    number = 1
    while (folder := out / f"run-{number}").exists():
        number += 1
    return folder


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    header = "| digits, one pixel per step | test accuracy | bytes |\n" + 3 * "|---" + "|\n"
    return header + "\n".join(
        f"| {name} | {row['value']:.1f} % | {row['true_bytes']:,} |" for name, row in rows.items()
    )


def verdict(devices: dict[str, dict[str, Any]]) -> str:
    """What the replays showed, in a sentence; empty where nothing was replayed."""
    host, m4 = devices.get("host"), devices.get("cortex-m4")
    if m4 is None:
        return "" if host is None else f"The second row as C: {host['steps']} steps replayed bit for bit here."
    places = "this machine and an emulated Cortex-M4" if host else "an emulated Cortex-M4"
    return (
        f"The second row as C: {m4['steps']} steps replayed bit for bit on {places}: "
        f"{m4['instructions_per_step']:,} instructions per step, {m4['flash_bytes']:,} bytes of flash with its code, "
        f"{m4['ram_bytes']:,} bytes of RAM and {m4['stack_bytes']:,} of stack."
    )


def _train(
    network: Network, folder: Path, settings: Sequence[str]
) -> tuple[Run, dict[str, Any], list[tuple[float, float]]]:
    """One network: the run, its figures, and validation accuracy by epoch."""
    began = time.monotonic()
    run = start(resolve("digits", settings=list(settings), **network.choices), folder)
    figures = {
        "value": run.result["value"],
        "true_bytes": 4 * sum(parameter.numel() for parameter in run.model.parameters()),
        "seconds": round(time.monotonic() - began, 1),
    }
    metrics = read_metrics(folder / "metrics.jsonl")
    return run, figures, [(r["epoch"], r["validation"]) for r in metrics if r.get("validation") is not None]


def _lower(run: Run, path: Path) -> dict[str, Any]:
    """The trained network as an integer program: its file and figures."""
    program = lower(run, readout="int8")
    value = score(program, run.task())
    save(program.with_provenance(metric={"name": "accuracy", "value": value}), path)
    return {"value": value, "true_bytes": program.true_bytes, "accumulator_bits": program.accumulator_bits}


def _verify(found: Demo, say: Callable[[str], None]) -> None:
    """Replay the test vectors of the C wherever the tools for it are installed."""
    for need in needs():
        if need.target not in TARGETS:
            continue
        if not need.ready:
            found.notes.append(f"the C was not verified on {need.target}: {need.missing} is missing; {need.install}")
            continue
        say(f"verifying the C on {need.target}")
        figures = measure(found.files["C"], need.target)
        found.devices[need.target] = {key: figures[key] for key in MEASURED}


def _page(found: Demo, program: IntegerProgram, out: Path, say: Callable[[str], None]) -> None:
    """The network in a page for browsers, where the compiler for it is installed."""
    if zig() is None:
        found.notes.append(f"no web page was written, because the zig compiler is missing; {MCU}")
        return
    say("compiling the network for a web page")
    found.files["web page"] = export.web(program, out, name="digits") / "index.html"
