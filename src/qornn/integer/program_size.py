"""A program by the paper's formulas: its size, and the operations of a step."""

from __future__ import annotations

from typing import Any

from qornn.integer.program import IntegerProgram
from qornn.integer.size import Size, Step, complexity, size
from qornn.integer.structured_size import size_around, step_around


def of_program(p: IntegerProgram) -> tuple[Size | None, dict[str, Step]]:
    """None for other programs than of one recurrent layer: the formulas know one."""
    if len(p.layers) > 1 or not hasattr(p.layers[0], "W"):
        return None, {}
    one_hot = not p.input.multiplied
    if p.W.stored:
        bits: dict[str, Any] = {"bits": p.W.bits, "bits_U": p.U.bits, "activation_bits": p.state.bits}
        steps = complexity(p.n_i, p.n_h, **bits, input_bits=p.input.bits, one_hot=one_hot)
        return size(p.n_i, p.n_h, p.n_o, **bits), steps
    widths: dict[str, Any] = {"bits": p.U.bits, "bits_V": p.readout.bits_V or p.U.bits}
    found = size_around(p.W, p.n_i, p.n_o, **widths, bias=p.bias is not None, activation_bits=p.state.bits)
    return found, step_around(p.W, p.n_i, bits=p.U.bits, input_bits=p.input.bits, one_hot=one_hot)
