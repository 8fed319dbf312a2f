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

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from qornn import __version__
from qornn._io.files import check_file, to_json, write_atomically
from qornn._io.text import readable
from qornn.errors import QornnError, SettingsError
from qornn.export.onnx_product import mixed, product, weights
from qornn.integer.parts import Codes, Identity, IntReadout, ModReLU, ReLU, Samples
from qornn.integer.program import IntegerProgram
from qornn.integer.requant import Multiplier, PerRow, Thresholds, refuse_table

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

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
    One step, for streams: x_t (B, n_i) or (B,), h (B, n_h) int32 -> h_next, y; h starts at zero.
    Samples outside the declared range are clipped to it; a code outside the table stops the runtime.
    `name` is the graph's, `command` what the file says made it.
    """
    path = Path(path)
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise SettingsError(f"name must be some text, got {name!r}")
    name = name or ("qornn_step" if single_step else "qornn")
    refuse_table(program.requant, "ONNX")
    check_file(path)
    write_atomically(path, _model(program, name, single_step, command).SerializeToString(deterministic=True))


def _model(program: IntegerProgram, name: str, single_step: bool, command: str | None) -> ModelProto:
    ox = _package()
    graph = _Graph()
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
        "scheme": program.scheme,
        "W": program.W.kind,
        "weight_bits": str(program.W.bits),
        "state_bits": str(program.state.bits),
        "exact": "states, y" if isinstance(readout, IntReadout) else "states",
    }
    if isinstance(readout, IntReadout):
        facts["y_scale"] = repr(readout.scale)  # y in the network's own units is y_scale·y
    trained = origin.get("trained")
    trained = {"task": origin.get("task"), **(trained if isinstance(trained, dict) else {})}
    facts |= {key: _words(trained[key]) for key in ("task", "metric", "value") if trained.get(key) is not None}
    return {key: readable(text) for key, text in facts.items()}


def _words(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value)


def _scan_graph(program: IntegerProgram, graph: _Graph) -> None:
    """Input sums of all steps at once, the Scan over them, the readout."""
    codes = isinstance(program.input, Codes)
    x = graph.input("x", "INT64" if codes else "INT32", ["B", "T"] if codes else ["B", "T", program.n_i])
    drive = _input_sums(program, graph, x)  # (B, T, n_h)
    recurrent = product(program.W, graph)
    n_h = graph.constant([program.n_h], "INT64")
    h_0 = graph("ConstantOfShape", graph("Concat", graph("Shape", x, start=0, end=1), n_h, axis=0), value=_zero())
    body = graph.inner()
    h = body.input("h", "INT32", ["B", program.n_h])
    drive_t = body.input("drive_t", "INT32", ["B", program.n_h])
    h_next = body.output(
        _next_state(program, body, recurrent(body, h), h, drive_t), "h_next", "INT32", ["B", program.n_h]
    )
    body.output(h_next, "state_t", "INT32", ["B", program.n_h])
    last, states = graph.many(
        "Scan",
        [h_0, drive],
        2,
        body=body.proto("step"),
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_output_axes=[1],
    )
    every = program.steps == "all"
    y = _readout(program, graph, states if every else last)
    graph.output(y, "y", _output_kind(program), ["B", "T", program.n_o] if every else ["B", program.n_o])
    graph.output(states, "states", "INT32", ["B", "T", program.n_h])


def _step_graph(program: IntegerProgram, graph: _Graph) -> None:
    """(x_t, h) -> (h_next, y)"""
    codes = isinstance(program.input, Codes)
    x = graph.input("x_t", "INT64" if codes else "INT32", ["B"] if codes else ["B", program.n_i])
    h = graph.input("h", "INT32", ["B", program.n_h])
    recurrent = product(program.W, graph)
    drive = _input_sums(program, graph, x)
    h_next = graph.output(
        _next_state(program, graph, recurrent(graph, h), h, drive), "h_next", "INT32", ["B", program.n_h]
    )
    graph.output(_readout(program, graph, h_next), "y", _output_kind(program), ["B", program.n_o])


def _input_sums(program: IntegerProgram, graph: _Graph, x: str) -> str:
    """2^shift_U Σ U_i x_i; the sums themselves with per-row multipliers.  # (..., n_i) or (...) -> (..., n_h) int32"""
    U = weights(graph, "U", program.U.integers.T, program.U.bits)  # (n_i, n_h)
    if isinstance(program.input, Codes):
        # Gather counts negative indices from the end; a negative code means nothing, and is led out of the table.
        size = graph.constant(program.input.size, "INT64")
        sums = graph("Gather", U, graph("Where", graph("Less", x, graph.constant(0, "INT64")), size, x), axis=0)
    else:
        sums = graph("MatMul", _samples(program.input, graph, x), U)
    requant = program.requant
    return sums if isinstance(requant, PerRow) else graph.times(sums, 1 << requant.shift_U, "INT32")


