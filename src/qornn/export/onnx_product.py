"""Σ W_i h_i as ONNX nodes: a stored matrix, or what makes a structured one cheap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from qornn.integer.matrix import Dense, Recurrent
from qornn.integer.structured import Cycle, Hadamard
from qornn.structure import transform

if TYPE_CHECKING:
    from qornn.export.onnx_scan import _Graph

WIDTHS: Final = ((4, "INT4"), (8, "INT8"))
Product = Callable[["_Graph", str], str]


def product(W: Recurrent, graph: _Graph) -> Product:
    """What adds the nodes of W_i h to a graph; constants go to `graph`, outside the Scan."""
    if isinstance(W, Hadamard):
        return _hadamard(W, graph)
    if isinstance(W, Cycle):
        return _cycle(W, graph)
    integers = W.written_out().T
    M = weights(graph, "W", integers, W.bits if isinstance(W, Dense) else _bits(integers))
    return lambda body, h: body("MatMul", h, M)


def weights(graph: _Graph, name: str, integers: np.ndarray, bits: int) -> str:
    """A stored matrix, widened once outside the Scan (onnxruntime does it when the session opens)."""
    kind = next((kind for most, kind in WIDTHS if bits <= most), None)
    return (
        graph.cast(graph.constant(integers, kind, name), "INT32") if kind else graph.constant(integers, "INT32", name)
    )


def mixed(n: int, graph: _Graph) -> Product:
    """S h of the state that is read out."""
    tables, flat = _transform("mix", n, n, graph), graph.constant([-1, n], "INT64")
    return lambda body, h: body("Reshape", tables(body, h), flat)


def _transform(name: str, n: int, m: int, graph: _Graph) -> Product:
    """S of blocks of m, S_ab = S_a ⊗ S_b: of each as an a × b table X, S_a X S_b.  # (B, n) -> (B, n/m, a, b)"""
    a = 1 << (m.bit_length() // 2)
    S_a, S_b = (
        weights(graph, f"{name}_{i}", transform(np.eye(size, dtype=np.int64)), 2) for i, size in ((0, a), (1, m // a))
    )
    tables = graph.constant([-1, n // m, a, m // a], "INT64")
    return lambda body, h: body("MatMul", S_a, body("MatMul", body("Reshape", h, tables), S_b))


def _hadamard(W: Hadamard, graph: _Graph) -> Product:
    """S of each block, then P, which reads the table of blocks by columns."""
    n, m = W.n_h, W.block
    tables = _transform("W", n, m, graph)
    signs = weights(graph, "W_signs", W.signs, 2)
    blocks, flat = (graph.constant(shape, "INT64") for shape in ([-1, n // m, m], [-1, n]))

    def add(body: _Graph, h: str) -> str:
        transformed = tables(body, h)
        if m < n:
            transformed = body("Transpose", body("Reshape", transformed, blocks), perm=[0, 2, 1])
        return body("Mul", body("Reshape", transformed, flat), signs)

    return add


def _cycle(W: Cycle, graph: _Graph) -> Product:
    sizes = graph.constant([W.units - 1, 1], "INT64")

    def add(body: _Graph, h: str) -> str:
        others, last = body.many("Split", [h, sizes], 2, axis=1)
        return body("Concat", body("Neg", last), others, axis=1)

    return add


def _bits(integers: np.ndarray) -> int:
    """Bits, sign included, that hold every entry."""
    return max(int(integers.max()), -int(integers.min()) - 1).bit_length() + 1
