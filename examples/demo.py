"""The main job on data that ships with scikit-learn: digits read pixel by pixel, from full precision to pure integers.

python examples/demo.py --out demo
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console

import qornn
from qornn.lowering.score import score
from qornn.recipe import resolve
from qornn.train.log import read_metrics
from qornn.train.run import Run, start
from qornn.verify import measure

ROOT = Path(__file__).parent.parent
MEASURED = ("steps", "exact", "instructions_per_step", "flash_bytes", "ram_bytes", "stack_bytes")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the runs and the picture")
    parser.add_argument("--record", action="store_true", help="also update the README and its picture")
    parser.add_argument("--settings", nargs="*", default=[], help="as in train.epochs=3")
    options = parser.parse_args()
    console = Console()
    rows, curves = {}, {}
    for network in NETWORKS:
        console.print(f"\n[bold]Training on digits: {network.title}[/bold]")
        run, rows[network.title], curves[network.title] = train(network, fresh(options.out), options.settings)
        if network.file:
            rows[network.title] |= lower(run, options.out / f"{network.file}.qornn")
    console.print("\n[bold]The stack as C, replayed on this machine and on an emulated Cortex-M4[/bold]")
    devices = flash(options.out)
    picture = options.out / "demo.png"
    draw(rows, curves, picture)
    print(f"\n{table(rows)}\n\n{verdict(devices)}\n\nThe learning curves: {picture}   The C: {options.out / 'c'}")
    if options.record:
        record(rows, devices, picture)


def fresh(out: Path) -> Path:
    """A folder for this run's own: earlier ones are left alone."""
    number = 1
    while (folder := out / f"run-{number}").exists():
        number += 1
    return folder


def train(network: Network, folder: Path, settings: list[str]) -> tuple[Run, dict[str, Any], list[tuple[float, float]]]:
    """One network: the run, its figures, and validation accuracy by epoch."""
    began = time.monotonic()
    recipe = resolve("digits", settings=settings, **network.choices)
    run = start(recipe, folder)
    figures = {
        "value": run.result["value"],
        "true_bytes": 4 * sum(parameter.numel() for parameter in run.model.parameters()),
        "seconds": round(time.monotonic() - began, 1),
    }
    metrics = read_metrics(folder / "metrics.jsonl")
    curve = [(r["epoch"], r["validation"]) for r in metrics if r.get("validation") is not None]
    return run, figures, curve


def lower(run: Run, path: Path) -> dict[str, Any]:
    """The trained network as an integer program: its file and figures."""
    program = qornn.lower(run, readout="int8")
    value = score(program, run.task())
    program.with_provenance(metric={"name": "accuracy", "value": value}).save(path)
    return {"value": value, "true_bytes": program.true_bytes, "accumulator_bits": program.accumulator_bits}


def flash(out: Path) -> dict[str, dict[str, Any]]:
    """The integer network as a folder of C, its test vectors replayed bit for bit."""
    program = qornn.load(out / "digits.qornn")
    assert isinstance(program, qornn.IntegerProgram)
    folder = qornn.export.c(program, out / "c", name="digits")
    found = {target: measure(folder, target) for target in ("host", "cortex-m4")}
    return {target: {key: figures[key] for key in MEASURED} for target, figures in found.items()}


def verdict(devices: dict[str, dict[str, Any]]) -> str:
    """What the replays showed, in a sentence."""
    host, m4 = devices["host"], devices["cortex-m4"]
    return (
        f"The second row as C: {host['steps']} steps replayed bit for bit on this machine and an emulated Cortex-M4: "
        f"{m4['instructions_per_step']:,} instructions per step, {m4['flash_bytes']:,} bytes of flash with its code, "
        f"{m4['ram_bytes']:,} bytes of RAM and {m4['stack_bytes']:,} of stack."
    )


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    header = "| digits, one pixel per step | test accuracy | bytes |\n" + 3 * "|---" + "|\n"
    return header + "\n".join(
        f"| {name} | {row['value']:.1f} % | {row['true_bytes']:,} |" for name, row in rows.items()
    )


def draw(rows: dict[str, dict[str, Any]], curves: dict[str, list[tuple[float, float]]], path: Path) -> None:
    """Accuracy over the training, and what it costs in bytes."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    for network in NETWORKS:
        epochs, values = zip(*curves[network.title], strict=True)
        left.plot([epoch / epochs[-1] for epoch in epochs], values, color=network.color, label=network.title)
        row, wrapped = rows[network.title], network.title.replace(", ", ",\n")
        right.barh(wrapped, row["true_bytes"] / 1024, color=network.color)
        right.text(row["true_bytes"] / 1024, wrapped, f" {row['value']:.1f} %", va="center")
    right.invert_yaxis()
    left.axhline(10, color="black", linestyle=":", linewidth=1, label="guessing")
    left.set(xlabel="share of the training", ylabel="validation accuracy (%)", ylim=(0, 100))
    left.set_title("Digits, read pixel by pixel")
    left.legend(frameon=False, loc="lower right", fontsize=8)
    right.set(xlabel="kB to store", title="Size and test accuracy")
    right.tick_params(axis="y", labelsize=8)
    right.margins(x=0.3)
    right.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def block_text(rows: dict[str, dict[str, Any]], devices: dict[str, dict[str, Any]]) -> str:
    """What the README shows of a record."""
    return f"{table(rows)}\n\n{verdict(devices)}\n"


def record(rows: dict[str, dict[str, Any]], devices: dict[str, dict[str, Any]], picture: Path) -> None:
    """Renew what the README shows, from this run alone."""
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads"
    content = {
        "version": qornn.__version__,
        "torch": torch.__version__,
        "machine": machine,
        "rows": rows,
        "devices": devices,
    }
    for folder in ("results", "docs"):
        (ROOT / folder).mkdir(exist_ok=True)
    (ROOT / "results" / "demo.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (ROOT / "docs" / "demo.png").write_bytes(picture.read_bytes())
    readme = ROOT / "README.md"
    block = re.compile(r"(<!-- demo: .*? -->\n).*?(<!-- /demo -->)", re.DOTALL)
    text = block.sub(lambda m: m[1] + block_text(rows, devices) + m[2], readme.read_text(encoding="utf-8"))
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
