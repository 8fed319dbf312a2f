"""The law: what a program means, in numpy, one step after another. Every other executor is compared with it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from qornn.integer.parts import Codes, Identity, ModReLU, ReLU
from qornn.integer.program import IntegerProgram
from qornn.integer.requant import PerRow


class SaturationWarning(UserWarning):
    """Inputs were clipped to the declared range, as asked."""


def simulate(
    program: IntegerProgram, x: Any, lengths: Any = None, *, saturate: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """All states (B, T, n_h), zero past a sequence's end, and the outputs (B, n_o) or (B, T, n_o).

    x are raw integers (B, T, n_i), or codes (B, T).
    """
    raw, lengths, clipped = program.accept(x, lengths, saturate=saturate)
    warn_clipped(clipped, raw.size)
    B, T = raw.shape[:2]
    h = np.zeros((B, program.n_h), np.int64)
    last = h
    states = np.zeros((B, T, program.n_h), np.int16)
    for t in range(T):
        h = step(program, h, input_sums(program, raw[:, t]))
        running = (t < lengths)[:, None]
        states[:, t] = np.where(running, h, 0)
        last = np.where(running, h, last)
    return states, program.readout.outputs(last if program.steps == "last" else states)


def input_sums(program: IntegerProgram, raw: np.ndarray) -> np.ndarray:
    """Σ U_i x_i.  # (...[, n_i]) -> (..., n_h) int64"""
    U = program.U.integers.astype(np.int64)
    if isinstance(program.input, Codes):
        return U.T[raw]
    return program.input.integers(raw) @ U.T


def step(program: IntegerProgram, h: np.ndarray, drive: np.ndarray) -> np.ndarray:
    """The next state.  # (B, n_h), (B, n_h) int64 -> (B, n_h) int64"""
    z = preactivation(program, h, drive)
    top = program.state.top
    if isinstance(program.activation, ReLU):
        return program.requant.magnitude(np.maximum(z, 0), top)
    bias = program.activation.bias if isinstance(program.activation, ModReLU) else 0
    return np.sign(z) * program.requant.magnitude(np.maximum(np.abs(z) + bias, 0), top)


def preactivation(program: IntegerProgram, h: np.ndarray, drive: np.ndarray) -> np.ndarray:
    """acc of scheme paper, v of scheme per-row, with the bias of a linear recurrence.  # int64"""
    sums, requant = program.W.product(h), program.requant
    if isinstance(requant, PerRow):
        z = requant.M_W.astype(np.int64) * sums + requant.M_U.astype(np.int64) * drive
        if requant.M_I is not None:
            z += requant.M_I.astype(np.int64) * h
    else:
        z = (sums << requant.shift_W) + (drive << requant.shift_U)
    linear = isinstance(program.activation, Identity) and program.bias is not None
    return z + program.bias if linear else z


def warn_clipped(clipped: int, total: int) -> None:
    """Say how many inputs were clipped."""
    if clipped:
        warnings.warn(
            f"{clipped} of {total} inputs were clipped to the declared range", SaturationWarning, stacklevel=3
        )
