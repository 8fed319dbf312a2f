"""Training speed and memory against torch.nn.RNN and autograd, interleaved in one run."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from qornn.bench.builds import SHAPES, Shape, batch, build, structured, training_step
from qornn.bench.timing import interleaved
from qornn.errors import QornnError, unknown
from qornn.maps import Bjorck, start
from qornn.recurrence import in_use, recurrence, recurrence_with_readout, reference
from qornn.structure import MAPS as STRUCTURED

SGEMMS = 20  # products of 1024³ in one measurement: long enough to be timed
TOLERANCE = 1e-4  # relative, float32
# A unit within round-off of its threshold is on in one order of summation and off in another: its gradient jumps.
GRADIENT_TOLERANCE = 2e-3
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
VARIANTS = (("ours", "relu"), ("nn_rnn", "relu"), ("ours", "modrelu"), ("autograd", "modrelu"))


def bench_train(
    shapes: list[str] | None = None, *, repeats: int = 5, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Measure every shape; a ratio whose two sides disagree in their results is not given."""
    found = {name: _bench_shape(name, SHAPES[name], repeats, say) for name in _known(shapes)}
    peaks = [figures.pop("peak_gflops") for figures in found.values()]
    return {
        "peak_gflops": round(median(peaks), 1),
        "recurrence": in_use(),
        "threads": torch.get_num_threads(),
        "repeats": repeats,
        "shapes": found,
    }


def _bench_shape(name: str, shape: Shape, repeats: int, say: Callable[[str], None]) -> dict[str, Any]:
    say(f"{name}: agreement with the reference")
    ok = _agrees(shape, "relu") and _agrees(shape, "modrelu")
    calls: dict[str, Callable[[], object]] = {"sgemm": _sgemm()}
    calls |= {
        f"recurrence {kind}": _recurrence_call(kind, shape) for kind in ("native", "reference", "nn_rnn", "autograd")
    }
    calls |= {f"bjorck {kind}": _bjorck_call(shape.n_h, exact=kind == "exact") for kind in ("fast", "exact")}
    calls |= {f"step {b} {a}": training_step(build(b, shape, a), shape) for b, a in VARIANTS}
    say(f"{name}: {repeats} interleaved repeats of {len(calls)} measurements")
    seconds = interleaved(calls, repeats)
    say(f"{name}: peak memory")
    memory = {f"{b} {a}": _peak_memory(name, b, a) for b, a in VARIANTS} if CLEAR_REFS.exists() else {}
    peak = SGEMMS * 2 * 1024**3 / 1e9 / seconds["sgemm"]
    gflops = {
        kind: shape.gflop / seconds[f"recurrence {kind}"] for kind in ("native", "reference", "nn_rnn", "autograd")
    }
    return {
        "peak_gflops": peak,
        "agrees_with_reference": ok,
        "recurrence_gflops": {kind: round(value, 1) for kind, value in gflops.items()},
        "peak_fraction": round(gflops["native"] / peak, 3) if ok else None,
        "step_seconds": {f"{b} {a}": round(seconds[f"step {b} {a}"], 4) for b, a in VARIANTS},
        "step_vs_nn_rnn": round(seconds["step nn_rnn relu"] / seconds["step ours relu"], 2) if ok else None,
        "step_vs_autograd": round(seconds["step autograd modrelu"] / seconds["step ours modrelu"], 2) if ok else None,
        "bjorck_vs_15_iterations": round(seconds["bjorck exact"] / seconds["bjorck fast"], 2),
        "memory_bytes": memory,
        "memory_vs_autograd": round(memory["ours modrelu"] / memory["autograd modrelu"], 3) if ok and memory else None,
        "epoch_minutes": round(seconds["step ours modrelu"] * shape.steps_per_epoch / 60, 2),
        "paper_gpu_epoch_minutes": shape.paper_minutes,
    }


