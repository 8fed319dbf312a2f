"""Each kind of readout as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from qornn.export.onnx_scan.graph import Graph
from qornn.export.onnx_scan.matrices import mixed
from qornn.integer.readout import FloatReadout, IntReadout, Readout


def outputs(readout: Readout, graph: Graph, h: str) -> str:
    """y of the states.  # (..., n_h) int32 -> (..., n_o)"""
    if readout.mix:
        h = mixed(readout.n_h, graph)(graph, h)
    if readout.relu:
        h = graph("Max", h, graph.constant(0, "INT32"))
    return READOUTS[readout.kind](readout, graph, h)


def _integers(readout: IntReadout, graph: Graph, h: str) -> str:
    sums = graph("MatMul", h, graph.weights("V", readout.V.T, readout.bits))
    return graph("Add", sums, graph.constant(readout.bias, "INT32"))


def _floats(readout: FloatReadout, graph: Graph, h: str) -> str:
    sums = graph("MatMul", graph.cast(h, "FLOAT"), graph.constant(readout.V.T, "FLOAT", "V"))
    return graph("Add", graph.times(sums, readout.scale, "FLOAT"), graph.constant(readout.b_o, "FLOAT"))


READOUTS: Final[dict[str, Callable[[Any, Graph, str], str]]] = {IntReadout.kind: _integers, FloatReadout.kind: _floats}
