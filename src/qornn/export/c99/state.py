"""NAME_state, and what walks the layers: NAME_init, NAME_step, and the replay's access to every unit."""

from __future__ import annotations

from qornn.export.c99.arrays import initializer
from qornn.export.c99.inputs import InputCode
from qornn.export.c99.layers import Code, Kept, Member
from qornn.export.c99.readouts import ReadoutCode

INDENT = "    "
WORD = 4


def state_bytes(members: list[Member]) -> int:
    """sizeof(NAME_state)."""
    size = sum(member.nbytes for member in members)
    widest = max(member.size for member in members)
    return -(-size // widest) * widest


def members(layers: list[Code], x: InputCode, readout: ReadoutCode) -> list[Member]:
    """Everything that is kept between steps, wide numbers first, so that nothing lies between the fields.

    Kernels load two 16-bit numbers at once, from arrays of whole words: these begin at whole words too.
    """
    found = [member for code in layers for member in code.members] + x.members + readout.members
    if all(member.size < WORD for member in found):
        found.append(Member(type="uint32_t", name="unused", comment="so that the arrays begin at whole words"))
    return sorted(found, key=lambda member: (-member.size, member.nbytes % WORD != 0))  # a stable sort


def words(name: str, layers: list[Code], x: InputCode, readout: ReadoutCode) -> dict[str, object]:
    """What the templates say of the state and of a step."""
    kept, last = members(layers, x, readout), layers[-1]
    units = [*x.kept, *(part for code in layers for part in code.kept)]
    return {
        "state_fields": "\n".join(map(str, kept)),
        "state_bytes": state_bytes(kept),
        "unit": last.unit,
        "state": last.states,
        "headers": "".join(f'#include "{header}"\n' for header in sorted({code.header for code in layers})),
        "layers": len(layers),
        "layer_structs": "\n".join(initializer(code.layer.struct, code.name, code.fields) for code in layers),
        "checks": "".join(code.checks for code in layers),
        "layer_steps": "\n".join(_layer_step(name, i, code, x, readout, layers) for i, code in enumerate(layers)),
        "init": _lines([*x.clear, *(line for code in layers for line in code.clear), *readout.clear]),
        "step": _lines([*x.lines, *_walk(name, layers, x, readout), "return QORNN_OK;"]),
        "n_state": sum(part.n for part in units),
        "unit_at": _lines(_unit_at(units, name)),
        "set_unit": _lines(_set_unit(units, name)),
        "n_read": readout.n_read,
        "read_at": _lines([f"return {_example(readout.read, name)};"]),
    }


def _layer_step(name: str, i: int, code: Code, x: InputCode, readout: ReadoutCode, layers: list[Code]) -> str:
    """The function of one layer; it gives what the next one reads."""
    last = i == len(layers) - 1 and not readout.step
    result, end = ("void", []) if last else ("const int16_t *", [f"return {code.given};"])
    given = [x.parameter if i == 0 else "const int16_t *x"]
    if code.skips:
        given += [x.before if i == 1 else "const int16_t *before"]
    space = "" if result.endswith("*") else " "
    head = f"/* Layer {i}: {code.layer.describe()}. */\nQORNN_INLINE {result}{space}{name}_step{i}"
    return f"{head}({name}_state *s, {', '.join(given)}) {{\n{_lines([*code.step, *end])}\n}}\n"


def _walk(name: str, layers: list[Code], x: InputCode, readout: ReadoutCode) -> list[str]:
    """One call per layer, each on what the one before gives."""
    lines, given = [], [x.argument]
    for i, code in enumerate(layers):
        read = [given[i], given[i - 1]] if code.skips else [given[i]]
        call = f"{name}_step{i}(s, {', '.join(read)});"
        last = i == len(layers) - 1 and not readout.step
        lines += [call if last else f"const int16_t *const h{i} = {call}"]
        given += [f"h{i}"]
    return [*lines, readout.step.replace("@h@", given[-1])] if readout.step else lines


def _unit_at(units: list[Kept], name: str) -> list[str]:
    """Of all units one after another, number j."""
    lines = []
    for part in units[:-1]:
        lines += [f"if (j < {part.n}u) {{", f"    return {_example(part.states, name)}[j];", "}", f"j -= {part.n}u;"]
    return [*lines, f"return {_example(units[-1].states, name)}[j];"]


def _set_unit(units: list[Kept], name: str) -> list[str]:
    """A state spread over its whole range from 17 random bits."""
    lines = []
    for part in units:
        sign = "(seed & 1u) != 0u ? -h : h" if part.signed else "h"
        lines += [
            f"if (j < {part.n}u) {{",
            f"    const int32_t h = (int32_t)((seed >> 16) & {part.top}u);",
            f"    {_example(part.states, name)}[j] = ({part.unit})({sign});",
            "    return;",
            "}",
            f"j -= {part.n}u;",
        ]
    return lines[:-1]


def _example(expression: str, name: str) -> str:
    """Of the replay's own state."""
    return expression.replace("(s)->", f"{name}_example.")


def _lines(lines: object) -> str:
    return "\n".join(f"{INDENT}{line}" for line in lines)  # type: ignore[attr-defined]
