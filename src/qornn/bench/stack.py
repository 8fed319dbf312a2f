"""Training steps of a stack of rotations against the same network in plain torch and against torch.nn.LSTM."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qornn.bench.timing import interleaved
from qornn.errors import unknown
from qornn.model import Stack
from qornn.recurrence import in_use, native_rotations

CALLS = 20  # scans or copies in one measurement: long enough to be timed


@dataclass(frozen=True, slots=True)
class StackShape:
    """A task as a training step sees it."""

    T: int
    n_i: int
    width: int  # also the number of pairs
    layers: int
    n_o: int
    pool: str = "mean"
    codes: bool = False
    B: int = 64


STACK_SHAPES = {
    "forda": StackShape(125, 4, 16, 2, 2),
    "smnist": StackShape(784, 1, 32, 2, 10),
    "ptb": StackShape(150, 50, 128, 3, 50, pool="all", codes=True),
}


def bench_stack(
    shapes: list[str] | None = None, *, repeats: int = 5, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Measure every shape: the scan against a copy of the same bytes, and training steps against the peers'."""
    for name in shapes or []:
        if name not in STACK_SHAPES:
            raise unknown("shape", name, STACK_SHAPES)
    found = {name: _bench_shape(name, STACK_SHAPES[name], repeats, say) for name in shapes or STACK_SHAPES}
    return {"recurrence": in_use(), "threads": torch.get_num_threads(), "repeats": repeats, "shapes": found}


def _bench_shape(name: str, shape: StackShape, repeats: int, say: Callable[[str], None]) -> dict[str, Any]:
    say(f"{name}: {repeats} interleaved repeats of the scan, a copy and {1 + len(PEERS)} training steps")
    calls = {"ours": training_step(ours(shape), shape)}
    calls |= {peer: training_step(build(float_stack(shape)), shape) for peer, build in PEERS.items()}
    seconds = interleaved(calls, repeats)
    return {
        "copy_fraction": copy_fraction(shape, repeats),
        "step_seconds": {who: round(value, 5) for who, value in seconds.items()},
        **{f"step_vs_{peer}": round(seconds[peer] / seconds["ours"], 2) for peer in PEERS},
    }


def copy_fraction(shape: StackShape, repeats: int = 5) -> float | None:
    """Bytes that the rounding scan moves per second, as a share of a plain copy's; None without the kernel.

    Both read and write a (B, T, 2p) tensor, on memory that is there already.
    """
    scan = native_rotations.scan_call(_normal(shape.B, shape.T, 2 * shape.width), top=127)
    if scan is None:
        return None
    source = _normal(shape.B, shape.T, 2 * shape.width)
    target = torch.empty_like(source)
    calls = {"scan": _often(scan), "copy": _often(lambda: target.copy_(source))}
    seconds = interleaved(calls, 3 * repeats)
    return round(seconds["copy"] / seconds["scan"], 3)


def _normal(*size: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(0))


def _often(call: Callable[[], object]) -> Callable[[], object]:
    def calls() -> None:
        for _ in range(CALLS):
            call()

    return calls


def ours(shape: StackShape) -> nn.Module:
    """4-bit weights and 8-bit states, rounded while training."""
    return _stack(shape, bits=4, state_bits=8)


def float_stack(shape: StackShape) -> Stack:
    """The same network at full precision, whose weights the peers take."""
    return _stack(shape, bits=None, state_bits=None)


def _stack(shape: StackShape, bits: int | None, state_bits: int | None) -> Stack:
    return Stack.rotations(
        shape.n_i,
        shape.n_o,
        width=shape.width,
        pairs=shape.width,
        layers=shape.layers,
        pool=shape.pool,  # type: ignore[arg-type]
        bits=bits,
        state_bits=state_bits,
        generator=torch.Generator().manual_seed(0),
    )


