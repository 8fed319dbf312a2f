"""What a network of the zoo remembers: ten symbols, a thousand silent steps, the ten symbols again, all in integers.

python examples/recall.py -o recall.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import qornn
from qornn.integer.program import IntegerProgram
from qornn.tasks.copy import LENGTH, MARKER, Copy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="zoo:copy1000-k5")
    parser.add_argument("--seed", type=int, default=0, help="seed of the ten symbols")
    parser.add_argument("-o", "--out", type=Path, default=Path("recall.png"))
    options = parser.parse_args()
    program = qornn.load(options.program)
    assert isinstance(program, IntegerProgram)
    x, states, p = recall(program, options.seed)
    answered = p.argmax(1)
    right = int((answered == x[:LENGTH]).sum())
    print(f"asked  {' '.join(map(str, x[:LENGTH]))}\nanswer {' '.join(map(str, answered))}   {right} of {LENGTH}")
    draw(options.out, x, states, p, program)
    print(f"The picture: {options.out}")


def recall(program: IntegerProgram, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One fresh sequence (T,), the integer states (T, n_h), and the probabilities of the last ten answers (10, n_o)."""
    task = Copy(T0=int(program.provenance["recipe"]["task"].get("T0", 1000)))
    x = task.batch("train", 0, 1, seed=seed).x.numpy()  # drawn afresh, for no set
    states, y = qornn.simulate(program, x)
    y = program.readout.values(y)[0, -LENGTH:].astype(np.float64)
    p = np.exp(y - y.max(1, keepdims=True))
    return x[0], states[0], p / p.sum(1, keepdims=True)


def draw(path: Path, x: np.ndarray, states: np.ndarray, p: np.ndarray, program: IntegerProgram) -> None:
    """Input, states and answers, from left to right in time."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 4, 1))
    heard = np.zeros((MARKER, LENGTH))
    heard[x[:LENGTH], np.arange(LENGTH)] = 1
    for axes, shown, title in ((left, heard, "ten symbols in"), (right, p.T, "ten symbols out")):
        axes.imshow(
            shown[1:], cmap="Greys", vmin=0, vmax=1, aspect="auto", origin="lower", extent=(0, LENGTH, 0.5, 8.5)
        )
        axes.plot(np.arange(LENGTH) + 0.5, x[:LENGTH], "o", mfc="none", mec="tab:red", ms=9)
        axes.set(title=title, xticks=[], yticks=range(1, MARKER))
    top = np.percentile(np.abs(states), 99)
    middle.imshow(states.T, cmap="Greys", vmin=0, vmax=top, aspect="auto", interpolation="nearest")
    facts = f"{len(states)} steps of {program.n_h} states on {program.state.bits} bits"
    middle.set(title=f"{facts}, weights on {program.W.bits} bits", xlabel="step", ylabel="unit")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
