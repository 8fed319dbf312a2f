"""What a model keeps between steps, by the kind of its W: the fields of NAME_state, and what touches them."""

from __future__ import annotations

from typing import Final

from qornn.export import c_folder
from qornn.integer import layout as layouts
from qornn.integer.matrix import Dense
from qornn.integer.parts import Codes
from qornn.integer.program import IntegerProgram
from qornn.integer.structured import Cycle, Delay, Hadamard

ON_STACK: Final = 64  # QORNN_ON_STACK


def state_bytes(program: IntegerProgram) -> int:
    """sizeof(NAME_state): the states, which buffer they are in where there are two, and room for a step's inputs."""
    inputs = 2 * _inputs(program)
    if layouts.wide_state(program):
        size = 4 * program.n_h + inputs
    elif _buffers(program) == 1:
        size = 2 * program.n_h + inputs + 4 * _work(program)
        if not _work(program):
            return size  # 16-bit numbers alone
    else:
        size = 4 + 2 * 2 * units(program) + inputs + 4 * _work(program)
    return -(-size // 4) * 4


def units(program: IntegerProgram) -> int:
    """Length of a buffer of states."""
    if not isinstance(program.W, Dense):
        return program.n_h
    return layouts.units(program.n_h, program.W.bits)


def _inputs(program: IntegerProgram) -> int:
    """Room for x_i, as qornn_inputs says."""
    if isinstance(program.input, Codes):
        return 0
    if not layouts.U_in_rows(program):
        return program.n_i
    return layouts.units(program.n_i, program.U.bits)


def _buffers(program: IntegerProgram) -> int:
    """Of states: two where a step must not write over what it still reads."""
    in_place = layouts.wide_state(program) or isinstance(program.W, Cycle | Delay)
    return 1 if in_place else 2


def _sums(program: IntegerProgram) -> int:
    """32-bit sums that a step keeps apart from the state."""
    W = program.W
    if isinstance(W, Delay):
        return len(W.signs)
    return W.block if isinstance(W, Hadamard) and not layouts.wide_state(program) else 0


def _work(program: IntegerProgram) -> int:
    """Those of them that lie in the state, since the stack should stay small."""
    return _sums(program) if _sums(program) > ON_STACK else 0


def words(program: IntegerProgram, name: str) -> dict[str, object]:
    """What the templates say of the state."""
    two, wide = _buffers(program) == 2, layouts.wide_state(program)
    unit = "int32_t" if wide else "int16_t"
    fields = [f"    int32_t work[{_work(program)}];\n"] if _work(program) else []
    if two:
        fields += ["    uint32_t now;\n", f"    int16_t h[2][{name}_UNITS];\n"]
    else:
        fields += [f"    {unit} h[{name}_UNITS];\n"]
    padded = "n_h, and zeros up to whole words of weights" if isinstance(program.W, Dense) else "n_h"
    return {
        "units": units(program),
        "units_comment": padded,
        "unit": unit,
        "state_fields": "".join(fields),
        "state": "((s)->h[(s)->now & 1u])" if two else "((s)->h)",
        "has_room": _room(program, name),
        "init": c_folder.fill("init_two.c" if two else "init_one.c", {"name": name}),
        "step": _step(program, name),
        "readout_suffix": "_wide" if wide else "",
        **_x_words(program, name),
    }


def _room(program: IntegerProgram, name: str) -> str:
    if not isinstance(program.W, Dense):
        return ""
    length = f"QORNN_UNITS({program.n_h}u, QORNN_GROUP_PACKED({program.W.bits}u))"
    return (
        "/* The buffers are as long as the kernels read. */\n"
        f"typedef char {name}_has_room[{name}_UNITS == {length} ? 1 : -1];\n"
    )


def _x_words(program: IntegerProgram, name: str) -> dict[str, str]:
    """The field of x_i in the state, and with U row by row the check that it is as long as the kernels read."""
    room = _inputs(program)
    if not room:
        return {"x_field": "", "x_room": ""}
    if not layouts.U_in_rows(program):
        return {"x_field": f"    int16_t x[{name}_N_I];\n", "x_room": ""}
    length = f"QORNN_UNITS({program.n_i}u, QORNN_GROUP_PACKED({program.U.bits}u))"
    return {
        "x_field": f"    int16_t x[{room}]; /* {name}_N_I, and zeros up to whole words of weights */\n",
        "x_room": f"typedef char {name}_x_has_room[{room} == {length} ? 1 : -1];\n",
    }


def _step(program: IntegerProgram, name: str) -> str:
    """The body of NAME_step."""
    codes = isinstance(program.input, Codes)
    if isinstance(program.W, Dense):
        call = f"code(&{name}_program, code, " if codes else f"(&{name}_program, x, s->x, "
        call = f"qornn_step{'_' if codes else ''}{call}s->h[now], s->h[now ^ 1u])"
        return (
            "    const unsigned now = s->now & 1u;\n"
            f"    const int result = {call};\n"
            "    s->now = result == QORNN_OK ? now ^ 1u : now;\n"
            "    return result;"
        )
    lines = []
    if codes:
        lines += [f"if (!qornn_is_code(&{name}_program, code)) {{", "    return QORNN_BAD_CODE;", "}"]
        given = "NULL, (size_t)code"
    else:
        lines += [f"qornn_quantize(&{name}_program, x, s->x);"]
        given = "s->x, 0"
    work = "s->work" if _work(program) else "work"
    if _sums(program) and not _work(program):
        lines += [f"int32_t work[{_sums(program)}];"]
    if layouts.wide_state(program):
        lines += [f"qornn_advance_wide(&{name}_program, {given}, s->h);"]
    elif isinstance(program.W, Cycle):
        lines += [f"qornn_advance_cycle(&{name}_program, {given}, s->h);"]
    elif isinstance(program.W, Delay):
        lines += [f"qornn_advance_delay(&{name}_program, {given}, s->h, {work});"]
    else:
        lines += [
            "const unsigned now = s->now & 1u;",
            f"qornn_advance_blocks(&{name}_program, {given}, s->h[now], s->h[now ^ 1u], {work});",
            "s->now = now ^ 1u;",
        ]
    return "\n".join(f"    {line}" for line in [*lines, "return QORNN_OK;"])