def _samples(samples: Samples, graph: _Graph, raw: str) -> str:
    """x_i = clamp( ((raw − offset)·multiplier + half) >> shift )  # (..., n_i) int32"""
    raw = graph("Clip", raw, graph.constant(samples.low, "INT32"), graph.constant(samples.high, "INT32"))
    if samples.plain:
        return raw
    rows = zip(samples.offset.tolist(), samples.multiplier.tolist(), samples.shift.tolist(), strict=True)
    add, lift = [], []
    for o, m, s in rows:  # Python's integers: no overflow here; there, every sum stays below 2^63
        half = 1 << (s - 1) if s else 0
        # Lifted by a multiple of 2^shift so that the least raw sample is not negative: then Div is >>.
        up = max(0, -(((samples.low - o) * m + half) >> s))
        add.append(-o * m + half + (up << s))
        lift.append(up)
    wide = graph("Mul", graph.cast(raw, "INT64"), graph.constant(samples.multiplier, "INT64"))
    wide = graph("Add", wide, graph.constant(add, "INT64"))
    wide = graph("Div", wide, graph.constant([1 << s for s in samples.shift.tolist()], "INT64"))
    wide = graph("Sub", wide, graph.constant(lift, "INT64"))
    top = 2 ** (samples.bits - 1)
    return graph.cast(graph.at_most(graph.at_least(wide, -top), top - 1), "INT32")


def _next_state(program: IntegerProgram, graph: _Graph, sums: str, h: str, drive: str) -> str:
    """One step of the law, of Σ W_i h_i, h and the input.  # three (B, n_h) int32 -> (B, n_h) int32"""
    requant = program.requant
    kind = "INT64" if isinstance(requant, PerRow) else "INT32"  # acc is proved to fit 32 bits, v needs 64
    if isinstance(requant, PerRow):
        terms = [(requant.M_W, sums), (requant.M_U, drive)] + ([] if requant.M_I is None else [(requant.M_I, h)])
        z, *others = [graph("Mul", graph.cast(term, kind), graph.constant(M, kind)) for M, term in terms]
        for other in others:
            z = graph("Add", z, other)
    else:
        z = graph("Add", graph.times(sums, 1 << requant.shift_W, kind), drive)
    if isinstance(program.activation, ReLU):
        return graph.cast(_magnitude(program, graph, graph.at_least(z, 0, kind)), "INT32")
    if isinstance(program.activation, Identity) and program.bias is not None:
        z = graph("Add", z, graph.constant(program.bias, kind))
    a = graph("Abs", z)
    if isinstance(program.activation, ModReLU):
        a = graph.at_least(graph("Add", a, graph.constant(program.activation.bias, kind)), 0, kind)
    zero = graph.constant(0, kind)
    above, below = (graph.cast(graph(op, z, zero), "INT32") for op in ("Greater", "Less"))
    return graph("Mul", graph("Sub", above, below), graph.cast(_magnitude(program, graph, a), "INT32"))


def _magnitude(program: IntegerProgram, graph: _Graph, a: str) -> str:
    """min(round(a·c), top) of a ≥ 0, as int32 or int64."""
    requant = program.requant
    if isinstance(requant, Thresholds):
        return _search(graph, requant.values, program.state.bits - 1, a)
    if isinstance(requant, Multiplier):
        a = graph("Mul", graph.cast(a, "INT64"), graph.constant(requant.multiplier, "INT64"))
    assert isinstance(requant, Multiplier | PerRow), "a table was refused"
    shifts = np.asarray(requant.shift, np.int64)
    a = graph("Add", a, graph.constant(1 << (shifts - 1), "INT64"))
    a = graph("Div", a, graph.constant(1 << shifts, "INT64"))
    return graph.at_most(a, program.state.top)


