"""Counts the places that ask which kind of part a program has, outside the kinds' own files: `python tools/kinds.py`.

    isinstance(part, Dense)   type(part) is Dense   TABLE[type(part)]   case Dense(...)
    part.kind == "dense"      program.scheme != "paper"                 program.steps == "last"

Kinds describe themselves, so that consumers need not ask. A registry that looks a kind up by its name does not ask.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

KINDS = {
    *("Codes", "Samples", "ReLU", "ModReLU", "Identity", "FloatReadout", "IntReadout"),
    *("Paper", "Multiplier", "Thresholds", "Table", "PerRow", "Dense", "Structured", "Hadamard", "Cycle", "Delay"),
    *("Quaternion", "Recurrent", "Rotations", "Mix"),
}
NAMES = {
    *("dense", "hadamard", "cycle", "delay", "quaternion", "codes", "samples", "relu", "modrelu", "identity"),
    *("multiplier", "thresholds", "table", "per-row", "paper", "float", "integer", "last", "all", "recurrent"),
    *("mean", "rotations", "mix"),
}
PROPERTIES = {"kind", "scheme", "steps"}
OWN = {"activations.py", "requant.py", "readout.py", "readout_base.py"}  # of integer/, beside ROOMS
ROOMS = {"inputs", "layers", "matrices"}


def questions(source: Path) -> Iterator[tuple[Path, int]]:
    """The file and line of every question."""
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).parts
        own = parts[0] == "integer" and (parts[-1] in OWN or (len(parts) == 3 and parts[1] in ROOMS))
        if not own and parts[0] not in ("maps", "model", "recurrence", "train", "recipe"):  # of networks, not programs
            yield from ((path.relative_to(source), node.lineno) for node in _asking(path))


def _asking(path: Path) -> Iterator[ast.expr | ast.match_case]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            if _names(node.args[1]) & KINDS:
                yield node
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            typed = any(isinstance(side, ast.Call) and ast.unparse(side.func) == "type" for side in sides)
            asked = any(isinstance(side, ast.Attribute) and side.attr in PROPERTIES for side in sides)
            named = {value for side in sides for value in _strings(side)} & NAMES
            if (typed and any(_names(side) & KINDS for side in sides)) or (asked and named):
                yield node
        elif isinstance(node, ast.Subscript) and ast.unparse(node.slice).startswith("type("):
            yield node
        elif isinstance(node, ast.MatchClass) and _names(node.cls) & KINDS:
            yield node  # type: ignore[misc]


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | {
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }


def _strings(node: ast.AST) -> set[str]:
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}


if __name__ == "__main__":
    found = list(questions(Path(sys.argv[1] if len(sys.argv) > 1 else "src/qornn")))
    for path, line in found:
        print(f"{path}:{line}")
    print(len(found))
