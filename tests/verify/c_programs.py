"""Small programs of every kind, for exported C."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "integer"))  # the random programs of tests/integer
from single import changed
from strategies import paper, per_row, random_net

import compiling
from qornn.integer.readout import IntReadout
from qornn.verify.folder import find
from qornn.verify.replay import replayed

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]
GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="gcc is not installed")
# All forms, activations, k, inputs and readouts, each several times, with odd widths.
DENSE = [
    {"form": "per-row", "k": 2, "n_h": 7, "n_i": 1},
    {"form": "per-row+I", "activation": "modrelu", "k": 3, "n_h": 33, "codes": True},
    {"form": "per-row~", "k": 4, "n_h": 14},
    {"form": "multiplier", "k": 4, "n_h": 17, "integer": True},
    {"form": "thresholds", "activation": "identity", "k": 5, "n_h": 9, "integer": True, "relu": True},
    {"form": "thresholds", "activation": "modrelu", "k": 6, "n_h": 1, "k_a": 6, "n_o": 1},
    {"form": "per-row", "activation": "identity", "k": 7, "n_h": 3, "relu": True, "normalised": True},
    {"form": "multiplier", "activation": "modrelu", "k": 8, "n_h": 40, "k_a": 16, "codes": True, "integer": True},
    {"form": "per-row", "k": 4, "n_h": 32, "n_i": 9, "k_U": 8, "normalised": True, "integer": True},
    {"form": "multiplier", "k": 4, "n_h": 11, "n_i": 6, "normalised": "narrow", "window": 3},
    {"form": "per-row", "k": 3, "n_h": 11, "n_i": 6, "normalised": True, "window": 2},
]
# Samples of all 16 bits (k_i = k + k_a - k_U - e), few of them and many: U column by column and row by row.
WIDE = [
    {"n_i": n_i, "k_U": k_U, "n_h": n_h, "e": 4 + 9 - k_U - 16}
    for n_i, k_U, n_h in ((4, 4, 17), (8, 2, 19), (8, 6, 13), (17, 5, 14), (17, 8, 33), (48, 4, 21), (48, 7, 13))
]


def make(
    form="per-row",
    activation="relu",
    *,
    codes=False,
    integer=False,
    relu=False,
    seed=0,
    normalised=False,
    window=1,
    **sizes,
):
    """A program; `form` as in requant, or per-row+I for the identity offset, per-row~ for rows that differ.

    Samples are normalised in 64 bits, or with normalised="narrow" in 32 and with raw units of their own.
    """
    settings = {"n_i": 3, "n_h": 13, "n_o": 3, "k": 4, "k_U": 5, "k_a": 9, "e": 2, "m": 0, **sizes}
    net = random_net(seed, alphas=(0.40625, 0.75, 1.25), activation=activation, codes=codes, **settings)
    rng = np.random.default_rng(seed)
    readout = None
    if integer:
        V = rng.integers(-128, 128, (settings["n_o"], settings["n_h"]))
        readout = IntReadout(V=V, bias=rng.integers(-1000, 1000, settings["n_o"]), scale=0.01, relu=relu)
    if form.startswith("per-row"):
        program, _ = per_row(net, form.endswith("I"), readout)
        if form.endswith("~"):
            spread = program.requant.M_W - rng.integers(1, 2**20, program.n_h, dtype=np.int32)
            program = changed(program, requant=replace(program.requant, M_W=spread))
    else:
        program = paper(net, form, readout)
    if normalised:
        channels, down = settings["n_i"] // window, 17 if normalised == "narrow" else 0
        samples = replace(
            program.input,
            low=-3000,
            high=20000,
            offset=rng.integers(-1000, 1000, channels),
            multiplier=rng.integers(2**20, 2**31, channels) >> down,
            shift=np.full(channels, 36 - down),
            scale=0.01,
            raw_scale=np.exp2(np.arange(channels) - 3) if down else None,
            window=window,
        )
        program = changed(program, input=samples)
    return program if integer else changed(program, readout=replace(program.readout, relu=relu))


def compile_and_run(folder, sources, *options, run=True):
    """gcc on those files; what the program says."""
    program = folder / "a.out"
    command = [GCC, *options, *map(str, sources), "-o", str(program)]
    if not compiling.session.run(command):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    if not run:
        return ""
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def as_it_lies(folder, target="host"):
    """The replay of a folder's own files, edited as they may be: what `verify` would never compile."""
    folder = Path(folder)
    export = find(folder)
    return replayed(replace(export, files={name: (folder / name).read_bytes() for name in export.files}), target)