class OnTorch(nn.Module):
    """The float network's weights, with the states of rotations by `scan(drive, λ)` on complex numbers."""

    def __init__(self, stack: Stack, scan: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.stack, self.scan = stack, scan

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        stem, *rest = list[Any](self.stack.layers)  # a mix, then pairs of rotations and a mix
        x = F.relu(F.linear(x, stem.C_raw, stem.c) if x.ndim == 3 else F.embedding(x, stem.C_raw.T) + stem.c)
        for turning, mixing in zip(rest[::2], rest[1::2], strict=True):
            drive = torch.complex(*F.linear(x, turning.U_raw).chunk(2, -1))  # (B, T, p)
            states = self.scan(drive, torch.complex(*turning.eigenvalues()))
            x = F.relu(F.linear(torch.cat([states.real, states.imag], -1), mixing.C_raw, mixing.c))
        return F.linear(x.mean(1) if self.stack.readout == "mean" else x, self.stack.V, self.stack.b_o), None


def loop(drive: Tensor, eigenvalues: Tensor) -> Tensor:
    """z_t = λ z_{t−1} + drive_t, one step after another: one operation per step.  # (B, T, p)"""
    z, states = torch.zeros_like(drive[:, 0]), []
    for term in drive.unbind(1):  # drive[:, t] would build a (B, T, p) gradient at every step
        z = torch.addcmul(term, eigenvalues, z)
        states.append(z)
    return torch.stack(states, 1)


def chunked(drive: Tensor, eigenvalues: Tensor) -> Tensor:
    """The same in about 2√T steps: all chunks of √T steps at once, and then what each hands on to the next."""
    B, T, p = drive.shape
    steps = math.ceil(math.sqrt(T))
    chunks = math.ceil(T / steps)
    padded = F.pad(drive, (0, 0, 0, chunks * steps - T)).view(B, chunks, steps, p)
    local = loop(padded.flatten(0, 1), eigenvalues).view(B, chunks, steps, p)
    powers = eigenvalues ** torch.arange(1, steps + 1)[:, None]  # (steps, p)
    ends = loop(local[:, :, -1], powers[-1])  # (B, chunks, p): the state after each chunk
    before = F.pad(ends[:, :-1], (0, 0, 1, 0))
    return torch.addcmul(local, powers, before[:, :, None]).view(B, chunks * steps, p)[:, :T]


class OnLSTM(nn.Module):
    """A linear map and ReLU, as many layers of torch.nn.LSTM of the same width, and the readout."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        stem, *rest = list[Any](stack.layers)
        self.codes = nn.Embedding(stem.n_i, stem.n_h)
        self.stem = nn.Linear(stem.n_i, stem.n_h)
        self.lstm = nn.LSTM(stem.n_h, stem.n_h, num_layers=len(rest) // 2, batch_first=True)
        self.readout = nn.Linear(stem.n_h, stack.n_o)
        self.pool = stack.readout

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        states, _ = self.lstm(F.relu(self.stem(x) if x.is_floating_point() else self.codes(x)))
        return self.readout(states.mean(1) if self.pool == "mean" else states), None


PEERS: dict[str, Callable[[Stack], nn.Module]] = {
    "loop": lambda stack: OnTorch(stack, loop),
    "scan": lambda stack: OnTorch(stack, chunked),
    "lstm": OnLSTM,
}


def batch(shape: StackShape, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random inputs and targets of that shape."""
    g = torch.Generator().manual_seed(seed)
    size = (shape.B, shape.T)
    x = torch.randint(0, shape.n_i, size, generator=g) if shape.codes else torch.rand(*size, shape.n_i, generator=g)
    return x, torch.randint(0, shape.n_o, size if shape.pool == "all" else size[:1], generator=g)


def training_step(model: nn.Module, shape: StackShape) -> Callable[[], float]:
    """A whole step: forward, loss, backward, AdamW."""
    x, target = batch(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)  # the peers' too

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        y, _ = model(x)
        loss = F.cross_entropy(y.flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
