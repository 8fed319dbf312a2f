"""A program as ONNX: the recurrence in integers inside one Scan, bit for bit `simulate` under onnxruntime.

Only operators that are exact and that onnxruntime has on every CPU are used:
- sums are int32 MatMul. MatMulInteger (u8 × s8) saturates its 16-bit halves on CPUs without VNNI; a float MatMul would
  be faster and exact below 2^24, but runtimes that compute it in TF32 or bfloat16 would round without a word.
- shifts are Div by a power of two, of operands that cannot be negative: Div of integers truncates, >> floors, and
  BitShift does not take signed integers.
- 64-bit Max, Min, Clip and Sign are never used: onnxruntime compares the low halves on x86-64 (seen in 1.31.1, and
  reported by ndonnx, pull request 154). Comparisons and Where are right, and so is everything on 32 bits.
The float readout is summed in whatever order the runtime likes: states and the integer readout are exact, not that one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from qornn import __version__
from qornn._io.files import check_file, to_json, write_atomically
from qornn._io.text import readable
from qornn.errors import ProgramError, SettingsError
from qornn.export.onnx_scan.graph import Graph, package
from qornn.export.onnx_scan.inputs import numbers, tensor
from qornn.export.onnx_scan.layers import Nodes, nodes
from qornn.export.onnx_scan.readouts import outputs
from qornn.integer.program import IntegerProgram

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

OPSET: Final = 21  # the first with INT4
IR_VERSION: Final = 10  # that opset's own; onnx would write its newest, which older runtimes refuse


def onnx(
    program: IntegerProgram,
    path: str | Path,
    *,
    name: str | None = None,
    single_step: bool = False,
    command: str | None = None,
) -> None:
    """Write the program as an ONNX model.

    Whole sequences: x (B, T, n_i) int32, or codes (B, T) int64 -> y and states (B, T, n_h) int32, any B and T.
    There are no lengths: sequences of one batch are equally long, or padded outside and their own last state taken from
    `states`.
    One step, for streams: x_t (B, n_i) or (B,), h (B, n_h) int32 -> h_next, y; h starts at zero. A program of several
    layers has h0, h1, … and h0_next, h1_next, …
    Samples outside the declared range are clipped to it; a code outside the table stops the runtime.
    `name` is the graph's, `command` what the file says made it.
    """
    path = Path(path)
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise SettingsError(f"name must be some text, got {name!r}")
    name = name or ("qornn_step" if single_step else "qornn")
    check_file(path)
    write_atomically(path, _model(program, name, single_step, command).SerializeToString(deterministic=True))


def _model(program: IntegerProgram, name: str, single_step: bool, command: str | None) -> ModelProto:
    if program.numpy_only:
        raise ProgramError(f"ONNX knows no {program.numpy_only}")
    if program.readout.pooled:
        raise ProgramError("ONNX knows no readout of the mean yet; program.run and program.session run it here")
    ox = package()
    graph = Graph()
    (_step_graph if single_step else _scan_graph)(program, graph)
    call = f"qornn.export.onnx(program, PATH{', single_step=True' if single_step else ''})"
    opset = [ox.helper.make_opsetid("", OPSET)]
    model = ox.helper.make_model(
        graph.proto(name),
        opset_imports=opset,
        ir_version=IR_VERSION,
        producer_name="qornn",
        producer_version=__version__,
    )
    ox.helper.set_model_props(model, _facts(program, command or call))
    ox.checker.check_model(model, full_check=True)
    return model


def _facts(program: IntegerProgram, command: str) -> dict[str, str]:
    """What the file says about itself; ONNX holds text only."""
    origin, readout = program.provenance, program.readout
    facts = {
        "version": __version__,
        "command": command,
        **_of_layers(program),
        "exact": "states, y" if readout.exact else "states",
    }
    if readout.exact:
        facts["y_scale"] = repr(readout.scale)  # y in the network's own units is y_scale·y
    trained = origin.get("trained")
    trained = {"task": origin.get("task"), **(trained if isinstance(trained, dict) else {})}
    facts |= {key: _words(trained[key]) for key in ("task", "metric", "value") if trained.get(key) is not None}
    return {key: readable(text) for key, text in facts.items()}


def _of_layers(program: IntegerProgram) -> dict[str, str]:
    """What each layer says of itself, one after another."""
    each = [layer.facts for layer in program.layers]
    names = dict.fromkeys(name for facts in each for name in facts)
    return {name: ", ".join(facts[name] for facts in each if name in facts) for name in names}


def _words(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value)


def _scan_graph(program: IntegerProgram, graph: Graph) -> None:
    """Input sums of all steps at once, the Scan over them, the readout."""
    fed = tensor(program.input)
    x = graph.input("x", fed.kind, ["B", "T", *fed.shape])
    layers = _layers(program, graph)
    drive = layers[0].drive(graph, x)  # (B, T, n_h)
    starts = [_start(graph, x, layer.n_state) for layer in program.layers]
    body = graph.inner()
    names = _names(program)
    states = [
        body.input(name, "INT32", ["B", layer.n_state]) for name, layer in zip(names, program.layers, strict=True)
    ]
    drive_t = body.input("drive_t", "INT32", ["B", program.layers[0].n_state])
    following, h = _walk(layers, body, states, drive_t)
    for name, layer, state in zip(names, program.layers, following, strict=True):
        body.output(state, f"{name}_next", "INT32", ["B", layer.n_state])
    body.output(h, "state_t", "INT32", ["B", program.n_out])
    *_, last, every = graph.many(
        "Scan",
        [*starts, drive],
        len(starts) + 1,
        body=body.proto("step"),
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_output_axes=[1],
    )
    read = program.readout
    y = outputs(read, graph, every if read.every else last)
    graph.output(y, "y", _output_kind(program), ["B", "T", program.n_o] if read.every else ["B", program.n_o])
    graph.output(every, "states", "INT32", ["B", "T", program.n_out])


def _step_graph(program: IntegerProgram, graph: Graph) -> None:
    """(x_t, h) -> (h_next, y), a state for each layer."""
    fed = tensor(program.input)
    x = graph.input("x_t", fed.kind, ["B", *fed.shape])
    names = _names(program)
    states = [
        graph.input(name, "INT32", ["B", layer.n_state]) for name, layer in zip(names, program.layers, strict=True)
    ]
    layers = _layers(program, graph)
    following, h = _walk(layers, graph, states, layers[0].drive(graph, x))
    for name, layer, state in zip(names, program.layers, following, strict=True):
        graph.output(state, f"{name}_next", "INT32", ["B", layer.n_state])
    graph.output(outputs(program.readout, graph, h), "y", _output_kind(program), ["B", program.n_o])


def _layers(program: IntegerProgram, graph: Graph) -> list[Nodes]:
    """Each layer reads the input, or the numbers of the layer before."""
    readers = [tensor(program.input).read, *[numbers] * (len(program.layers) - 1)]
    return [
        nodes(layer, graph, read, _suffix(program, i))
        for i, (layer, read) in enumerate(zip(program.layers, readers, strict=True))
    ]


def _walk(layers: list[Nodes], body: Graph, states: list[str], drive: str) -> tuple[list[str], str]:
    """One step of all layers: their next states, and the output of the last."""
    following, h = [], ""
    for i, (layer, state) in enumerate(zip(layers, states, strict=True)):
        state, h = layer.step(body, state, layer.drive(body, h) if i else drive)
        following.append(state)
    return following, h


def _names(program: IntegerProgram) -> list[str]:
    return [f"h{_suffix(program, i)}" for i in range(len(program.layers))]


def _suffix(program: IntegerProgram, i: int) -> str:
    return "" if len(program.layers) == 1 else str(i)


def _start(graph: Graph, x: str, width: int) -> str:
    size = graph.constant([width], "INT64")
    return graph("ConstantOfShape", graph("Concat", graph("Shape", x, start=0, end=1), size, axis=0), value=_zero())


def _output_kind(program: IntegerProgram) -> str:
    return "INT32" if program.readout.exact else "FLOAT"


def _zero() -> TensorProto:
    ox = package()
    return ox.helper.make_tensor("zero", ox.TensorProto.INT32, [1], [0])
