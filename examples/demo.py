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
from typing import Any, Literal

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console

import qornn
from qornn.integer.size import size
from qornn.lowering.score import score
from qornn.recipe import resolve
from qornn.tasks import make_task
from qornn.train.log import read_metrics
from qornn.train.run import Run, start
from qornn.verify import measure

ROOT = Path(__file__).parent.parent
NETWORKS: dict[str, int | None] = {"full precision": None, "4-bit weights": 4}
MEASURED = ("steps", "exact", "instructions_per_step", "flash_bytes", "ram_bytes", "stack_bytes")
INTEGERS: dict[str, Literal["float", "int8"]] = {
    "+ integer recurrence, 12-bit states": "float",
    "+ 8-bit readout, integers only": "int8",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the runs and the picture")
    parser.add_argument("--record", action="store_true", help="also renew the README and its picture")
    parser.add_argument("--settings", nargs="*", default=[], help="as in train.epochs=3")
    options = parser.parse_args()
    console = Console()
    rows, curves = {}, {}
    for name, bits in NETWORKS.items():
        console.print(f"\n[bold]Training on digits, {name}[/bold]")
        run, rows[name], curves[name] = train(bits, fresh(options.out), options.settings)
    console.print("\n[bold]From the 4-bit network to integers[/bold]")
    rows |= lower(run, options.out)
    console.print("\n[bold]To C, replayed on this machine and on an emulated Cortex-M4[/bold]")
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


def train(bits: int | None, folder: Path, settings: list[str]) -> tuple[Run, dict[str, Any], list[tuple[float, float]]]:
    """One network: the run, its figures, and validation accuracy by epoch."""
    began = time.monotonic()
    recipe = resolve("digits", bits="fp" if bits is None else bits, settings=settings)
    run = start(recipe, folder)
    task = make_task("digits")
    weight = size(task.n_i, recipe.model.n_h, task.n_o, bits=bits, activation=recipe.model.activation)
    figures = {key: run.result[key] for key in ("value", "orthogonality", "sigma_min", "sigma_max", "max_h")}
    figures |= {
        "bits": bits,
        "n_h": recipe.model.n_h,
        "true_bytes": weight.true_bytes,
        "paper_bytes": weight.paper_bytes,
    }
    metrics = read_metrics(folder / "metrics.jsonl")
    curve = [(r["epoch"], r["validation"]) for r in metrics if r.get("validation") is not None]
    return run, figures | {"seconds": round(time.monotonic() - began, 1)}, curve


def lower(run: Run, out: Path) -> dict[str, dict[str, Any]]:
    """The trained network as integer programs: their files and figures."""
    rows = {}
    for name, readout in INTEGERS.items():
        began = time.monotonic()
        program = qornn.lower(run, readout=readout)
        value = score(program, run.task())
        program = program.with_provenance(metric={"name": "accuracy", "value": value})
        program.save(out / f"digits-{readout}.qornn")
        rows[name] = {
            "value": value,
            "true_bytes": program.true_bytes,
            "accumulator_bits": program.accumulator_bits,
            "saturation": program.provenance["lowering"]["saturation"],
            "seconds": round(time.monotonic() - began, 1),
        }
    return rows


def flash(out: Path) -> dict[str, dict[str, Any]]:
    """The integer network as a folder of C, its test vectors replayed bit for bit."""
    program = qornn.load(out / "digits-int8.qornn")
    assert isinstance(program, qornn.IntegerProgram)
    folder = qornn.export.c(program, out / "c", name="digits")
    found = {target: measure(folder, target) for target in ("host", "cortex-m4")}
    return {target: {key: figures[key] for key in MEASURED} for target, figures in found.items()}


def verdict(devices: dict[str, dict[str, Any]]) -> str:
    """What the replays showed, in a sentence."""
    host, m4 = devices["host"], devices["cortex-m4"]
    return (
        f"The last row as C: {host['steps']} steps replayed bit for bit on this machine and on an emulated Cortex-M4: "
        f"{m4['instructions_per_step']:,} instructions a step, {m4['flash_bytes']:,} bytes of flash with its code, "
        f"{m4['ram_bytes']:,} bytes of RAM and {m4['stack_bytes']:,} of stack."
    )


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    header = "| digits, 64 steps | test accuracy | bytes | singular values of W_q |\n" + 4 * "|---" + "|\n"
    return header + "\n".join(
        f"| {name} | {row['value']:.1f} % | {row['true_bytes']:,} | {singular_values(row)} |"
        for name, row in rows.items()
    )


def singular_values(row: dict[str, Any]) -> str:
    """Of the rows that have a W of their own."""
    return f"{row['sigma_min']:.3f} to {row['sigma_max']:.3f}" if "sigma_min" in row else "the same"


def draw(rows: dict[str, dict[str, Any]], curves: dict[str, list[tuple[float, float]]], path: Path) -> None:
    """Accuracy by epoch, and what it costs in bytes."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    for (name, curve), color in zip(curves.items(), ("tab:gray", "tab:blue"), strict=True):
        left.plot(*zip(*curve, strict=True), color=color, label=name)
    colors = ("tab:gray", "tab:blue", "tab:green", "tab:olive")
    for (name, row), color in zip(rows.items(), colors, strict=True):
        right.barh(name, row["true_bytes"] / 1024, color=color)
        right.text(row["true_bytes"] / 1024, name, f" {row['value']:.1f} %", va="center")
    right.invert_yaxis()
    left.axhline(10, color="black", linestyle=":", linewidth=1, label="guessing")
    left.set(xlabel="epoch", ylabel="validation accuracy (%)", title="Digits, read pixel by pixel", ylim=(0, 100))
    left.legend(frameon=False, loc="lower right")
    right.set(xlabel="kB to store", title="Size and test accuracy")
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
