"""Each kind of layer as ONNX nodes, and each kind of activation and requantization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from qornn.errors import ProgramError
from qornn.export.onnx_scan.base import Nodes
from qornn.export.onnx_scan.graph import Graph
from qornn.export.onnx_scan.inputs import Read
from qornn.export.onnx_scan.matrices import product
from qornn.export.onnx_scan.powers import mix, rotations
from qornn.integer.activations import Identity, ModReLU, ReLU
from qornn.integer.layers import Layer, Mix, Recurrent, Rotations
from qornn.integer.requant import Multiplier, Paper, PerRow, Thresholds
from qornn.integer.state import State

__all__ = ["LAYERS", "Nodes", "nodes"]

Magnitude = Callable[[str], str]


def nodes(layer: Layer, graph: Graph, read: Read, suffix: str) -> Nodes:
    """The nodes of one layer, whose constants have that suffix."""
    if layer.kind not in LAYERS:
        raise ProgramError(
            f"ONNX does not support layers of kind {layer.kind}; program.run and program.session run them"
        )
    return LAYERS[layer.kind](layer, graph, read, suffix)


def _recurrent(layer: Recurrent, graph: Graph, read: Read, suffix: str) -> Nodes:
    U = graph.weights(f"U{suffix}", layer.U.integers.T, layer.U.bits)  # (n_i, n_h)
    recurrent = product(f"W{suffix}", layer.W, graph)
    requant, scheme = layer.requant, SCHEMES[layer.requant.scheme]

    def step(body: Graph, h: str, drive: str) -> tuple[str, str]:
        z = scheme.sum(requant, body, recurrent(body, h), drive, h)
        rounded = MAGNITUDES[requant.kind]
        magnitude = lambda a: body.cast(rounded(requant, body, a, layer.state), "INT32")  # noqa: E731
        h = ACTIVATIONS[layer.activation.kind](layer.activation, body, z, scheme.kind, magnitude)
        return h, h

    return Nodes(drive=lambda body, x: scheme.drive(requant, body, read(body, x, U)), step=step)


LAYERS: Final[dict[str, Callable[[Any, Graph, Read, str], Nodes]]] = {
    Recurrent.kind: _recurrent,
    Rotations.kind: rotations,
    Mix.kind: mix,
}


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How the two sums of a row become one."""

    kind: str  # of that one
    drive: Callable[[Any, Graph, str], str]  # what is done to Σ U_i x_i before the Scan
    sum: Callable[[Any, Graph, str, str, str], str]  # of Σ W_i h_i, the drive and h


def _sum_paper(requant: Paper, graph: Graph, sums: str, drive: str, h: str) -> str:
    return graph("Add", graph.times(sums, 1 << requant.shift_W, "INT32"), drive)


def _sum_per_row(requant: PerRow, graph: Graph, sums: str, drive: str, h: str) -> str:
    terms = [(requant.M_W, sums), (requant.M_U, drive)] + ([] if requant.M_I is None else [(requant.M_I, h)])
    z, *others = [graph("Mul", graph.cast(term, "INT64"), graph.constant(M, "INT64")) for M, term in terms]
    for other in others:
        z = graph("Add", z, other)
    return z


SCHEMES: Final = {
    Paper.scheme: Scheme(  # the sum is proved to fit 32 bits
        kind="INT32",
        drive=lambda requant, graph, sums: graph.times(sums, 1 << requant.shift_U, "INT32"),
        sum=_sum_paper,
    ),
    PerRow.scheme: Scheme(kind="INT64", drive=lambda requant, graph, sums: sums, sum=_sum_per_row),
}


def _relu(activation: ReLU, graph: Graph, z: str, kind: str, magnitude: Magnitude) -> str:
    return magnitude(graph.at_least(z, 0, kind))


def _modrelu(activation: ModReLU, graph: Graph, z: str, kind: str, magnitude: Magnitude) -> str:
    a = graph("Add", graph("Abs", z), graph.constant(activation.bias, kind))
    return _with_sign(graph, z, kind, magnitude(graph.at_least(a, 0, kind)))


def _identity(activation: Identity, graph: Graph, z: str, kind: str, magnitude: Magnitude) -> str:
    z = z if activation.bias is None else graph("Add", z, graph.constant(activation.bias, kind))
    return _with_sign(graph, z, kind, magnitude(graph("Abs", z)))


def _with_sign(graph: Graph, z: str, kind: str, magnitude: str) -> str:
    zero = graph.constant(0, kind)
    above, below = (graph.cast(graph(op, z, zero), "INT32") for op in ("Greater", "Less"))
    return graph("Mul", graph("Sub", above, below), magnitude)


ACTIVATIONS: Final[dict[str, Callable[[Any, Graph, str, str, Magnitude], str]]] = {
    ReLU.kind: _relu,
    ModReLU.kind: _modrelu,
    Identity.kind: _identity,
}


def _by_multiplier(requant: Multiplier, graph: Graph, a: str, state: State) -> str:
    a = graph("Mul", graph.cast(a, "INT64"), graph.constant(requant.multiplier, "INT64"))
    return _by_shifts(graph, np.asarray(requant.shift, np.int64), a, state)


def _by_rows(requant: PerRow, graph: Graph, a: str, state: State) -> str:
    return _by_shifts(graph, requant.shift.astype(np.int64), a, state)


def _by_shifts(graph: Graph, shifts: np.ndarray, a: str, state: State) -> str:
    a = graph("Add", a, graph.constant(1 << (shifts - 1), "INT64"))
    a = graph("Div", a, graph.constant(1 << shifts, "INT64"))
    return graph.at_most(a, state.top)


def _by_thresholds(requant: Thresholds, graph: Graph, a: str, state: State) -> str:
    return _search(graph, requant.values, state.bits - 1, a)


def _search(graph: Graph, thresholds: np.ndarray, levels: int, a: str) -> str:
    """How many thresholds a reaches: of 2^levels − 1 thresholds, one bit of the count per level, the highest first."""
    values = graph.constant(thresholds, "INT32")
    found = ""
    for level in reversed(range(levels)):
        middle = graph.constant((1 << level) - 1, "INT32")  # the threshold of count found + 2^level
        value = graph("Gather", values, graph("Add", found, middle) if found else middle, axis=0)
        bit = graph.times(graph.cast(graph("GreaterOrEqual", a, value), "INT32"), 1 << level, "INT32")
        found = graph("Add", found, bit) if found else bit
    return found


MAGNITUDES: Final[dict[str, Callable[[Any, Graph, str, State], str]]] = {
    Multiplier.kind: _by_multiplier,
    PerRow.kind: _by_rows,
    Thresholds.kind: _by_thresholds,
}
