"""The layer as ONNX nodes."""

from __future__ import annotations

import numpy as np
from leak_layer import Leak

from qornn.export.onnx_scan.graph import Graph
from qornn.export.onnx_scan.inputs import Read
from qornn.export.onnx_scan.layers import LAYERS, Nodes


def leak(layer: Leak, graph: Graph, read: Read, suffix: str) -> Nodes:
    """`read` multiplies what the layer reads by a matrix: here the identity."""
    same = graph.weights(f"same{suffix}", np.eye(layer.units, dtype=np.int8), 2)

    def step(body: Graph, s: str, x: str) -> tuple[str, str]:
        d = body("Sub", x, s)
        size = body("Add", body("Abs", d), body.constant(1 << (layer.shift - 1), "INT32"))
        size = body("Div", size, body.constant(1 << layer.shift, "INT32"))  # of no negative numbers: a shift
        s = body("Add", s, body("Mul", body("Sign", d), size))
        return s, s

    return Nodes(drive=lambda body, x: read(body, x, same), step=step)


LAYERS[Leak.kind] = leak
