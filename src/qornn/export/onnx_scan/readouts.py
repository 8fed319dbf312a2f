"""Each kind of readout as ONNX nodes, and what a mean keeps from step to step: Σh and T, for ever within 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from qornn.export.onnx_scan.graph import Graph
from qornn.export.onnx_scan.matrices import mixed
from qornn.integer.readout import FloatReadout, IntReadout, Readout

SUM, COUNT = "sum", "count"  # names in a graph


def held(readout: Readout) -> dict[str, int]:
    """What is kept for the readout from step to step, and its width: of a mean Σh and T, of others nothing."""
    return {SUM: readout.n_h, COUNT: 1} if readout.pooled else {}


def take(readout: Readout, graph: Graph, kept: dict[str, str], h: str) -> dict[str, str]:
    """The same after one step more, whose last layer gives h; halved before, where T is steps_max.

    (Σ + 1) » 1 is sign(Σ)·((|Σ| + 1) » 1) of a positive sum and sign(Σ)·(|Σ| » 1) of a negative one.
    """
    if readout.steps_max is None:
        return {}
    number = lambda value: graph.constant(value, "INT32")  # noqa: E731
    total, count = kept[SUM], kept[COUNT]
    full = graph("Equal", count, number(readout.steps_max))  # (B, 1)
    size = graph("Add", graph("Abs", total), graph.cast(graph("Greater", total, number(0)), "INT32"))
    half = graph("Mul", graph("Sign", total), graph("Div", size, number(2)))
    total = graph("Where", full, half, total)
    count = graph("Where", full, number(readout.steps_max // 2), count)
    return {SUM: graph("Add", total, _shown(readout, graph, h)), COUNT: graph("Add", count, number(1))}


def outputs(readout: Readout, graph: Graph, h: str) -> str:
    """y of the states.  # (..., n_h) int32 -> (..., n_o)"""
    if readout.mix:
        h = mixed(readout.n_h, graph)(graph, h)
    return READOUTS[readout.kind](readout, graph, _shown(readout, graph, h))


def pooled_outputs(readout: Readout, graph: Graph, kept: dict[str, str]) -> str:
    """y = V Σh + T·bias of a mean, to be divided by T for values.  # -> (B, n_o)"""
    return POOLED[readout.kind](readout, graph, kept)


def _shown(readout: Readout, graph: Graph, h: str) -> str:
    return graph("Max", h, graph.constant(0, "INT32")) if readout.relu else h


def _sums(readout: IntReadout, graph: Graph, h: str) -> str:
    return graph("MatMul", h, graph.weights("V", readout.V.T, readout.bits))


def _integers(readout: IntReadout, graph: Graph, h: str) -> str:
    return graph("Add", _sums(readout, graph, h), graph.constant(readout.bias, "INT32"))


def _pooled_integers(readout: IntReadout, graph: Graph, kept: dict[str, str]) -> str:
    biases = graph("Mul", kept[COUNT], graph.constant(readout.bias, "INT32"))  # (B, n_o)
    return graph("Add", _sums(readout, graph, kept[SUM]), biases)


def _floats(readout: FloatReadout, graph: Graph, h: str) -> str:
    sums = graph("MatMul", graph.cast(h, "FLOAT"), graph.constant(readout.V.T, "FLOAT", "V"))
    return graph("Add", graph.times(sums, readout.scale, "FLOAT"), graph.constant(readout.b_o, "FLOAT"))


READOUTS: Final[dict[str, Callable[[Any, Graph, str], str]]] = {IntReadout.kind: _integers, FloatReadout.kind: _floats}
POOLED: Final[dict[str, Callable[[Any, Graph, dict[str, str]], str]]] = {IntReadout.kind: _pooled_integers}
