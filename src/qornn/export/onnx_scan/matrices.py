"""Σ W_i h_i as ONNX nodes: one function per kind of W that has a faster form than its entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from qornn.export.onnx_scan.graph import Graph
from qornn.integer.matrices import Cycle, Dense, Hadamard, RecurrentMatrix
from qornn.structure import transform

Product = Callable[[Graph, str], str]


def product(name: str, W: RecurrentMatrix, graph: Graph) -> Product:
    """What adds the nodes of W_i h to a graph; constants go to `graph`, outside the Scan, under that name."""
    return PRODUCTS.get(W.kind, _written_out)(name, W, graph)


def _dense(name: str, W: Dense, graph: Graph) -> Product:
    M = graph.weights(name, W.integers.T, W.bits)
    return lambda body, h: body("MatMul", h, M)


def _written_out(name: str, W: RecurrentMatrix, graph: Graph) -> Product:
    """W_i h for a kind of W that has no faster form here."""
    integers = W.written_out().T
    M = graph.weights(name, integers, _bits(integers))
    return lambda body, h: body("MatMul", h, M)


def mixed(n: int, graph: Graph) -> Product:
    """S h of the state that is read out."""
    tables, flat = _transform("mix", n, n, graph), graph.constant([-1, n], "INT64")
    return lambda body, h: body("Reshape", tables(body, h), flat)


def _transform(name: str, n: int, m: int, graph: Graph) -> Product:
    """S of blocks of m, S_ab = S_a ⊗ S_b: of each as an a × b table X, S_a X S_b.  # (B, n) -> (B, n/m, a, b)"""
    a = 1 << (m.bit_length() // 2)
    S_a, S_b = (
        graph.weights(f"{name}_{i}", transform(np.eye(size, dtype=np.int64)), 2) for i, size in ((0, a), (1, m // a))
    )
    tables = graph.constant([-1, n // m, a, m // a], "INT64")
    return lambda body, h: body("MatMul", S_a, body("MatMul", body("Reshape", h, tables), S_b))


def _hadamard(name: str, W: Hadamard, graph: Graph) -> Product:
    """S of each block, then P, which reads the table of blocks by columns."""
    n, m = W.n_h, W.block
    tables = _transform(name, n, m, graph)
    signs = graph.weights(f"{name}_signs", W.signs, 2)
    blocks, flat = (graph.constant(shape, "INT64") for shape in ([-1, n // m, m], [-1, n]))

    def add(body: Graph, h: str) -> str:
        transformed = tables(body, h)
        if m < n:
            transformed = body("Transpose", body("Reshape", transformed, blocks), perm=[0, 2, 1])
        return body("Mul", body("Reshape", transformed, flat), signs)

    return add


def _cycle(name: str, W: Cycle, graph: Graph) -> Product:
    sizes = graph.constant([W.units - 1, 1], "INT64")

    def add(body: Graph, h: str) -> str:
        others, last = body.many("Split", [h, sizes], 2, axis=1)
        return body("Concat", body("Neg", last), others, axis=1)

    return add


def _bits(integers: np.ndarray) -> int:
    """Bits, sign included, that hold every entry."""
    return max(int(integers.max()), -int(integers.min()) - 1).bit_length() + 1


PRODUCTS: Final[dict[str, Callable[[str, Any, Graph], Product]]] = {
    Dense.kind: _dense,
    Hadamard.kind: _hadamard,
    Cycle.kind: _cycle,
}
