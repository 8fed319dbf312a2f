"""Random programs: the host engine with every kernel, sessions, ONNX and compiled C equal `simulate` bit for bit."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "integer"))  # strategies.py, stacks.py and others
from single import changed
from stacks import make_stack
from strategies import paper, per_row, random_input, random_net, random_readout
from structured_programs import FORMS, KINDS, make_program, make_W

from qornn import export
from qornn.errors import ProgramError, SettingsError
from qornn.integer.engine import run as engine
from qornn.integer.inputs import Codes, Samples
from qornn.integer.readout import FloatReadout
from qornn.integer.simulate import simulate
from qornn.verify import verify

SANITIZED = "gcc -g -fsanitize=address,undefined -fno-sanitize-recover=all"
C_SHARE, ONNX_SHARE = 0.04, 0.1  # of the programs: compiling takes a hundred times as long as the rest


def random_program(rng):
    """Any layers, activation, requantization, input and readout; None where the sums would not fit."""
    try:
        kind = rng.random()
        return _stack(rng) if kind < 0.35 else _structured(rng) if kind < 0.6 else _dense(rng)
    except (ProgramError, SettingsError):  # sums or tables that would not fit: nothing to run
        return None


def attack(rng, folder):
    """One program, over all executors that can run it."""
    program = random_program(rng)
    if program is None:
        return "refused"
    B, T = int(rng.integers(1, 7)), int(rng.integers(1, 40))
    x = random_input(program, int(rng.integers(2**31)), B=B, T=T)
    lengths = rng.integers(1, T + 1, B)
    _engine(program, x, lengths, threads=int(rng.integers(1, 4)))
    done = "simulation, host engine"
    if program.numpy_only:
        return done
    if find_spec("onnxruntime") and rng.random() < ONNX_SHARE:
        _onnx(program, x, folder)
        done += ", ONNX"
    if shutil.which("gcc") and rng.random() < C_SHARE:
        _c(program, folder)
        done += ", C under sanitizers"
    return done


def _dense(rng):
    def draw(low, high):
        return int(rng.integers(low, high + 1))

    shape = {"n_i": draw(1, 20), "n_h": draw(1, 70), "n_o": draw(1, 5)}
    bits = {"k": draw(2, 8), "k_U": draw(2, 8), "k_a": draw(4, 16), "e": draw(-6, 8), "m": draw(-3, 3)}
    bits["k_a"] = min(bits["k_a"], 28 - bits["k"] - shape["n_h"].bit_length())  # sums that no shift could make fit
    alphas = tuple(float(np.float32(a)) for a in rng.uniform(0.0625, 2, 3))
    activation = str(rng.choice(["relu", "modrelu", "identity"]))
    net = random_net(draw(0, 2**31), alphas=alphas, activation=activation, codes=rng.random() < 0.3, **shape, **bits)
    readout = random_readout(rng, shape["n_h"], bool(rng.integers(2))) if rng.random() < 0.5 else None
    steps = str(rng.choice(["last", "all"]))
    form = str(rng.choice([*FORMS, "per-row+I"]))
    if form.startswith("per-row"):
        program, _ = per_row(net, form.endswith("I"), readout, steps)
    else:
        program = paper(net, form, readout, steps)
    return _normalised(program, rng) if isinstance(program.input, Samples) and rng.random() < 0.5 else program


def _normalised(program, rng):
    """Raw samples of any range, with an offset, a multiplier and a shift of each channel."""
    n_i = program.n_i
    low, high = sorted(rng.integers(-(2**15), 2**15, 2).tolist())
    shift = rng.integers(20, 45, n_i)
    multiplier, offset = rng.integers(0, 2**31, n_i), rng.integers(-1000, 1000, n_i)
    samples = replace(program.input, low=low, high=high, offset=offset, multiplier=multiplier, shift=shift)
    return changed(program, input=samples)


def _structured(rng):
    W = make_W(str(rng.choice(KINDS)), rng)
    steps = str(rng.choice(["last", "all"]))
    return make_program(
        W,
        str(rng.choice(FORMS)),
        str(rng.choice(["identity", "biased", "modrelu", "relu"])),
        seed=int(rng.integers(2**31)),
        k_a=int(rng.integers(4, 13)),
        e=int(rng.integers(-3, 6)),
        codes=bool(rng.integers(2)),
        bits_V=None if rng.random() < 0.4 else int(rng.integers(2, 9)),
        steps=steps,
        mix=steps == "last" and W.n_h.bit_count() == 1 and bool(rng.integers(2)),
    )


def _stack(rng):
    """Rotations and mixes, of sizes about the kernels' blocks of 4 and 16 rows."""

    def draw(low, high):
        return int(rng.integers(low, high + 1))

    steps = str(rng.choice(["last", "all", "mean"]))
    sizes = [1, 2, 3, 4, 5, 8, 15, 16, 17, 33]
    return make_stack(
        draw(0, 2**31),
        **{name: bool(rng.integers(2)) for name in ("stem", "skip", "codes", "narrow", "relu")},
        **{name: int(rng.choice(sizes)) for name in ("width", "pairs")},
        layers=draw(1, 3),
        channels=draw(1, 5),
        window=draw(1, 4),
        input_bits=draw(2, 12),
        bits=draw(2, 8),
        state_bits=draw(4, 16),
        lambda_bits=draw(8, 12),
        steps=steps,
        steps_max=2 * draw(1, 8),
        floats=steps != "mean" and bool(rng.integers(2)),
        bits_V=draw(2, 8),
        n_o=draw(1, 4),
    )


def _engine(program, x, lengths, threads):
    states, y = simulate(program, x, lengths)
    hows = [{}]
    if engine.runs_native(program):
        hows = [{"layout": way, "kernel": k} for way in ("bytes", "packed") for k in engine.available(program, way)]
    for how in hows:
        np.testing.assert_array_equal(engine.states(program, x, lengths, threads=threads, **how), states)
        np.testing.assert_array_equal(engine.run(program, x, lengths, threads=threads, **how), y)
    session, whole = program.session(), simulate(program, x[:1])[1][0]
    for sample in x[0]:
        answer = session.step(sample)
    np.testing.assert_array_equal(np.asarray(answer).ravel(), (whole[-1] if program.readout.every else whole).ravel())


def _onnx(program, x, folder):
    import onnxruntime

    path = folder / "attacked.onnx"
    export.onnx(program, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    running = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = x.astype(np.int64 if isinstance(program.input, Codes) else np.int32)
    y, states = running.run(["y", "states"], {"x": given})
    law_states, law_y = simulate(program, x)
    np.testing.assert_array_equal(states, law_states)
    if not isinstance(program.readout, FloatReadout):  # floats are summed in the runtime's own order
        np.testing.assert_array_equal(y, law_y)


def _c(program, folder):
    out = folder / "c"
    shutil.rmtree(out, ignore_errors=True)
    export.c(program, out, name="net", vector_steps=12)
    with mock.patch.dict(os.environ, {"CC": SANITIZED, "ASAN_OPTIONS": "detect_leaks=0", "LD_PRELOAD": ""}):
        result = verify(out)
    assert result.exact, f"the compiled C differs: {result.difference}"
