"""Test vectors: inputs from a fixed seed, and what `simulate` makes of them.

Ordinary sequences from the zero state, then probes: single steps from states spread over their whole range, which
meet every weight, where a sequence may leave units silent. The device makes those states itself (NAME_probe).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from qornn.integer.parts import INT16, Codes, ReLU
from qornn.integer.program import IntegerProgram
from qornn.integer.simulate import input_sums, simulate, step

SEQUENCES: Final = 2
PROBES: Final = 32
FULL: Final = 4  # steps whose whole state is stored, so that a device can name the unit that differs
SEED: Final = 2024
SAMPLED_STEPS: Final = 32  # at most so many steps begin from floats, and
SAMPLED: Final = 512  # about so many numbers: four bytes each
LARGEST: Final = float(np.finfo(np.float32).max)
FNV_START: Final = 0x811C9DC5
FNV_PRIME: Final = 0x01000193


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """One row a step: the sequences one after another, then the probes."""

    steps: int  # of a sequence
    inputs: np.ndarray  # (steps, n_i) int16, or (steps, 1) codes
    states: np.ndarray  # (steps, n_h) int16
    outputs: np.ndarray  # (steps, n_o) float32 or int32
    samples: (
        np.ndarray
    )  # (few, n_i) float32 of which the second sequence's first inputs are made; none where none are read


def vectors(program: IntegerProgram, steps: int) -> Vectors:
    """Inputs of that many steps a sequence, extremes common among them, with the law's states and outputs."""
    rng = np.random.default_rng(SEED)
    inputs = _inputs(program, rng, (SEQUENCES * steps + PROBES))
    samples = _samples(program, rng, steps)
    if len(samples):
        raw = program.input.from_floats(samples)
        inputs[steps : steps + len(samples)] = raw.clip(program.input.low, program.input.high)  # type: ignore[union-attr]
    ordinary = inputs[: SEQUENCES * steps].reshape(SEQUENCES, steps, -1)
    raw = _accepted(program, ordinary)
    states = simulate(program, raw)[0].reshape(-1, program.n_h)
    drive = input_sums(program, _accepted(program, inputs[None, SEQUENCES * steps :]))[0]
    probed = step(program, probe_states(program), drive).astype(np.int16)
    states = np.concatenate([states, probed])
    outputs = program.readout.outputs(states)
    return Vectors(steps=steps, inputs=inputs, states=states, outputs=outputs, samples=samples)


def probe_states(program: IntegerProgram) -> np.ndarray:
    """States from a 32-bit xorshift, as NAME_probe in example_main.c makes them.  # (PROBES, n_h) int64"""
    s, states = SEED, np.zeros((PROBES, program.n_h), np.int64)
    signed = not isinstance(program.activation, ReLU)
    for p in range(PROBES):
        for j in range(program.n_h):
            s ^= s << 13 & 0xFFFFFFFF
            s ^= s >> 17
            s ^= s << 5 & 0xFFFFFFFF
            h = (s >> 16) & program.state.top
            states[p, j] = -h if signed and s & 1 else h
    return states


def hashes(rows: np.ndarray) -> np.ndarray:
    """FNV-1a of each row, its numbers byte by byte, lowest first.  # (n, m) -> (n,) uint32"""
    rows = np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder("<")))
    data = rows.view(np.uint8).reshape(len(rows), -1).astype(np.uint32)
    found = np.full(len(rows), FNV_START, np.uint32)
    for column in data.T:
        found = (found ^ column) * np.uint32(FNV_PRIME)  # modulo 2^32
    return found


def checksum(arrays: list[np.ndarray]) -> int:
    """FNV-1a of all weights, as NAME_checksum finds it."""
    found = FNV_START
    for array in arrays:
        for byte in array.tobytes():
            found = ((found ^ byte) * FNV_PRIME) & 0xFFFFFFFF
    return found


def _inputs(program: IntegerProgram, rng: np.random.Generator, rows: int) -> np.ndarray:
    if isinstance(program.input, Codes):
        return rng.integers(0, program.n_i, (rows, 1)).astype(np.int16)
    low, high = program.input.low, program.input.high
    free = rng.integers(low, high + 1, (rows, program.n_i))
    ends = rng.choice([low, high, *INT16], free.shape)  # past the declared range, a step clamps
    return np.where(rng.random(free.shape) < 0.2, ends, free).astype(np.int16)


def _samples(program: IntegerProgram, rng: np.random.Generator, steps: int) -> np.ndarray:
    """Floats on, near and halfway between raw samples, and far outside their range."""
    part = program.input
    if isinstance(part, Codes) or not part.takes_floats:
        return np.zeros((0, program.n_i), np.float32)
    rows = max(1, min(steps, SAMPLED_STEPS, SAMPLED // part.n_i))
    shape = rows, part.n_i
    raw = rng.integers(part.low - 2, part.high + 3, shape) + rng.choice([0, 0.5, -0.5, 0.4999], shape)
    gain = part.gain()
    if part.raw_scale is None:
        x = np.divide(raw - part.offset, gain, out=np.zeros_like(raw), where=gain > 0)
    else:
        x = raw * part.raw_scale
    far = rng.choice([-LARGEST, LARGEST, -0.0], x.shape)
    return np.where(rng.random(x.shape) < 0.1, far, x.clip(-LARGEST, LARGEST)).astype(np.float32)


def _accepted(program: IntegerProgram, inputs: np.ndarray) -> np.ndarray:
    """What the law makes of them: codes (B, T), samples clipped as the device clips them."""
    if isinstance(program.input, Codes):
        return inputs[..., 0]
    return inputs.clip(program.input.low, program.input.high)