def _search(graph: _Graph, thresholds: np.ndarray, levels: int, a: str) -> str:
    """How many thresholds a reaches: of 2^levels − 1 thresholds, one bit of the count a level, the highest first."""
    values = graph.constant(thresholds, "INT32")
    found = ""
    for level in reversed(range(levels)):
        middle = graph.constant((1 << level) - 1, "INT32")  # the threshold of count found + 2^level
        value = graph("Gather", values, graph("Add", found, middle) if found else middle, axis=0)
        bit = graph.times(graph.cast(graph("GreaterOrEqual", a, value), "INT32"), 1 << level, "INT32")
        found = graph("Add", found, bit) if found else bit
    return found


def _readout(program: IntegerProgram, graph: _Graph, h: str) -> str:
    """y of the states.  # (..., n_h) int32 -> (..., n_o)"""
    readout = program.readout
    if readout.mix:
        h = mixed(program.n_h, graph)(graph, h)
    if readout.relu:
        h = graph("Max", h, graph.constant(0, "INT32"))
    if isinstance(readout, IntReadout):
        sums = graph("MatMul", h, weights(graph, "V", readout.V.T, readout.bits))
        return graph("Add", sums, graph.constant(readout.bias, "INT32"))
    sums = graph("MatMul", graph.cast(h, "FLOAT"), graph.constant(readout.V.T, "FLOAT", "V"))
    return graph("Add", graph.times(sums, readout.scale, "FLOAT"), graph.constant(readout.b_o, "FLOAT"))


def _output_kind(program: IntegerProgram) -> str:
    return "INT32" if isinstance(program.readout, IntReadout) else "FLOAT"


def _zero() -> TensorProto:
    ox = _package()
    return ox.helper.make_tensor("zero", ox.TensorProto.INT32, [1], [0])


def _package() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise QornnError("ONNX export needs onnx, which is not installed: pip install 'qornn[onnx]'") from error
    return onnx


@dataclass
class _Graph:
    """Nodes in order; calling it adds one and gives the name of its result."""

    prefix: str = ""
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    count: int = 0

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.many(op, inputs, 1, **attributes)[0]

    def many(self, op: str, inputs: Any, outputs: int, **attributes: Any) -> list[str]:
        names = [self._name(op) for _ in range(outputs)]
        self.nodes.append(_package().helper.make_node(op, list(inputs), names, **attributes))
        return names

    def cast(self, value: str, kind: str) -> str:
        return self("Cast", value, to=getattr(_package().TensorProto, kind))

    def times(self, value: str, factor: float, kind: str) -> str:
        return value if factor == 1 else self("Mul", value, self.constant(factor, kind))

    def at_least(self, value: str, low: int, kind: str = "INT64") -> str:
        limit = self.constant(low, kind)
        return self("Where", self("Less", value, limit), limit, value)

    def at_most(self, value: str, high: int, kind: str = "INT64") -> str:
        limit = self.constant(high, kind)
        return self("Where", self("Greater", value, limit), limit, value)

    def constant(self, values: Any, kind: str, name: str | None = None) -> str:
        ox = _package()
        array = np.asarray(values)
        name = name or self._name("constant")
        tensor = ox.helper.make_tensor(name, getattr(ox.TensorProto, kind), array.shape, array.ravel().tolist())
        self.initializers.append(tensor)
        return name

    def input(self, name: str, kind: str, shape: list[str | int]) -> str:
        self.inputs.append(self._value(name, kind, shape))
        return name

    def output(self, value: str, name: str, kind: str, shape: list[str | int]) -> str:
        self.nodes.append(_package().helper.make_node("Identity", [value], [name]))
        self.outputs.append(self._value(name, kind, shape))
        return name

    def inner(self) -> _Graph:
        """The body of a loop; it sees the names of this graph, so its own must differ."""
        return _Graph(prefix=f"{self.prefix}step_")

    def proto(self, name: str) -> Any:
        return _package().helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.initializers)

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{self.prefix}{kind.lower()}_{self.count}"

    def _value(self, name: str, kind: str, shape: list[str | int]) -> Any:
        ox = _package()
        return ox.helper.make_tensor_value_info(name, getattr(ox.TensorProto, kind), shape)
