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
from qornn.export.onnx_scan.program_graph import one_step, sequences
from qornn.export.onnx_scan.readouts import COUNT
from qornn.integer.program import IntegerProgram

if TYPE_CHECKING:
    from onnx import ModelProto

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

    Whole sequences: x (B, T, n_raw) int32, or codes (B, T) int64 -> y and states (B, T, n_h) int32, any B and T.
    `states` are those of the last layer that has any; a program without states has no such output. There are no
    lengths: sequences of one batch are equally long, or padded outside and their own last step taken from `states`, or
    from y of a readout of every step.
    One step, for streams: x_t (B, n_raw) or (B,), h (B, n_h) int32 -> h_next, y; h starts at zero. A program of several
    layers has h0, h1, … and h0_next, h1_next, …; a layer that keeps no state has none. Samples that are remembered, for
    differences or where some are missing, add `kept` (B, channels), zero at first, and `kept_next`.
    A readout of the mean gives y = V Σh + T·bias, as `simulate` does, and `count`, T of each sequence (B, 1): values
    are y_scale·y/count, plus y_offset where the file has one. One step of it also takes `sum` (B, n_h) and `count`,
    zero at first, and gives `sum_next` and `count_next`. Both are halved as in `simulate`, so that a stream may run for
    ever.
    Samples outside the declared range are clipped to it. Missing samples, where they are held, are −32768.
    A code outside the table stops the runtime.
    `name` is the name of the graph. `command` is the command that the file names as its origin.
    """
    path = Path(path)
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise SettingsError(f"name must be text, got {name!r}")
    name = name or ("qornn_step" if single_step else "qornn")
    check_file(path)
    write_atomically(path, _model(program, name, single_step, command).SerializeToString(deterministic=True))


def _model(program: IntegerProgram, name: str, single_step: bool, command: str | None) -> ModelProto:
    if program.numpy_only:
        raise ProgramError(f"ONNX export does not support {program.numpy_only}")
    ox = package()
    graph = Graph()
    (one_step if single_step else sequences)(program, graph)
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
    """The metadata of the file. ONNX stores only text."""
    origin, readout = program.provenance, program.readout
    facts = {
        "version": __version__,
        "command": command,
        **_of_layers(program),
        "exact": "states, y" if readout.exact else "states",
    }
    if readout.exact:
        value = f"y_scale*y/{COUNT}" if readout.pooled else "y_scale*y"
        facts |= {"y_scale": repr(readout.scale), "y_value": f"{value} + y_offset" if readout.offset else value}
        facts |= {"y_offset": repr(readout.offset)} if readout.offset else {}
    if readout.steps_max is not None:
        facts["steps_max"] = str(readout.steps_max)  # after so many, the sums of a mean and their count are halved
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
