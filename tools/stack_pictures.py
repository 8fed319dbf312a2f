"""The pictures of docs/stacks.md: λ before and after training, states over time, accuracy over bytes.

python tools/stack_pictures.py --record

The first two are of a network trained here on scikit-learn's digits, the third of the records in results/.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import qornn
from qornn.integer.engine.run import states
from qornn.recipe import resolve
from qornn.tasks import make_task
from qornn.train.build import build_model

ROOT = Path(__file__).parent.parent
PICTURES = {name: ROOT / "docs" / f"stacks-{name}.png" for name in ("lambda", "states", "bytes")}
SETTINGS = ("model.width=24", "model.pairs=24")
BEFORE, AFTER, OURS = "#9ecae1", "#08519c", "#238b45"
NAMES = {"har": "HAR", "ecg5000": "ECG5000", "forda": "FordA"}
WORDS = {"stack": "stack, 8-bit states", "qornn": "one layer", "lstm": "LSTM, float32", "logistic": "features"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="renew the pictures in docs/")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = qornn.train("digits", model="stack", settings=SETTINGS, out=Path(folder) / "run", quiet=True)
        program = qornn.lower(run, quiet=True)
    recipe = resolve("digits", model="stack", settings=SETTINGS)
    fresh = build_model(recipe, make_task("digits"))
    made = {"lambda": disc(fresh, run.model), "states": over_time(program), "bytes": over_bytes()}
    for name, figure in made.items():
        if options.record:
            FigureCanvasAgg(figure).print_png(PICTURES[name], metadata={"Software": None})
            print(PICTURES[name].relative_to(ROOT))


def disc(before: torch.nn.Module, after: torch.nn.Module) -> Figure:
    """λ of every layer of rotations in the upper half of the unit disc."""
    pairs = [(b, a) for b, a in zip(before.layers, after.layers, strict=True) if b.n_state]
    figure = Figure(figsize=(4.2 * len(pairs), 2.9), layout="constrained", dpi=120)
    angle = np.linspace(0, np.pi, 200)
    for i, (axes, layers) in enumerate(zip(np.ravel(figure.subplots(1, len(pairs))), pairs, strict=True)):
        axes.plot(np.cos(angle), np.sin(angle), color="0.6", linewidth=1)
        points = [np.stack([v.detach().numpy() for v in layer.eigenvalues()]) for layer in layers]
        for start, end in zip(*(p.T for p in points), strict=True):
            axes.plot(*np.stack([start, end]).T, color="0.85", linewidth=0.8, zorder=0)
        axes.scatter(*points[0], s=16, color=BEFORE, label="before training")
        axes.scatter(*points[1], s=16, color=AFTER, label="after training")
        axes.set(title=f"rotations {i + 1}", xlabel="real part of λ", aspect="equal", ylim=(-0.05, 1.05))
    figure.axes[0].set_ylabel("imaginary part of λ")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, fontsize=8, loc="outside upper center", ncols=2)
    return figure


def over_time(program: qornn.IntegerProgram) -> Figure:
    """The integer states of the last layer of rotations for three digits."""
    task = make_task("digits")
    batch = task.batch("test", 0, task.size("test"))
    rows = [int(np.flatnonzero(batch.target.numpy() == digit)[0]) for digit in (0, 1, 7)]
    raw = program.input.clip(program.input.from_network(batch.x.numpy()[rows]))
    found = states(program, raw)  # (3, T, 2p)
    figure = Figure(figsize=(8.4, 2.7), layout="constrained", dpi=120)
    for axes, digit, each in zip(figure.subplots(1, 3, sharey=True), (0, 1, 7), found, strict=True):
        image = axes.imshow(each.T, aspect="auto", cmap="RdBu", vmin=-127, vmax=127, interpolation="nearest")
        axes.set(title=f"digit {digit}", xlabel="pixel")
    figure.axes[0].set_ylabel("real, then imaginary parts")
    figure.colorbar(image, ax=figure.axes, label="state, 8 bits")
    return figure


def over_bytes() -> Figure:
    """Accuracy over the bytes that must be kept, of every record on real data: one panel for each set."""
    figure = Figure(figsize=(9, 3.2), layout="constrained", dpi=120)
    stacks, others = _record("stacks.json"), _record("real.json")
    for axes, (name, title) in zip(figure.subplots(1, len(NAMES), sharex=True), NAMES.items(), strict=True):
        points = {"stack": (stacks[name]["runs"][0]["bytes"], stacks[name]["accuracy"])} if name in stacks else {}
        points |= {key: (m["bytes"], m["accuracy"]) for key, m in others[name]["methods"].items() if key in WORDS}
        for key, (size, accuracy) in points.items():
            axes.scatter(size, accuracy, color={"stack": OURS, "qornn": AFTER}.get(key, "0.6"), s=36)
            axes.annotate(WORDS[key], (size, accuracy), textcoords="offset points", xytext=(6, -3), fontsize=8)
        axes.set(title=title, xscale="log", xlabel="bytes", xlim=(40, 3e6))
        axes.margins(y=0.15)
    figure.axes[0].set_ylabel("test accuracy, %")
    return figure


def _record(name: str) -> dict[str, Any]:
    path = ROOT / "results" / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


if __name__ == "__main__":
    main()
