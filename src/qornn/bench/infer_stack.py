"""A stack of rotations at one sequence at a time: against an int8 LSTM, and on a device."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import torch

from qornn.bench.peers import Job, Peer, Skipped, ort_lstm_int8
from qornn.bench.turns import interleaved
from qornn.errors import QornnError
from qornn.integer.engine.run import in_use
from qornn.integer.program import IntegerProgram
from qornn.integer.simulate import simulate
from qornn.lowering.lower import lower
from qornn.model import Stack

STEPS: Final = 125  # of four samples: a sequence of FordA
WINDOW: Final = 4
PEER: Final = "ort_lstm_int8"
PEER_UNITS: Final = 64


def make_stack() -> IntegerProgram:
    """The network for FordA, untrained: four samples per step, width and pairs 16, two layers, 4 bits, the mean."""
    generator = torch.Generator().manual_seed(0)
    model = Stack.rotations(
        WINDOW, 2, width=16, pairs=16, layers=2, bits=4, state_bits=8, pool="mean", generator=generator
    )
    x = torch.randn(32, STEPS, WINDOW, generator=generator)
    with torch.no_grad():
        model.train()(x)  # which sets the steps of its grids
    return lower(model.eval(), x, quiet=True)


def bench_samples(
    program: IntegerProgram | None = None,
    *,
    targets: Iterable[str] = (),
    repeats: int = 50,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Microseconds of one sequence on one thread, divided by its samples: a step may read several.

    The peer reads one number at every sample.
    """
    window = WINDOW if program is None else program.input.window
    program = program or make_stack()
    x = program.input.draw(np.random.default_rng(0), STEPS)
    x = program.input.clip(x).reshape(1, STEPS, *program.input.shape)
    samples = STEPS * window
    agrees = bool((program.run(x, threads=1) == simulate(program, x)[1]).all())
    calls: dict[tuple[str, int], Callable[[], Any]] = {("ours", 1): lambda: program.run(x, threads=1)}
    skipped: dict[str, str] = {}
    try:
        calls[PEER, 1] = _peer(program.n_o, samples).call
    except Skipped as reason:
        skipped[PEER] = str(reason)
    say(f"stack, {STEPS} steps of {window} samples: {repeats} turns of {', '.join(name for name, _ in calls)}")
    seconds = interleaved(calls, repeats)
    us = {name: median(found) / samples * 1e6 for (name, _), found in seconds.items()}
    fastest = {name: min(found) / samples * 1e6 for (name, _), found in seconds.items()}
    return {
        "layers": [layer.describe() for layer in program.layers],
        "engine": in_use(program),
        "agrees_with_simulate": agrees,
        "steps": STEPS,
        "window": window,
        "true_bytes": program.true_bytes,
        "us_per_sample": round(us["ours"], 4),
        "fastest_us_per_sample": round(fastest["ours"], 4),
        f"vs_{PEER}": round(us[PEER] / us["ours"], 1) if agrees and PEER in us else None,
        f"fastest_vs_{PEER}": round(fastest[PEER] / fastest["ours"], 1) if agrees and PEER in us else None,
        "peers": {} if skipped else {PEER: {"units": PEER_UNITS, "us_per_sample": round(us[PEER], 4)}},
        "skipped": skipped,
        "mcu": {target: _on_device(program, target, window, say) for target in targets},
    }


def _peer(n_o: int, samples: int) -> Peer:
    return ort_lstm_int8(Job(n_h=PEER_UNITS, n_o=n_o, B=1, T=samples, threads=1))


def _on_device(program: IntegerProgram, target: str, window: int, say: Callable[[str], None]) -> dict[str, Any]:
    """What `verify` measures, and instructions per sample."""
    say(f"{target}: the stack")
    try:
        measure, c = import_module("qornn.verify").measure, import_module("qornn.export").c
        with tempfile.TemporaryDirectory() as folder:
            found = measure(c(program, Path(folder, "out"), name="bench", layout="packed"), target)
    except (ImportError, QornnError) as error:  # the extra [mcu], a compiler or an emulator is missing
        say(f"{target} skipped: {error}")
        return {"skipped": str(error)}
    keys = ("instructions_per_step", "flash_bytes", "ram_bytes", "stack_bytes", "exact")
    kept = {key: found[key] for key in keys if key in found}
    return {"instructions_per_sample": round(found["instructions_per_step"] / window), **kept}
