"""The graph of a program: of whole sequences, or of one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qornn.export.onnx_scan.base import Nodes
from qornn.export.onnx_scan.graph import Graph, package
from qornn.export.onnx_scan.inputs import Read, numbers, tensor
from qornn.export.onnx_scan.layers import nodes
from qornn.export.onnx_scan.readouts import COUNT, held, outputs, pooled_outputs, take
from qornn.integer.program import IntegerProgram

if TYPE_CHECKING:
    from onnx import TensorProto

INPUT = "kept"  # what the input keeps
Kept = dict[str, str]  # by name, what goes from step to step: states of layers, and what the readout holds


def sequences(program: IntegerProgram, graph: Graph) -> None:
    """What needs no state for all steps at once, the Scan over the rest, the readout."""
    fed, readout = tensor(program.input), program.readout
    x = graph.input("x", fed.kind, ["B", "T", *fed.shape])
    layers = _layers(program, graph)
    first = next((i for i, layer in enumerate(program.layers) if layer.n_state), len(layers) - 1)
    integers, _ = fed.integers(graph, x, _start(graph, x, fed.kept) if fed.kept else "")
    drive, skip = _drive(layers, graph, integers, fed.read)
    for i in range(first):
        _, h = layers[i].step(graph, "", drive)
        drive, skip = _drive(layers[i + 1 :], graph, h, numbers, skip)
    starts = {name: _start(graph, x, width) for name, width in _widths(program).items()}
    kept, states, every = _scan(program, graph, layers[first:], starts, [drive, skip] if skip else [drive])
    if readout.pooled:
        y = pooled_outputs(readout, graph, kept)
    else:
        y = outputs(readout, graph, every if readout.every else _last(graph, every))
    graph.output(y, "y", _output_kind(program), ["B", "T", program.n_o] if readout.every else ["B", program.n_o])
    if states:
        graph.output(states, "states", "INT32", ["B", "T", program.n_shown])
    if readout.pooled:
        graph.output(kept[COUNT], COUNT, "INT32", ["B", 1])


def one_step(program: IntegerProgram, graph: Graph) -> None:
    """(x_t, h) -> (h_next, y), with a state for each layer that has one, and for what the readout holds."""
    fed, readout, widths = tensor(program.input), program.readout, _widths(program)
    x = graph.input("x_t", fed.kind, ["B", *fed.shape])
    widths |= {INPUT: fed.kept} if fed.kept else {}
    kept = {name: graph.input(name, "INT32", ["B", width]) for name, width in widths.items()}
    layers = _layers(program, graph)
    integers, after = fed.integers(graph, x, kept.get(INPUT, ""))
    kept, h = _walk(program, layers, graph, kept, *_drive(layers, graph, integers, fed.read))
    kept[INPUT] = after
    for name, width in widths.items():
        graph.output(kept[name], f"{name}_next", "INT32", ["B", width])
    y = pooled_outputs(readout, graph, kept) if readout.pooled else outputs(readout, graph, h)
    graph.output(y, "y", _output_kind(program), ["B", program.n_o])


def _layers(program: IntegerProgram, graph: Graph) -> list[Nodes]:
    """Each layer reads the input, or the numbers of the layer before."""
    readers = [tensor(program.input).read, *[numbers] * (len(program.layers) - 1)]
    return [
        nodes(layer, graph, read, _suffix(program, i))
        for i, (layer, read) in enumerate(zip(program.layers, readers, strict=True))
    ]


def _scan(
    program: IntegerProgram, graph: Graph, layers: list[Nodes], starts: Kept, scanned: list[str]
) -> tuple[Kept, str, str]:
    """What is kept at the end, and of every step the shown states and the outputs; empty where they are not needed.

    `layers` are the last ones of the program; `scanned` are the drive of the first and the skip of the second.
    """
    body, widths = graph.inner(), _widths(program)
    kept = {name: body.input(name, "INT32", ["B", width]) for name, width in widths.items()}
    # As wide as the layer likes: ONNX infers it.
    each = [body.input(f"{name}_t", "INT32", ["B", name]) for name, _ in zip(("drive", "skip"), scanned, strict=False)]
    kept, h = _walk(program, layers, body, kept, *each)
    for name, width in widths.items():
        body.output(kept[name], f"{name}_next", "INT32", ["B", width])
    shown = kept.get(_name(program, program.shown), "")
    asked = {shown: program.n_shown} if shown else {}  # most layers give their state itself: then it is scanned once
    asked |= {} if program.readout.pooled else {h: program.n_out}
    for i, (value, width) in enumerate(asked.items()):
        body.output(value, f"every{i}_t", "INT32", ["B", width])
    found = graph.many(
        "Scan",
        [*starts.values(), *scanned],
        len(widths) + len(asked),
        body=body.proto("step"),
        num_scan_inputs=len(scanned),
        scan_input_axes=[1] * len(scanned),
        **({"scan_output_axes": [1] * len(asked)} if asked else {}),  # onnx takes no empty list
    )
    every = dict(zip(asked, found[len(widths) :], strict=True))
    return dict(zip(widths, found, strict=False)), every.get(shown, ""), every.get(h, "")


def _drive(layers: list[Nodes], graph: Graph, x: str, read: Read, skip: str = "") -> tuple[str, str]:
    """The drive of the first layer, which reads x, and what the skip of the second makes of x.

    `skip` is what the first adds to its drive, of what the layer before it read.
    """
    drive = layers[0].drive(graph, x)
    drive = graph("Add", drive, skip) if skip else drive
    following = layers[1].skip if len(layers) > 1 else None
    return drive, following(graph, read, x) if following else ""


def _walk(
    program: IntegerProgram, layers: list[Nodes], graph: Graph, kept: Kept, drive: str, skip: str = ""
) -> tuple[Kept, str]:
    """One step of the last layers of the program: what is kept after it, and the output of the last."""
    following, h = {}, ""
    first = len(program.layers) - len(layers)
    for i, layer in enumerate(layers):
        if i:
            drive, skip = _drive(layers[i:], graph, h, numbers, skip)
        name = _name(program, first + i)
        state, h = layer.step(graph, kept.get(name, ""), drive)
        if name in kept:
            following[name] = state
    return following | take(program.readout, graph, kept, h), h


def _widths(program: IntegerProgram) -> dict[str, int]:
    """What goes from step to step, and its width; a layer without a state keeps nothing."""
    states = {_name(program, i): layer.n_state for i, layer in enumerate(program.layers) if layer.n_state}
    return states | held(program.readout)


def _name(program: IntegerProgram, i: int) -> str:
    return f"h{_suffix(program, i)}"


def _suffix(program: IntegerProgram, i: int) -> str:
    return "" if len(program.layers) == 1 else str(i)


def _last(graph: Graph, every: str) -> str:
    """The values of the last step.  # (B, T, n) -> (B, n)"""
    return graph("Gather", every, graph.constant(-1, "INT64"), axis=1)


def _start(graph: Graph, x: str, width: int) -> str:
    size = graph.constant([width], "INT64")
    return graph("ConstantOfShape", graph("Concat", graph("Shape", x, start=0, end=1), size, axis=0), value=_zero())


def _output_kind(program: IntegerProgram) -> str:
    return "INT32" if program.readout.exact else "FLOAT"


def _zero() -> TensorProto:
    ox = package()
    return ox.helper.make_tensor("zero", ox.TensorProto.INT32, [1], [0])
