"""What the page has to know of a program: it draws by these facts and asks for no kind."""

from __future__ import annotations

from typing import Any

from qornn.errors import QornnError
from qornn.export.c99.facts import facts as lines
from qornn.integer.program import IntegerProgram
from qornn.tasks import make_task
from qornn.tasks.base import Picture


def facts(program: IntegerProgram, name: str) -> dict[str, Any]:
    """Plain JSON."""
    low, high = program.input.limits
    readout, said = program.readout, program.provenance.get("classes")
    named = isinstance(said, list) and len(said) == program.n_o
    image = picture(program)
    per_step = program.input.shape[0] if program.input.shape else 1
    return {
        "name": name,
        "lines": lines(program),
        "low": low,
        "high": high,
        "inputs": per_step,
        "channels": program.input.channels,
        "window": program.input.window,
        "ranges": program.input.ranges.tolist(),
        "hold": program.input.hold,
        "floats": program.input.takes_floats,
        "picture": None if image is None else image._asdict(),
        "states": [
            {"n": part.n_state, "top": part.top, "signed": part.signed} for part in program.keepers if part.n_state
        ],
        "outputs": [str(label) for label in said] if named and said else [str(o) for o in range(program.n_o)],
        "exact": readout.exact,
        "scale": readout.scale if readout.exact else 1.0,
        "offset": readout.offset if readout.exact else 0.0,
    }


def picture(program: IntegerProgram) -> Picture | None:
    """How the task that the program was trained on draws its inputs, as far as both agree."""
    recipe = program.provenance.get("recipe")
    settings = recipe.get("task") if isinstance(recipe, dict) else None
    name = program.provenance.get("task")
    if not isinstance(settings, dict):
        settings = {"name": name}
    try:
        found = make_task(**settings).picture
    except (QornnError, TypeError):
        return None  # data of one's own, or a file that says something else
    return found if program.input.shape == (1,) else None
