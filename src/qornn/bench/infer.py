"""Inference speed and size against onnxruntime and torch, interleaved in one run, and instructions on a device."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
import torch

from qornn.bench.infer_stack import bench_samples
from qornn.bench.peers import PEERS, Job, Peer, Skipped, ort_session
from qornn.bench.turns import interleaved
from qornn.errors import QornnError
from qornn.export import onnx
from qornn.integer.engine.run import in_use
from qornn.integer.inputs import make_samples
from qornn.integer.program import IntegerProgram
from qornn.integer.simulate import simulate
from qornn.lowering.lower import lower
from qornn.model import OrthogonalRNN
from qornn.verify import needs

SIZES = (170, 256)
BITS, ACTIVATION_BITS, N_O = 4, 12, 10
T = 784  # MNIST pixel by pixel
BATCH, BATCH_T = 128, 98  # a step costs the same at every t, so fewer are measured
TURNS = 10  # at batch 1 a call is some milliseconds: it is timed more often, at little cost
CALIBRATED = 50  # steps; states of an untrained 4-bit W may grow, and α_h should not grow with them
TARGETS = ("cortex-m4", "cortex-m0", "rv32")
STRUCTURED, STRUCTURED_SIZE = ("hadamard", "cycle"), 256  # no W stored: the cheapest steps we have
LAYOUT = "packed"  # on devices flash is what is scarce
MEASURED = (
    *("instructions_per_step", "instructions_per_readout", "flash_bytes", "ram_bytes", "stack_bytes"),
    *("exact", "compiler", "ran_on"),
)


def bench_infer(
    *,
    sizes: Iterable[int] = SIZES,
    targets: Iterable[str] = TARGETS,
    repeats: int = 5,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Batch 1 on one thread, batch 128 on all or one; no ratio where our results are not those of `simulate`."""
    if repeats < 1:
        raise QornnError(f"repeats must be at least 1, got {repeats}")
    programs, targets = {n_h: make_program(n_h) for n_h in sizes}, tuple(targets)
    threads = torch.get_num_threads()
    try:
        host = {str(n_h): _bench_size(program, repeats, say) for n_h, program in programs.items()}
    finally:
        torch.set_num_threads(threads)
    device = next(iter(programs.values()))
    return {
        "bits": BITS,
        "activation_bits": ACTIVATION_BITS,
        "engine": in_use(device),
        "processors": _cores(),
        "repeats": repeats,
        "host": host,
        "targets": [{**asdict(need), "ready": need.ready} for need in needs()],
        "mcu": {target: _on_device(device, target, say) for target in targets},
        "mcu_int8_readout": {
            target: _on_device(make_program(device.n_h, readout="int8"), target, say) for target in targets
        },
        "structured": {name: _bench_structured(name, targets, repeats, say) for name in STRUCTURED},
        "stack": bench_samples(targets=targets, repeats=repeats * TURNS, say=say),
    }


def make_program(n_h: int, *, readout: Literal["float", "int8"] = "float") -> IntegerProgram:
    """The paper's pmnist network, untrained: one scale per matrix, ReLU, pixels in, the last state read in float."""
    return _lowered(n_h, {"activation": "relu"}, readout=readout)


def make_structured(map: str) -> IntegerProgram:
    """The same task by a linear recurrence whose W is not stored, U and V of 4 bits, untrained."""
    linear = {"map": map, "bits_V": BITS, "activation": "identity", "readout_activation": "relu"}
    return _lowered(STRUCTURED_SIZE, linear)


def _lowered(n_h: int, settings: dict[str, Any], **options: Any) -> IntegerProgram:
    generator = torch.Generator().manual_seed(0)
    model = OrthogonalRNN(1, n_h, N_O, bits=BITS, readout="last", generator=generator, **settings)
    pixels = torch.randint(0, 256, (16, CALIBRATED, 1), generator=generator)
    samples = make_samples(0, 255, 1 / 255, channels=1)
    return lower(model, pixels / 255, activation_bits=ACTIVATION_BITS, input=samples, quiet=True, **options)


