"""This checkout against another one, interleaved in one run: `python tools/against.py ../old --rounds 15`.

Each checkout runs in a process of its own, with its own .venv, and does the same jobs in turn: integer inference by the
native engine, and whole training steps. The ratio of the medians is printed for each job: above 1, this one is slower.
The other checkout needs `make .venv/ready` first. Stop everything else while this runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
JOBS = ("step", "sequence", "batch", "hadamard", "cycle", "train copy", "train mnist")

# What both run; it uses public names alone, which both have.
WORKER = """
import json, sys, time
import numpy as np, torch, qornn
torch.set_num_threads(1)
def program(n_h, **options):
    generator = torch.Generator().manual_seed(0)
    model = qornn.OrthogonalRNN(1, n_h, 10, bits=4, generator=generator, **options)
    x = torch.rand(8, 100, 1, generator=generator)
    return qornn.lower(model, x, quiet=True)
def raw(p, B, T):
    x = torch.rand(B, T, 1, generator=torch.Generator().manual_seed(1)).numpy()
    return p.input.from_floats(x).clip(p.input.low, p.input.high)
def train(n_i, n_h, B, T):
    generator = torch.Generator().manual_seed(0)
    model = qornn.OrthogonalRNN(n_i, n_h, 10, bits=4, generator=generator)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.rand(B, T, n_i, generator=generator), torch.randint(10, (B,), generator=generator)
    def once():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x)[0], y).backward()
        optimizer.step()
    return once
dense = program(170)
session, sample, one, many = dense.session(), raw(dense, 1, 1)[0, 0], raw(dense, 1, 784), raw(dense, 64, 784)
def stepped():
    for _ in range(2000):
        session.step(sample)
structured = {name: program(512, map=name) for name in ("hadamard", "cycle")}
long = {name: raw(p, 1, 784) for name, p in structured.items()}
jobs = {
    "step": stepped,
    "sequence": lambda: [dense.run(one, threads=1) for _ in range(20)],
    "batch": lambda: dense.run(many, threads=1),
    "hadamard": lambda: [structured["hadamard"].run(long["hadamard"], threads=1) for _ in range(10)],
    "cycle": lambda: [structured["cycle"].run(long["cycle"], threads=1) for _ in range(10)],
    "train copy": train(10, 256, 32, 200),
    "train mnist": train(1, 170, 32, 784),
}
for job in jobs.values():
    job()
print("ready", flush=True)
for line in sys.stdin:
    began = time.perf_counter()
    jobs[line.strip()]()
    print(time.perf_counter() - began, flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="a checkout with its own .venv")
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    workers = {"this": _worker(ROOT), "other": _worker(asked.other)}
    for worker in workers.values():
        _answer(worker)
    seconds: dict[str, dict[str, list[float]]] = {job: {"this": [], "other": []} for job in JOBS}
    for number in range(asked.rounds):
        for job in JOBS:
            for who in sorted(workers, reverse=bool(number % 2)):  # neither always goes first
                seconds[job][who].append(float(_ask(workers[who], job)))
    found = {}
    for job, times in seconds.items():
        medians = {who: statistics.median(values) for who, values in times.items()}
        found[job] = {"ratio": round(medians["this"] / medians["other"], 3), **medians}
    print(json.dumps(found, indent=1))


def _worker(checkout: Path) -> subprocess.Popen[str]:
    python = checkout.resolve() / ".venv" / "bin" / "python"
    return subprocess.Popen(
        [python, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", cwd=checkout
    )


def _ask(worker: subprocess.Popen[str], job: str) -> str:
    assert worker.stdin is not None
    worker.stdin.write(f"{job}\n")
    worker.stdin.flush()
    return _answer(worker)


def _answer(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        sys.exit("a checkout ended early; its message is above")
    return line


if __name__ == "__main__":
    main()
