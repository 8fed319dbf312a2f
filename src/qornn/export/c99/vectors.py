"""Test vectors: inputs from a fixed seed, and what `simulate` makes of them.

Ordinary sequences from the zero state, then probes: single steps from states spread over their whole range, which
meet every weight, where a sequence may leave units silent. The device makes those states itself (test_main.c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from qornn.integer.program import IntegerProgram
from qornn.integer.simulate import States, start, step

SEQUENCES: Final = 2
PROBES: Final = 32
FULL: Final = 4  # steps whose whole state is stored, so that a device can name the unit that differs
SEED: Final = 2024
SAMPLED_STEPS: Final = 32  # at most so many steps begin from floats, and
SAMPLED: Final = 512  # about so many numbers: four bytes each
FNV_START: Final = 0x811C9DC5
FNV_PRIME: Final = 0x01000193


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """One row per step: the sequences one after another, then the probes."""

    steps: int  # of a sequence
    inputs: np.ndarray  # (steps, n_raw) int16, or (steps, 1) codes
    states: np.ndarray  # (steps, n_state) int16, of the input and all layers one after another
    outputs: np.ndarray  # (steps, n_o) float32 or int32
    held: np.ndarray  # (steps, n_out + 1) int32 of a mean: Σh and T; else (steps, 0)
    samples: np.ndarray  # (few, n_raw) float32: the second sequence's first inputs are made of them


def vectors(program: IntegerProgram, steps: int) -> Vectors:
    """Inputs of that many steps per sequence, extremes common among them, with the law's states and outputs."""
    rng = np.random.default_rng(SEED)
    inputs = program.input.draw(rng, SEQUENCES * steps + PROBES)
    samples = program.input.draw_floats(rng, max(1, min(steps, SAMPLED_STEPS, SAMPLED // program.input.n_raw)))
    if len(samples):
        inputs[steps : steps + len(samples)] = program.input.clip(program.input.from_floats(samples))
    raw = as_read(program, inputs)
    ordinary = raw[: SEQUENCES * steps].reshape(SEQUENCES, steps, *raw.shape[1:])
    readout, (kept, sums, counts) = program.readout, (list[np.ndarray](), list[np.ndarray](), list[np.ndarray]())
    states, held = start(program, SEQUENCES), readout.start(SEQUENCES)
    for t in range(steps):
        states, h = step(program, states, ordinary[:, t])
        held = readout.take(held, h)
        for found, now in ((kept, np.concatenate(states, 1)), (sums, held[0]), (counts, held[1][:, None])):
            found.append(now)
    # (steps, SEQUENCES, n) -> one sequence after another
    rows, seen, T = (np.stack(found, 1).reshape(SEQUENCES * steps, -1) for found in (kept, sums, counts))
    probed, h = step(program, probe_states(program), raw[SEQUENCES * steps :])
    one = readout.take(readout.start(PROBES), h)
    every = np.concatenate([rows, np.concatenate(probed, 1)]).astype(np.int16)
    seen, T = np.concatenate([seen, one[0]]), np.concatenate([T, one[1][:, None]])
    pooled = np.concatenate([seen, T], 1).astype(np.int32)[:, : None if readout.pooled else 0]
    outputs = readout.outputs(seen, T[:, 0])
    return Vectors(steps=steps, inputs=inputs, states=every, outputs=outputs, held=pooled, samples=samples)


def as_read(program: IntegerProgram, inputs: np.ndarray) -> np.ndarray:
    """What the law makes of rows of the vectors: codes, or samples clipped as the device clips them."""
    return program.input.clip(inputs).reshape(len(inputs), *program.input.shape)


def probe_states(program: IntegerProgram) -> States:
    """States from a 32-bit xorshift, as test_main.c makes them.  # a (PROBES, n_state) int64 for each keeper"""
    s = SEED
    found = start(program, PROBES)
    for p in range(PROBES):
        for part, states in zip(program.keepers, found, strict=True):
            for j in range(part.n_state):
                s ^= s << 13 & 0xFFFFFFFF
                s ^= s >> 17
                s ^= s << 5 & 0xFFFFFFFF
                h = (s >> 16) & part.top
                states[p, j] = -h if part.signed and s & 1 else h
    return found


def hashes(*parts: np.ndarray) -> np.ndarray:
    """FNV-1a of each row of all parts, number by number and byte by byte, lowest first.  # (n, m) … -> (n,) uint32"""
    found = np.full(len(parts[0]), FNV_START, np.uint32)
    for rows in parts:
        data = np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder("<"))).view(np.uint8)
        for column in data.reshape(len(rows), -1).astype(np.uint32).T if rows.size else ():
            found = (found ^ column) * np.uint32(FNV_PRIME)  # modulo 2^32
    return found


def checksum(arrays: list[np.ndarray]) -> int:
    """FNV-1a of all weights, as NAME_checksum finds it."""
    found = FNV_START
    for array in arrays:
        for byte in array.tobytes():
            found = ((found ^ byte) * FNV_PRIME) & 0xFFFFFFFF
    return found
