"""Each kind of input in NAME.h and NAME.c: what a step takes, and what it makes of it first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from qornn.export.c99.arrays import array
from qornn.export.c99.folder import fill
from qornn.export.c99.layers import Member
from qornn.integer.inputs import Codes, Samples


@dataclass(frozen=True, kw_only=True)
class InputCode:
    """An input in C."""

    parameter: str  # of the first layer's function
    before: str  # the same, of a second layer that also reads it
    argument: str  # for it, in NAME_step
    lines: list[str]  # of NAME_step, before the layers
    members: list[Member]  # of NAME_state
    words: dict[str, str] = field(default_factory=dict)  # of the templates


NO_FLOATS: Final = {"quantize_h": "", "quantize_c": "", "quantize_note": "", "replay_x": "", "replay_floats": ""}


def _codes(part: Codes, name: str, room: int) -> InputCode:
    comment = f"/* One step; a code outside 0..{part.size - 1} changes nothing and returns 1, otherwise 0. */"
    return InputCode(
        parameter="size_t code",
        before="size_t before",
        argument="(size_t)code",
        lines=[f"if (!qornn_is_code(&{name}_input, code)) {{", "    return QORNN_BAD_CODE;", "}"],
        members=[],
        words={
            **NO_FLOATS,
            "parameter": "int32_t code",
            "argument": "code",
            "example_argument": "x[0]",
            "step_comment": comment,
        },
    )


def _samples(part: Samples, name: str, room: int) -> InputCode:
    comment = "" if room == part.n_i else f"{part.n_i} inputs, and zeros up to whole words of weights"
    return InputCode(
        parameter="const int16_t *x",
        before="const int16_t *before",
        argument="s->x",
        lines=[f"qornn_quantize(&{name}_input, x, s->x);"],
        members=[Member(type="int16_t", name="x", shape=(room,), comment=comment)],
        words={
            **(_quantize(part, name) if part.takes_floats else NO_FLOATS),
            "parameter": "const int16_t *x",
            "argument": "x",
            "example_argument": "x",
            "step_comment": f"/* One step of {name}_N_I raw samples, clamped to {part.low}..{part.high}; returns 0. */",
        },
    )


def _quantize(samples: Samples, name: str) -> dict[str, str]:
    """From floats: a shift of the mantissa where raw units are powers of two, else in double."""
    offset = "" if samples.plain else f" + {name}_input_offset[c]"
    following = "c++" if samples.window == 1 else f"c = c + 1 < {samples.channels}u ? c + 1 : 0"  # no division
    facts = {"name": name, "offset": offset, "next": following, "low": samples.low, "high": samples.high}
    if samples.raw_scale is None:
        kind, facts["gain"] = "quantize_gain", array(f"{name}_gain", samples.gain())
    else:
        exponents = (np.frexp(samples.raw_scale)[1] - 1).astype(np.int8)
        kind, facts["exponents"] = "quantize_shift", array(f"{name}_raw_exponent", exponents)
    parts = {"quantize_h": f"{kind}.h", "quantize_c": f"{kind}.c", "replay_floats": "replay_floats.c"}
    found = {word: fill(template, facts) for word, template in parts.items()}
    return found | {
        "quantize_note": f"`{name}_quantize(samples, x)` makes them of {samples.n_i} floats in the units of\n"
        "the training data, as a sensor gives them.\n\n",
        "replay_x": f"\n#ifndef {name}_NO_QUANTIZE\n    int16_t made[{name}_N_I];\n#endif",
    }


EMITTERS: Final[dict[str, Callable[[Any, str, int], InputCode]]] = {Codes.kind: _codes, Samples.kind: _samples}


def input_code(part: Any, name: str, room: int) -> InputCode:
    """The input in C, with room for so many x_i."""
    return EMITTERS[part.kind](part, name, room)
