"""The reference: what a program computes, in numpy, step by step. Every other executor is compared with it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from qornn.integer.program import IntegerProgram

States = list[np.ndarray]  # of the input, then of each layer, (B, n_state) int64


class SaturationWarning(UserWarning):
    """Inputs were clipped to the declared range, as asked."""


def simulate(
    program: IntegerProgram, x: Any, lengths: Any = None, *, saturate: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Run a program in numpy, the reference: states (B, T, n_h), and outputs (B, n_o) or (B, T, n_o).

    The states are those of the last layer that has any, zero past a sequence's end.

    - `program`: the network in integers.
    - `x`: raw integers (B, T, n_raw), or codes (B, T).
    - `lengths` (None): the true lengths of padded sequences (B,). None: all have length T.
    - `saturate` (False): clip inputs outside the declared range, with a warning. False refuses them.
    """
    raw, lengths, clipped = program.accept(x, lengths, saturate=saturate)
    warn_clipped(clipped, raw.size)
    B, T = raw.shape[:2]
    readout, shown, states = program.readout, program.shown, start(program, B)
    (held, counts), read = readout.start(B), np.zeros((B, T if readout.every else 0, program.n_out), np.int16)
    every = np.zeros((B, T, program.n_shown), np.int16)
    for t in range(T):
        states, h = step(program, states, raw[:, t])
        running = t < lengths
        every[:, t] = np.where(running[:, None], states[1 + shown], 0)
        if readout.every:
            read[:, t] = np.where(running[:, None], h, 0)
        taken, counted = readout.take((held, counts), h)
        held, counts = np.where(running[:, None], taken, held), np.where(running, counted, counts)
    return every, readout.outputs(read) if readout.every else readout.outputs(held, counts)


def start(program: IntegerProgram, B: int) -> States:
    """The zero states of B sequences."""
    return [np.zeros((B, part.n_state), np.int64) for part in program.keepers]


def step(program: IntegerProgram, states: States, raw: np.ndarray) -> tuple[States, np.ndarray]:
    """The next states of the input and all layers, and the output of the last.  # raw (B, n_raw), or codes (B,)"""
    kept, x = program.input.step(states[0], raw)
    skip, following = None, [kept]
    for layer, state in zip(program.layers, states[1:], strict=True):
        state, y = layer.step(state, x, skip)
        following.append(state)
        x, skip = y, x
    return following, x


def warn_clipped(clipped: int, total: int) -> None:
    """Say how many inputs were clipped."""
    if clipped:
        warnings.warn(
            f"{clipped} of {total} inputs were clipped to the declared range", SaturationWarning, stacklevel=3
        )