def _bench_structured(map: str, targets: Iterable[str], repeats: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Our engine alone at batch 1 on one thread: the peers do not have such a W."""
    program = make_structured(map)
    x = np.random.default_rng(0).integers(0, 256, (1, T, 1)).astype(np.int16)
    say(f"{map}, n_h = {program.n_h}, batch 1: {repeats * TURNS} turns")
    key = ("ours", 1)
    seconds = interleaved({key: lambda: program.run(x, threads=1)}, repeats * TURNS)[key]
    return {
        "n_h": program.n_h,
        "agrees_with_simulate": bool((program.run(x, threads=1) == simulate(program, x)[1]).all()),
        "engine": in_use(program),
        "us_per_step": round(median(seconds) / T * 1e6, 3),
        "fastest_us_per_step": round(min(seconds) / T * 1e6, 3),
        "true_bytes": program.true_bytes,
        "mcu": {target: _on_device(program, target, say) for target in targets},
    }


def _bench_size(program: IntegerProgram, repeats: int, say: Callable[[str], None]) -> dict[str, Any]:
    # In a batch each library may use all processors, or one if threads cost more than they gain; the faster counts.
    batch = _bench_batch(program, BATCH, BATCH_T, sorted({1, _cores()}), repeats, say)
    return {
        **_bench_batch(program, 1, T, [1], repeats * TURNS, say),
        "true_bytes": program.true_bytes,  # weights, scales and readout alone, without the file's description
        f"batch_{BATCH}": batch,
    }


def _bench_batch(
    program: IntegerProgram, B: int, steps: int, threads: list[int], turns: int, say: Callable[[str], None]
) -> dict[str, Any]:
    x = np.random.default_rng(0).integers(0, 256, (B, steps, 1)).astype(np.int16)
    agrees = bool((program.run(x, threads=max(threads)) == simulate(program, x)[1]).all())
    peers: dict[tuple[str, int], Peer] = {}
    skipped: dict[str, str] = {}
    for count in threads:
        job = Job(n_h=program.n_h, n_o=program.n_o, B=B, T=steps, threads=count)
        for name, build in _builds(program, x).items():
            try:
                peers[name, count] = build(job)
            except Skipped as reason:
                skipped[name] = str(reason)
    names = list(dict.fromkeys(name for name, _ in peers))
    say(f"n_h = {program.n_h}, batch {B}: {turns} interleaved turns of {', '.join(names)}")
    for name, why in skipped.items():
        say(f"n_h = {program.n_h}, batch {B}: {name} skipped: {why}")
    seconds = interleaved({key: peer.call for key, peer in peers.items()}, turns)
    best = {name: min(threads, key=lambda n: median(seconds[name, n])) for name in names}
    us = {name: median(seconds[name, n]) / steps * 1e6 for name, n in best.items()}  # of the whole batch
    figures: dict[str, dict[str, Any]] = {
        name: {
            "us_per_step": round(us[name], 3),
            "fastest_us_per_step": round(min(seconds[name, n]) / steps * 1e6, 3),
            "model_bytes": peers[name, n].model_bytes,
            "threads": n,
        }
        for name, n in best.items()
    }
    found = {
        **{f"vs_{name}": round(us[name] / us["ours"], 2) if agrees and name in us else None for name in PEERS},
        "agrees_with_simulate": agrees,
        "steps": steps,
        **figures.pop("ours"),
    }
    if "ours_step" in figures:
        found["us_per_step_session"] = figures.pop("ours_step")["us_per_step"]  # Session.step: Python at every step
    return {**found, "peers": figures, "skipped": skipped}


def _builds(program: IntegerProgram, x: np.ndarray) -> dict[str, Callable[[Job], Peer]]:
    """Our engine, our ONNX export, and the peers."""
    stored = _stored_bytes(program)
    ours: dict[str, Callable[[Job], Peer]] = {
        "ours": lambda job: Peer(lambda: program.run(x, threads=job.threads), stored),
        "ours_in_ort": lambda job: _exported(program, job, x),
    }
    if len(x) == 1:
        ours["ours_step"] = lambda _: Peer(_stream(program, x[0]), stored)
    return {**ours, **PEERS}


def _exported(program: IntegerProgram, job: Job, x: np.ndarray) -> Peer:
    """Our own program through its ONNX export."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.onnx")
        try:
            onnx(program, path)
        except QornnError as error:
            raise Skipped(str(error)) from error
        data = path.read_bytes()
    session, raw = ort_session(data, job.threads), x.astype(np.int32)
    return Peer(lambda: session.run(["y"], {"x": raw})[0], len(data))


def _stream(program: IntegerProgram, x: np.ndarray) -> Callable[[], Any]:
    """One sample in, one answer out, the whole sequence.  # x (T, 1)"""
    session = program.session()

    def call() -> Any:
        session.reset()
        for x_t in x:
            y = session.step(x_t)
        return y

    return call


def _on_device(program: IntegerProgram, target: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Instructions (not cycles: an emulator counts no wait states), flash and RAM, all of one binary."""
    say(f"{target}: n_h = {program.n_h}, layout {LAYOUT}")
    try:
        measure, c = import_module("qornn.verify").measure, import_module("qornn.export").c
        with tempfile.TemporaryDirectory() as folder:
            found = measure(c(program, Path(folder, "out"), name="bench", layout=LAYOUT), target)
    except (ImportError, QornnError) as error:  # the extra [mcu], a compiler or an emulator is missing
        say(f"{target} skipped: {error}")
        return {"skipped": str(error)}
    return {"n_h": program.n_h, "layout": LAYOUT, **{key: found[key] for key in MEASURED if key in found}}


def _stored_bytes(program: IntegerProgram) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.qornn")
        program.save(path)
        return path.stat().st_size


def _cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
