"""Layers whose every scale is a power of two as ONNX nodes: 32 bits hold every number of them.

Factors and divisors are int32 too, and 2^31 is none. It is never needed. What is shifted to the left by 31 is proved to
be 0. What is rounded by a shift of 31 is less than 2^30, since half of 2^31 is added to it and 32 bits hold the sum: it
becomes 0, and so it does when it is divided by 2^30.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from qornn.export.onnx_scan.base import Nodes
from qornn.export.onnx_scan.graph import Graph
from qornn.export.onnx_scan.inputs import Read
from qornn.integer.layers import Mix, Rotations
from qornn.integer.layers.powers import half_of

LARGEST: Final = 30  # the largest power of two of an int32


def rotations(layer: Rotations, graph: Graph, read: Read, suffix: str) -> Nodes:
    """λ ⊙ z as two products: of the states with â, and of the states with both halves exchanged with −b̂ and b̂."""
    U = graph.weights(f"U{suffix}", layer.U.integers.T, layer.U.bits)  # (n_in, 2p)
    e, p = layer.shift.astype(np.int64), layer.pairs
    a, b = layer.turns.astype(np.int64)
    up = _factors(-e)  # of the turned state, so of â and b̂
    same = graph.constant(np.tile(a, 2) * up, "INT32", f"a{suffix}")
    other = graph.constant(np.concatenate([-b, b]) * up, "INT32", f"b{suffix}")
    exchange = graph.constant(np.roll(np.arange(2 * p), p), "INT64")
    down = layer.lambda_bits - 1 + np.maximum(-e, 0)

    def step(body: Graph, z: str, drive: str) -> tuple[str, str]:
        exchanged = body("Mul", body("Gather", z, exchange, axis=1), other)
        acc = body("Add", body("Add", body("Mul", z, same), exchanged), drive)
        z = body("Mul", body("Sign", acc), _rounded(body, body("Abs", acc), down, layer.top))
        return z, z

    return Nodes(drive=lambda body, x: _left(body, read(body, x, U), e), step=step)


def mix(layer: Mix, graph: Graph, read: Read, suffix: str) -> Nodes:
    """The sum of C with the bias, to which that of S is added, then a ReLU that is rounded and saturates."""
    C = graph.weights(f"C{suffix}", layer.C.integers.T, layer.C.bits)  # (n_in, d)
    t = layer.shift.astype(np.int64)
    apart = np.zeros_like(t) if layer.apart is None else layer.apart.astype(np.int64)
    skip = None
    if layer.S is not None:
        S = graph.weights(f"S{suffix}", layer.S.integers.T, layer.S.bits)  # (width of the skip, d)
        skip = lambda body, read, x: _left(body, read(body, x, S), -apart)  # noqa: E731

    def drive(body: Graph, x: str) -> str:
        sums = _left(body, read(body, x, C), apart)
        return body("Add", sums, body.constant(layer.bias, "INT32"))

    def step(body: Graph, state: str, drive: str) -> tuple[str, str]:
        acc = _left(body, body("Max", drive, body.constant(0, "INT32")), -t)
        return state, _rounded(body, acc, np.maximum(t, 0), layer.top)

    return Nodes(drive=drive, step=step, skip=skip)


def _factors(shift: np.ndarray) -> np.ndarray:
    """2^max(shift, 0)"""
    return np.int64(1) << shift.clip(0, LARGEST)


def _left(graph: Graph, sums: str, shift: np.ndarray) -> str:
    """sums·2^max(shift, 0)"""
    return graph("Mul", sums, graph.constant(_factors(shift), "INT32")) if (shift > 0).any() else sums


def _rounded(graph: Graph, size: str, down: np.ndarray, top: int) -> str:
    """min((size + 2^(down−1)) » down, top) of sizes, which are not negative."""
    if down.any():
        half = np.where(down <= LARGEST, half_of(down), 0)
        size = graph("Add", size, graph.constant(half, "INT32"))
        size = graph("Div", size, graph.constant(_factors(down), "INT32"))
    return graph("Min", size, graph.constant(top, "INT32"))
