"""A program as const arrays of C, and the one struct that points to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from qornn.integer import layout as layouts
from qornn.integer.matrix import Dense
from qornn.integer.parts import Codes, FloatReadout, Identity, IntReadout, ModReLU, ReLU
from qornn.integer.program import IntegerProgram
from qornn.integer.requant import Multiplier, PerRow, Thresholds
from qornn.integer.structured import Delay, Hadamard

LINE: Final = 116
TYPES: Final = {
    np.dtype(np.int8): "int8_t",
    np.dtype(np.uint8): "uint8_t",
    np.dtype(np.int16): "int16_t",
    np.dtype(np.int32): "int32_t",
    np.dtype(np.uint32): "uint32_t",
    np.dtype(np.int64): "int64_t",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}
ACTIVATIONS: Final = {ReLU: "QORNN_RELU", ModReLU: "QORNN_MODRELU", Identity: "QORNN_IDENTITY"}
REQUANTS: Final = {
    Multiplier: "QORNN_MULTIPLIER",
    Thresholds: "QORNN_THRESHOLDS",
    PerRow: "QORNN_PER_ROW",
}


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What NAME.c holds: arrays by the field of qornn_program that points to them, and the other fields."""

    arrays: dict[str, np.ndarray]
    numbers: dict[str, str]  # C expressions

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())


# The fields of qornn_program in their order: C++ knows no designated initializers. A test holds it against qornn.h.
_FIELDS: Final = """
    n_i n_h n_o bits_W bits_U bits_h bits_x input activation requant readout steps plain low high
    x_offset x_multiplier x_shift W_planes U_packed U_planes bias bias_wide
    shift_W shift_U shift multiplier thresholds M_W M_U M_I row_shift alike readout_relu V b_o scale
    V_int b_o_int recurrent moves block signs U_words bits_V V_packed mix"""
FIELDS: Final = tuple(_FIELDS.split())
_POINTERS: Final = """
    x_offset x_multiplier x_shift W_planes U_packed U_planes bias bias_wide thresholds
    M_W M_U M_I row_shift V b_o V_int b_o_int signs U_words V_packed"""
POINTERS: Final = frozenset(_POINTERS.split())


def constants(program: IntegerProgram) -> Constants:
    """Everything a step and a readout need."""
    arrays: dict[str, np.ndarray] = {}
    numbers: dict[str, Any] = {
        "n_i": program.n_i,
        "n_h": program.n_h,
        "n_o": program.n_o,
        "bits_W": program.W.bits,
        "bits_U": program.U.bits,
        "bits_h": program.state.bits,
        "bits_x": program.input.bits,
        "activation": ACTIVATIONS[type(program.activation)],
        "requant": REQUANTS[type(program.requant)],
        "steps": "QORNN_LAST" if program.steps == "last" else "QORNN_ALL",
    }
    _W(program, arrays, numbers)
    arrays |= _U(program)
    for add in (_input, _requant, _readout):
        add(program, arrays, numbers)
    return Constants(arrays=arrays, numbers={key: str(value) for key, value in numbers.items()})


def _W(program: IntegerProgram, arrays: dict[str, np.ndarray], numbers: dict[str, Any]) -> None:
    W = program.W
    numbers["recurrent"] = f"QORNN_{W.kind.upper()}"
    if isinstance(W, Dense):
        arrays["W_planes"] = layouts.pack_rows(W.integers, W.bits)
    if isinstance(W, Hadamard | Delay):
        arrays["signs"] = layouts.pack_signs(W.signs)
    if isinstance(W, Hadamard):
        numbers["block"] = W.block
    if isinstance(W, Delay):
        numbers |= {"block": len(W.signs), "moves": int(layouts.moves(program))}


def _rows(program: IntegerProgram) -> np.ndarray | slice:
    """The rows that are stored of U, of the bias and of the multipliers."""
    return program.W.driven if isinstance(program.W, Delay) and layouts.moves(program) else slice(None)


def _U(program: IntegerProgram) -> dict[str, np.ndarray]:
    """U row by row or column by column, by the field that says which."""
    U, bits = program.U.integers[_rows(program)], program.U.bits
    if layouts.U_in_rows(program):
        return {"U_planes": layouts.pack_rows(U, bits)}
    if not isinstance(program.W, Dense) and bits in layouts.WORD_BITS:
        return {"U_words": layouts.pack_words(U, bits)}
    return {"U_packed": layouts.pack_columns(U, bits)}


