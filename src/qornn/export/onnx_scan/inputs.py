"""Each kind of input as ONNX nodes: its tensor, the integers x_i that it stands for, and Σ U_i x_i of them.

What samples remember goes through a Scan of its own, sample by sample, before everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from qornn.export.onnx_scan.graph import Graph
from qornn.integer.inputs import Codes, Input, Samples
from qornn.integer.inputs.memory import MANTISSA, MISSING

Read = Callable[[Graph, str, str], str]  # graph, x, U (n_i, n_h) -> Σ U_i x_i (..., n_h) int32


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """The input of a graph."""

    kind: str
    shape: list[str | int]  # of one step, after the batch
    # Of x and what is kept: what layers and skips read, made once for all of them, and what is kept afterwards.
    integers: Callable[[Graph, str, str], tuple[str, str]]
    read: Read  # of those
    kept: int = 0  # numbers that go from step to step


def tensor(part: Input) -> Tensor:
    """What a graph that begins with this input is fed."""
    return TENSORS[part.kind](part)


def numbers(graph: Graph, x: str, U: str) -> str:
    """Σ U_i x_i of integers (..., n_i)."""
    return graph("MatMul", x, U)


def _codes(part: Codes) -> Tensor:
    def inside(graph: Graph, x: str, kept: str) -> tuple[str, str]:
        # Gather counts negative indices from the end; a negative code means nothing, and is led out of the table.
        size = graph.constant(part.size, "INT64")
        return graph("Where", graph("Less", x, graph.constant(0, "INT64")), size, x), kept

    return Tensor(kind="INT64", shape=[], integers=inside, read=_columns)


def _columns(graph: Graph, x: str, U: str) -> str:
    """Σ U_i x_i of codes (...): one column of U_i for each code."""
    return graph("Gather", U, x, axis=0)


def _samples(part: Samples) -> Tensor:
    def integers(graph: Graph, raw: str, kept: str) -> tuple[str, str]:
        return _remembered(part, graph, raw, kept) if part.n_state else (_integers(part, graph, raw), kept)

    return Tensor(kind="INT32", shape=[part.n_raw], integers=integers, read=numbers, kept=part.n_state)


def _remembered(samples: Samples, graph: Graph, raw: str, kept: str) -> tuple[str, str]:
    """x_i of what is held, and the differences.  # (B, …, n_raw) -> (B, …, n_i) int32"""
    shape, missing = graph("Shape", raw), graph.constant(MISSING, "INT32")
    each = graph("Reshape", raw, graph.constant([0, -1, samples.channels], "INT64"))  # (B, samples, channels)
    body = graph.inner()
    names = [body.input(name, "INT32", ["B", samples.channels]) for name in ("last_sample", "sample")]
    for value, name in zip(_one_sample(samples, body, *names), ("next_last", "held", "difference"), strict=True):
        body.output(value, name, "INT32", ["B", samples.channels])
    axes = {"scan_input_axes": [1], "scan_output_axes": [1, 1]}
    after, *found = graph.many("Scan", [kept, each], 3, body=body.proto("sample"), num_scan_inputs=1, **axes)
    held, differences = (graph("Reshape", value, shape) for value in found)
    unknown = graph("Equal", held, missing)
    x = graph("Where", unknown, graph.constant(0, "INT32"), _integers(samples, graph, held))
    return (graph("Concat", x, _companded(graph, differences), axis=-1) if samples.differences else x), after


def _one_sample(samples: Samples, graph: Graph, kept: str, sample: str) -> tuple[str, str, str]:
    """What is kept after a sample of each channel, the sample held, and its difference.  # (B, channels)"""
    number = lambda value: graph.constant(value, "INT32")  # noqa: E731
    zero = number(0)
    none = graph("Equal", kept, zero)
    before = _clipped(samples, graph, _turned(graph, kept))
    now = _clipped(samples, graph, sample)
    if samples.hold:
        missing = number(MISSING)
        absent = graph("Equal", sample, missing)
        now = graph("Where", absent, graph("Where", none, missing, before), now)
    difference = graph("Where", none, zero, graph("Sub", now, before))
    return _turned(graph, now), now, difference


def _turned(graph: Graph, value: str) -> str:
    """value ^ −2^15 of 16 bits, which takes 2^15 from what is not negative and adds it to the others."""
    up, down = (graph(op, value, graph.constant(MISSING, "INT32")) for op in ("Sub", "Add"))
    return graph("Where", graph("Less", value, graph.constant(0, "INT32")), up, down)


def _companded(graph: Graph, d: str) -> str:
    """sign(d)·ilog|d| = sign(d)·(4e + 4|d|/2^e), the quotient cut off: 4 to 7, where bit e is the leading one."""
    size = graph("Abs", d)
    reached = graph(
        "GreaterOrEqual", graph("Unsqueeze", size, graph.constant([-1], "INT64")), _powers(graph, range(16))
    )
    length = graph("ReduceSum", graph.cast(reached, "INT32"), graph.constant([-1], "INT64"), keepdims=0)  # e + 1, or 0
    unit = graph("Gather", _powers(graph, [0, *range(16)]), length)
    base = graph("Gather", graph.constant([0, *(e << MANTISSA for e in range(16))], "INT32"), length)
    log = graph("Add", base, graph("Div", graph.times(size, 1 << MANTISSA, "INT32"), unit))
    return graph("Mul", graph("Sign", d), log)


def _powers(graph: Graph, exponents: Iterable[int]) -> str:
    return graph.constant([1 << e for e in exponents], "INT32")


def _clipped(samples: Samples, graph: Graph, raw: str) -> str:
    return graph("Clip", raw, graph.constant(samples.low, "INT32"), graph.constant(samples.high, "INT32"))


def _integers(samples: Samples, graph: Graph, raw: str) -> str:
    """x_i = clamp( ((raw − offset)·multiplier + half) >> shift )  # (..., n_i) int32"""
    raw = _clipped(samples, graph, raw)
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
