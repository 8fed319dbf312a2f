"""Each kind of input as ONNX nodes: its tensor, the integers x_i that it stands for, and Σ U_i x_i of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from qornn.export.onnx_scan.graph import Graph
from qornn.integer.inputs import Codes, Input, Samples

Read = Callable[[Graph, str, str], str]  # graph, x, U (n_i, n_h) -> Σ U_i x_i (..., n_h) int32


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """The input of a graph."""

    kind: str
    shape: list[str | int]  # of one step, after the batch
    integers: Callable[[Graph, str], str]  # what layers and skips read, made once for all of them
    read: Read  # of those


def tensor(part: Input) -> Tensor:
    """What a graph that begins with this input is fed."""
    return TENSORS[part.kind](part)


def numbers(graph: Graph, x: str, U: str) -> str:
    """Of integers (..., n_i)."""
    return graph("MatMul", x, U)


def _codes(part: Codes) -> Tensor:
    def inside(graph: Graph, x: str) -> str:
        # Gather counts negative indices from the end; a negative code means nothing, and is led out of the table.
        size = graph.constant(part.size, "INT64")
        return graph("Where", graph("Less", x, graph.constant(0, "INT64")), size, x)

    return Tensor(kind="INT64", shape=[], integers=inside, read=_columns)


def _columns(graph: Graph, x: str, U: str) -> str:
    """Of codes (...): a column of U_i each."""
    return graph("Gather", U, x, axis=0)


def _samples(part: Samples) -> Tensor:
    return Tensor(kind="INT32", shape=[part.n_i], integers=lambda graph, raw: _integers(part, graph, raw), read=numbers)


def _integers(samples: Samples, graph: Graph, raw: str) -> str:
    """x_i = clamp( ((raw − offset)·multiplier + half) >> shift )  # (..., n_i) int32"""
    raw = graph("Clip", raw, graph.constant(samples.low, "INT32"), graph.constant(samples.high, "INT32"))
    if samples.plain:
        return raw
    shift, multiplier = samples.along(samples.shift).tolist(), samples.along(samples.multiplier)
    rows = zip(samples.along(samples.offset).tolist(), multiplier.tolist(), shift, strict=True)
    add, lift = [], []
    for o, m, s in rows:  # Python's integers: no overflow here; there, every sum stays below 2^63
        half = 1 << (s - 1) if s else 0
        # Lifted by a multiple of 2^shift so that the least raw sample is not negative: then Div is >>.
        up = max(0, -(((samples.low - o) * m + half) >> s))
        add.append(-o * m + half + (up << s))
        lift.append(up)
    wide = graph("Mul", graph.cast(raw, "INT64"), graph.constant(multiplier, "INT64"))
    wide = graph("Add", wide, graph.constant(add, "INT64"))
    wide = graph("Div", wide, graph.constant([1 << s for s in shift], "INT64"))
    wide = graph("Sub", wide, graph.constant(lift, "INT64"))
    top = 2 ** (samples.bits - 1)
    return graph.cast(graph.at_most(graph.at_least(wide, -top), top - 1), "INT32")


TENSORS: Final[dict[str, Callable[[Any], Tensor]]] = {Codes.kind: _codes, Samples.kind: _samples}
