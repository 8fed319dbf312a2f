"""NAME_state, and what walks the layers: NAME_init, NAME_step, and the replay's access to every unit."""

from __future__ import annotations

from qornn.export.c99.arrays import initializer
from qornn.export.c99.inputs import InputCode
from qornn.export.c99.layers import Code, Member

INDENT = "    "


def state_bytes(members: list[Member]) -> int:
    """sizeof(NAME_state)."""
    size = sum(member.nbytes for member in members)
    widest = max(member.size for member in members)
    return -(-size // widest) * widest


def members(layers: list[Code], x: InputCode) -> list[Member]:
    """Everything that is kept between steps, wide numbers first, so that nothing lies between the fields."""
    found = [member for code in layers for member in code.members] + x.members
    return sorted(found, key=lambda member: -member.size)  # a stable sort


def words(name: str, layers: list[Code], x: InputCode) -> dict[str, object]:
    """What the templates say of the state and of a step."""
    kept, last = members(layers, x), layers[-1]
    return {
        "state_fields": "\n".join(map(str, kept)),
        "state_bytes": state_bytes(kept),
        "unit": last.unit,
        "state": last.states,
        "headers": "".join(f'#include "{header}"\n' for header in sorted({code.header for code in layers})),
        "layers": len(layers),
        "layer_structs": "\n".join(initializer(code.layer.struct, code.name, code.fields) for code in layers),
        "checks": "".join(code.checks for code in layers),
        "layer_steps": "\n".join(_layer_step(name, i, code, x, layers) for i, code in enumerate(layers)),
        "init": _lines(line for code in layers for line in code.clear),
        "step": _lines([*x.lines, *_walk(name, layers, x), "return QORNN_OK;"]),
        "n_state": sum(code.layer.n_state for code in layers),
        "unit_at": _lines(_unit_at(layers, name)),
        "set_unit": _lines(_set_unit(layers, name)),
    }


def _layer_step(name: str, i: int, code: Code, x: InputCode, layers: list[Code]) -> str:
    """The function of one layer; it gives what the next one reads."""
    last = i == len(layers) - 1
    result, end = ("void", []) if last else ("const int16_t *", [f"return {code.given};"])
    given = x.parameter if i == 0 else "const int16_t *x"
    space = "" if result.endswith("*") else " "
    head = f"/* Layer {i}: {code.layer.describe()}. */\nQORNN_INLINE {result}{space}{name}_step{i}"
    return f"{head}({name}_state *s, {given}) {{\n{_lines([*code.step, *end])}\n}}\n"


def _walk(name: str, layers: list[Code], x: InputCode) -> list[str]:
    """One call a layer, each on what the one before gives."""
    lines, given = [], x.argument
    for i in range(len(layers)):
        call = f"{name}_step{i}(s, {given});"
        last = i == len(layers) - 1
        lines += [call if last else f"const int16_t *const h{i} = {call}"]
        given = f"h{i}"
    return lines


def _unit_at(layers: list[Code], name: str) -> list[str]:
    """Of all layers' units one after another, number j."""
    lines = []
    for code in layers[:-1]:
        n = code.layer.n_state
        lines += [f"if (j < {n}u) {{", f"    return {_of(code, name)}[j];", "}", f"j -= {n}u;"]
    return [*lines, f"return {_of(layers[-1], name)}[j];"]


def _set_unit(layers: list[Code], name: str) -> list[str]:
    """A state spread over its whole range from 17 random bits."""
    lines = []
    for code in layers:
        n, sign = code.layer.n_state, "(seed & 1u) != 0u ? -h : h" if code.layer.signed else "h"
        lines += [
            f"if (j < {n}u) {{",
            f"    const int32_t h = (int32_t)((seed >> 16) & {code.layer.top}u);",
            f"    {_of(code, name)}[j] = ({code.unit})({sign});",
            "    return;",
            "}",
            f"j -= {n}u;",
        ]
    return lines[:-1]


def _of(code: Code, name: str) -> str:
    return code.states.replace("(s)->", f"{name}_example.")


def _lines(lines: object) -> str:
    return "\n".join(f"{INDENT}{line}" for line in lines)  # type: ignore[attr-defined]
