"""What a model says of itself: in NAME.h as comments, in README.md as Markdown."""

from __future__ import annotations

import html
import re

from qornn._io.text import counted
from qornn.export.c99.arrays import arrays_of
from qornn.export.c99.layers import Code
from qornn.integer.layout import Fields
from qornn.integer.program import IntegerProgram

NAMES_LIMIT, NAME_LIMIT = 50, 40  # classes that are named, and letters of a name


def facts(program: IntegerProgram) -> list[str]:
    """Its shape, its weights, what is read out of it when, and what it was measured to do."""
    metric, last = program.provenance.get("metric"), program.layers[-1]
    shape = program.input.describe()
    *others, width = (str(layer.output.n_i) for layer in program.layers)
    widths = f"{', '.join(others)} and {width}" if others else width
    units = f"{len(program.layers)} layers of {widths} units" if others else counted(int(width), "unit")
    outputs = counted(program.n_o, "output")
    mixed = "transformed by Walsh-Hadamard and " if program.readout.mix else ""
    lines = [f"{shape}, {units}, {outputs}; {last.describe()}"]
    if len(program.layers) > 1:
        lines = [f"{shape}, {units}, {outputs}"]
        lines += [f"layer {i}: {layer.describe()}" for i, layer in enumerate(program.layers)]
    lines += [f"{mixed}read out {program.readout.when}", *_named(program)]
    if isinstance(metric, dict) and {"name", "value"} <= metric.keys():
        task = program.provenance.get("task")
        where = f"task {task}: " if isinstance(task, str) else ""
        value = metric["value"]
        said = f"{value:.4g}" if isinstance(value, float) else value
        return [*lines, plain(f"{where}{metric['name']} {said} on the test set, as these integers")]
    return [*lines, "never measured on a task"]


def _named(program: IntegerProgram) -> list[str]:
    """The class of each output, where the program knows its classes."""
    said = program.provenance.get("classes")
    if not isinstance(said, list) or len(said) != program.n_o:
        return []
    names = [f"{o} {str(label)[:NAME_LIMIT]}" for o, label in enumerate(said[:NAMES_LIMIT])]
    return [plain(f"outputs: {', '.join(names)}" + (", ..." if len(said) > NAMES_LIMIT else ""))]


def memory(layers: list[Code], readout: Fields, *, data: int, state: int, outputs: int) -> dict[str, int]:
    """The memory table, whatever is known before compiling."""

    def of(fields: Fields, *begins: str) -> int:
        return sum(array.nbytes for name, array in arrays_of("", fields).items() if name[1:].startswith(begins))

    stored: dict[str, int] = {}
    for code in layers:
        for what, begins in code.stored.items():
            stored[f"flash: {what}"] = stored.get(f"flash: {what}", 0) + of(code.fields, *begins)
    V = of(readout, "")
    whole = sum(stored.values())
    if filled := sum(code.filled for code in layers):
        stored["flash: of these, to fill up words of weights"] = filled
    return {
        **stored,
        "flash: requantization, biases, normalisation": data - whole - V,
        "flash: readout": V,
        "flash: all constants": data,
        "RAM: state": state,
        "RAM: outputs": outputs,
        "RAM: all, but for the stack": state + outputs,
    }


def work(program: IntegerProgram) -> dict[str, int]:
    """Multiply-accumulates; codes select a column of U, which is only added. A W that is not stored takes additions."""
    found: dict[str, int] = {}
    for layer, source in program.walk():
        for what, count in layer.work(source).items():
            found[what] = found.get(what, 0) + count
    n = program.n_out
    found["per readout"] = n * program.n_o
    if program.readout.mix:  # twelve additions for each four units of S h and four of h
        found["per readout: transform, additions alone"] = 12 * (n // 4) ** 2 or 2
    return found


def table(rows: dict[str, int]) -> str:
    """One line per row."""
    return "\n".join(f"     {what:<48}{size:>9}" for what, size in rows.items())


def for_markdown(words: dict[str, object]) -> dict[str, str]:
    """The same facts, as Markdown lays them out."""

    def rows_of(text: object) -> str:
        rows = (line.rsplit(maxsplit=1) for line in str(text).splitlines())
        return "\n".join(f"| {what.strip()} | {size} |" for what, size in rows)

    facts = "\n".join(f"- {_literal(line.strip())}" for line in str(words["facts"]).splitlines())
    return {"memory": rows_of(words["memory"]), "work": rows_of(words["work"]), "facts": facts}


def _literal(text: str) -> str:
    """Text that Markdown shows as it is: no tags, links or pictures, whatever a program file says about itself."""
    return re.sub(r"[\[\]`\\]", r"\\\g<0>", html.escape(text, quote=False))


def plain(text: str) -> str:
    """One line that cannot end a comment, whatever a program file says about itself."""
    text = text.encode("ascii", "backslashreplace").decode()
    text = re.sub(r"\?(?=\?)", "? ", text)  # trigraphs: ??/ is a backslash to C99
    return "".join(ch if ch.isprintable() else " " for ch in text).replace("*/", "* /").replace("/*", "/ *")[:300]
