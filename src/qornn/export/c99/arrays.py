"""A part's fields as const arrays of C, and the struct that points to them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qornn.integer.engine.structs import declared
from qornn.integer.layout import Fields

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


def arrays_of(name: str, fields: Fields) -> dict[str, np.ndarray]:
    """The arrays among the fields, by their names in C."""
    return {f"{name}_{field}": value for field, value in fields.items() if isinstance(value, np.ndarray)}


def initializer(struct: str, name: str, fields: Fields) -> str:
    """The static const struct, one field per line."""
    lines = []
    for field, kind, pointer in declared()[struct]:
        if pointer:
            value = f"{name}_{field}" if field in fields else "NULL"
        else:
            value = _number(fields.get(field, 0), kind)
        lines.append(f"    {value}, /* {field} */")
    body = "\n".join(lines)
    return f"static const {struct} {name} = {{\n{body}\n}};\n"


def _number(value: Any, kind: str) -> str:
    if isinstance(value, str):  # a constant of C
        return value
    if kind == "float":
        return literal(np.float32(value))
    return f"{value}u" if kind == "uint32_t" and value > 2**31 - 1 else str(value)


def literal(value: Any) -> str:
    """One number as C writes it; nine digits hold every float32, repr every float64.

    >>> literal(np.int32(-2**31)), literal(np.float32(3)), literal(np.uint32(7))
    ('(-2147483647 - 1)', '3.0f', '7u')
    """
    if isinstance(value, np.float32):
        if np.isnan(value):
            return "(0.0f / 0.0f)"  # NAN needs a header that bare devices lack
        text = f"{value:.9g}"
        return (text if set(text) & set(".e") else text + ".0") + "f"
    if isinstance(value, np.float64):
        return repr(float(value))
    if isinstance(value, np.int64):
        return f"{value}LL"
    if isinstance(value, np.uint32):
        return f"{value}u"
    return "(-2147483647 - 1)" if value == -(2**31) else str(value)  # C has no negative literals


def array(name: str, values: np.ndarray, *, flash: bool = True) -> str:
    """`static const` array, lines of at most LINE characters; `flash` as the runtime reads it (qornn_flash.h)."""
    flat = values.reshape(-1)
    lines, line = [], "   "
    for value in flat:
        word = f" {literal(value)},"
        if len(line) + len(word) > LINE:
            lines.append(line)
            line = "   "
        line += word
    body = "\n".join([*lines, line])
    where = "QORNN_FLASH " if flash else ""
    return f"static const {where}{TYPES[values.dtype]} {name}[{flat.size}] = {{\n{body}\n}};\n"