def bench_map(
    map: str, shapes: list[str] | None = None, *, repeats: int = 5, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Training steps of a structured network against the dense one of the same width, in one run."""
    if map not in STRUCTURED:
        raise unknown("structured map", map, STRUCTURED)
    found = {}
    for name in _known(shapes):
        width = 4 ** math.ceil(math.log(SHAPES[name].n_h, 4))  # a size that all of them have
        shape = replace(SHAPES[name], n_h=width)
        calls: dict[str, Callable[[], object]] = {
            "dense": training_step(build("ours", shape, "relu"), shape),
            map: training_step(structured(map, shape), shape),
        }
        say(f"{name}: {repeats} interleaved repeats of {len(calls)} measurements")
        seconds = interleaved(calls, repeats)
        found[name] = {
            "n_h": width,
            "step_seconds": {who: round(value, 4) for who, value in seconds.items()},
            "step_vs_dense": round(seconds["dense"] / seconds[map], 2),
        }
    return {"map": map, "threads": torch.get_num_threads(), "repeats": repeats, "shapes": found}


def _known(shapes: list[str] | None) -> list[str]:
    for name in shapes or []:
        if name not in SHAPES:
            raise unknown("shape", name, SHAPES)
    return list(shapes or SHAPES)


def _sgemm() -> Callable[[], object]:
    generator = torch.Generator().manual_seed(0)
    A, B, C = (torch.rand(1024, 1024, generator=generator) for _ in range(3))

    def call() -> object:
        for _ in range(SGEMMS):
            torch.mm(A, B, out=C)
        return C

    return call


def _recurrence_call(kind: str, shape: Shape) -> Callable[[], object]:
    """Forward and backward of the recurrence alone, all weight gradients included, on weights that change each time."""
    activation = "relu" if kind == "nn_rnn" else "modrelu"
    weights = _weights(shape, activation)
    x, _ = batch(shape)
    run = {"native": _native, "reference": _reference, "nn_rnn": _nn_rnn, "autograd": _autograd}[kind]
    wanted = [w for w in weights.values() if w is not None]

    def call() -> object:
        with torch.no_grad():
            weights["W"] *= -1  # another matrix, as orthogonal as before
        out = run(shape, x, weights, activation)
        return torch.autograd.grad(out, wanted, torch.ones_like(out), allow_unused=True)

    return call


def _bjorck_call(n_h: int, *, exact: bool) -> Callable[[], object]:
    """Forward and backward of the map at a W_raw that 50 optimizer steps have moved, and one more step.

    The 15 iterations cost the same wherever W_raw is, so they are spared the 50.
    """
    map_ = Bjorck(exact=exact)
    generator = torch.Generator().manual_seed(0)
    W_raw = torch.nn.Parameter(start("haar", n_h, generator=generator))
    optimizer = torch.optim.Adam([W_raw], lr=1e-3)

    def call() -> object:
        W = map_(W_raw)
        W_raw.grad = torch.autograd.grad(W, W_raw, torch.randn(n_h, n_h, generator=generator))[0]
        return optimizer.step()

    if not exact:
        for _ in range(50):
            call()
    return call


def _weights(shape: Shape, activation: str) -> dict[str, Tensor]:
    model = build("ours", shape, activation)
    layer: Any = model.recurrence
    with torch.no_grad():
        found = {"W": layer.W_q(), "U": layer.U_q(), "V": model.V, "b_o": model.b_o}
        if layer.modrelu is not None:
            found["b"] = layer.modrelu.b
    return {name: tensor.detach().clone().requires_grad_() for name, tensor in found.items()}


def _native(shape: Shape, x: Tensor, w: dict[str, Tensor], activation: str) -> Tensor:
    h0 = torch.zeros(shape.B, shape.n_h)
    if shape.readout == "last":
        return recurrence(x, w["W"], w["U"], w.get("b"), h0, None, activation)[1]
    return recurrence_with_readout(x, w["W"], w["U"], w.get("b"), w["V"], w["b_o"], h0, None, activation)[0]


def _reference(shape: Shape, x: Tensor, w: dict[str, Tensor], activation: str) -> Tensor:
    states, last = reference.recurrence(
        x, w["W"], w["U"], w.get("b"), torch.zeros(shape.B, shape.n_h), None, activation
    )
    return last if shape.readout == "last" else F.linear(states, w["V"], w["b_o"])


def _nn_rnn(shape: Shape, x: Tensor, w: dict[str, Tensor], activation: str) -> Tensor:
    rnn = torch.nn.RNN(shape.n_i, shape.n_h, nonlinearity="relu", bias=False, batch_first=True)
    x = x if x.is_floating_point() else F.one_hot(x, shape.n_i).float()
    states, last = torch.func.functional_call(rnn, {"weight_hh_l0": w["W"], "weight_ih_l0": w["U"]}, (x,))
    return last[0] if shape.readout == "last" else F.linear(states, w["V"], w["b_o"])


def _autograd(shape: Shape, x: Tensor, w: dict[str, Tensor], activation: str) -> Tensor:
    drive = F.linear(x, w["U"]) if x.is_floating_point() else F.embedding(x, w["U"].T)
    h = torch.zeros(shape.B, shape.n_h)
    states = []
    for term in drive.unbind(1):
        z = F.linear(h, w["W"]) + term
        h = z.sign() * torch.relu(z.abs() + w["b"])
        states.append(h)
    return h if shape.readout == "last" else F.linear(torch.stack(states, 1), w["V"], w["b_o"])


def _agrees(shape: Shape, activation: str) -> bool:
    """Outputs and every gradient of the native recurrence equal the reference's on this shape's sizes.

    Over fewer steps and with a full-precision W: a thousand steps of a W_q that grows by a tenth at each are not the
    same in any two orders of summation. A bias below 0 stays off modReLU's jump at 0.
    """
    short = replace(shape, T=min(shape.T, 50))
    weights = _weights(short, activation)
    with torch.no_grad():
        weights["W"].copy_(start("haar", shape.n_h, generator=torch.Generator().manual_seed(0)))
        if "b" in weights:
            weights["b"].copy_(-weights["b"].abs())
    x, _ = batch(short)
    results = []
    for run in (_native, _reference):
        out = run(short, x, weights, activation)
        wanted = torch.autograd.grad(out, list(weights.values()), torch.ones_like(out), allow_unused=True)
        results.append([out.detach(), *wanted])
    limits = [TOLERANCE, *(GRADIENT_TOLERANCE for _ in weights)]
    return all(
        float((ours - theirs).norm()) <= limit * float(theirs.norm())
        for limit, ours, theirs in zip(limits, *results, strict=True)
        if theirs is not None
    )


def _peak_memory(shape: str, name: str, activation: str) -> int:
    """Bytes that two training steps need beyond the built network, in a process of their own."""
    words = [sys.executable, "-P", "-m", "qornn.bench.train", shape, name, activation]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise QornnError(f"measuring the memory of {name} on {shape} failed: {done.stderr.strip()[-500:]}")
    return int(json.loads(done.stdout))


def _memory_of_a_step(shape: str, name: str, activation: str) -> int:
    step = training_step(build(name, SHAPES[shape], activation), SHAPES[shape])
    CLEAR_REFS.write_text("5", encoding="ascii")  # resets the high-water mark, which a child inherits from its parent
    before = _high_water()
    for _ in range(2):
        step()
    return _high_water() - before


def _high_water() -> int:
    line = next(
        line for line in STATUS.read_text(encoding="utf-8", errors="replace").splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(_memory_of_a_step(*sys.argv[1:4])))