def _input(program: IntegerProgram, arrays: dict[str, np.ndarray], numbers: dict[str, Any]) -> None:
    x = program.input
    if isinstance(x, Codes):
        numbers |= {"input": "QORNN_CODES"}
        return
    numbers |= {"input": "QORNN_SAMPLES", "plain": int(x.plain), "low": x.low, "high": x.high}
    if not x.plain:
        arrays |= {"x_offset": x.offset, "x_multiplier": x.multiplier, "x_shift": x.shift}


def _requant(program: IntegerProgram, arrays: dict[str, np.ndarray], numbers: dict[str, Any]) -> None:
    requant, bias, rows = program.requant, program.bias, _rows(program)
    bias = None if bias is None else bias[rows]
    if isinstance(requant, PerRow):
        found = {"M_W": requant.M_W, "M_U": requant.M_U, "M_I": requant.M_I, "row_shift": requant.shift}
        numbers["alike"] = int(requant.alike)
        kept = slice(1) if requant.alike else rows
        arrays |= {name: values[kept] for name, values in found.items() if values is not None}
        if bias is not None:
            arrays["bias_wide"] = bias
        return
    numbers |= {"shift_W": requant.shift_W, "shift_U": requant.shift_U}
    if bias is not None:
        arrays["bias"] = bias.astype(np.int32)  # scheme paper proved that it fits
    shift = layouts.pure_shift(program)
    if shift is not None:
        numbers |= {"requant": "QORNN_SHIFT", "shift": shift}
    elif isinstance(requant, Multiplier):
        numbers |= {"multiplier": f"{requant.multiplier}u", "shift": requant.shift}
    elif isinstance(requant, Thresholds):
        arrays["thresholds"] = requant.values


def _readout(program: IntegerProgram, arrays: dict[str, np.ndarray], numbers: dict[str, Any]) -> None:
    readout = program.readout
    numbers |= {"readout_relu": int(readout.relu), "mix": int(readout.mix)}
    V = np.ascontiguousarray(readout.V.T) if readout.mix else readout.V  # as it is read
    if isinstance(readout, FloatReadout):
        numbers |= {"readout": "QORNN_FLOAT", "scale": literal(np.float32(readout.scale))}
        arrays |= {"V": V, "b_o": readout.b_o}
    elif isinstance(readout, IntReadout):
        numbers["readout"] = "QORNN_INT"
        if readout.bits < 8 or readout.mix or layouts.wide_state(program):
            numbers["bits_V"] = readout.bits
            arrays["V_packed"] = layouts.pack_stream(V, readout.bits)
        else:
            arrays["V_int"] = V
        arrays["b_o_int"] = readout.bias


def literal(value: Any) -> str:
    """One number as C writes it; nine digits hold every float32, repr every float64.

    >>> literal(np.int32(-2**31)), literal(np.float32(3)), literal(np.uint32(7))
    ('(-2147483647 - 1)', '3.0f', '7u')
    """
    if isinstance(value, np.float32):
        text = f"{value:.9g}"
        return (text if set(text) & set(".e") else text + ".0") + "f"
    if isinstance(value, np.float64):
        return repr(float(value))
    if isinstance(value, np.int64):
        return f"{value}LL"
    if isinstance(value, np.uint32):
        return f"{value}u"
    return "(-2147483647 - 1)" if value == -(2**31) else str(value)  # C has no negative literals


def array(name: str, values: np.ndarray) -> str:
    """`static const` array, lines of at most LINE characters."""
    flat = values.reshape(-1)
    lines, line = [], "   "
    for value in flat:
        word = f" {literal(value)},"
        if len(line) + len(word) > LINE:
            lines.append(line)
            line = "   "
        line += word
    body = "\n".join([*lines, line])
    return f"static const {TYPES[values.dtype]} {name}[{flat.size}] = {{\n{body}\n}};\n"


def initializer(name: str, found: Constants) -> str:
    """The static const qornn_program of a model, a field a line."""
    lines = []
    for field in FIELDS:
        if field in POINTERS:
            value = f"{name}_{field}" if field in found.arrays else "NULL"
        else:
            value = found.numbers.get(field, "0.0f" if field == "scale" else "0")
        lines.append(f"    {value}, /* {field} */")
    body = "\n".join(lines)
    return f"static const qornn_program {name}_program = {{\n{body}\n}};\n"
