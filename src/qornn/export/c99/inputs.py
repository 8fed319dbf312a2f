"""Each kind of input in NAME.h and NAME.c: what a step takes, and what it makes of it first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from qornn.export.c99.arrays import array
from qornn.export.c99.folder import fill
from qornn.export.c99.layers import Kept, Member, cleared
from qornn.integer.inputs import Codes, Samples
from qornn.integer.inputs.memory import MISSING


@dataclass(frozen=True, kw_only=True)
class InputCode:
    """An input in C."""

    parameter: str  # of the first layer's function
    before: str  # the same, of a second layer that also reads it
    argument: str  # for it, in NAME_step
    lines: list[str]  # of NAME_step, before the layers
    members: list[Member]  # of NAME_state
    kept: list[Kept] = field(default_factory=list)  # of them, what goes from step to step
    clear: list[str] = field(default_factory=list)  # lines: before a sequence
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
            "declared": f"int32_t code; /* from 0 to {part.size - 1} */",
            "example_argument": "x[0]",
            "step_comment": comment,
            "sketch": "code",
            "sketch_units": "",
        },
    )


def _samples(part: Samples, name: str, room: int) -> InputCode:
    comment = "" if room == part.n_i else f"{part.n_i} inputs, and zeros up to whole words of weights"
    n, held = part.n_state, f"; {MISSING} is missing, and the last one stands for it" if part.hold else ""
    last = Member(type="int16_t", name="kept", shape=(n,), comment="last raw samples, highest bit turned; 0: none yet")
    kept = [Kept(n=n, states="((s)->kept)", unit="int16_t", top=part.top, signed=part.signed)] if n else []
    step = f"qornn_remember(&{name}_input, x, s->kept, s->x);" if n else f"qornn_quantize(&{name}_input, x, s->x);"
    limits = f"clamped to {part.low}..{part.high}{held}; returns 0."
    return InputCode(
        parameter="const int16_t *x",
        before="const int16_t *before",
        argument="s->x",
        lines=[step],
        members=[Member(type="int16_t", name="x", shape=(room,), comment=comment), *([last] if n else [])],
        kept=kept,
        clear=cleared("kept", n) if n else [],
        words={
            **(_quantize(part, name) if part.takes_floats else NO_FLOATS),
            "parameter": "const int16_t *x",
            "argument": "x",
            "declared": f"int16_t x[{name}_N_I]; /* raw: {_order(part)} */",
            "example_argument": "x",
            "step_comment": f"/* One step of {name}_N_I raw samples, {limits} */",
            "sketch": "raw" if part.raw_scale is None else "float",
            "sketch_units": "\n".join(_units(part)),
            "missing": f" {MISSING if part.raw_scale is None else 'NaN'} is a missing sample." * part.hold,
            "channels": str(part.channels),
            "order": _order(part),
        },
    )


def _order(part: Samples) -> str:
    """What the numbers of one step are."""
    if part.window == 1:
        return "one sample" if part.channels == 1 else f"one sample of each of the {part.channels} channels"
    samples = f"{part.window} samples in order of time"
    return samples if part.channels == 1 else f"{samples}, all {part.channels} channels of the first sample first"


def _units(part: Samples) -> list[str]:
    """What samples mean, channel by channel."""
    if part.raw_scale is not None:
        return [f"{part.low * unit:.6g} to {part.high * unit:.6g} in units of {unit:.3g}" for unit in part.raw_scale]
    if part.scale is None:
        return []
    rows = zip(part.gain(), part.offset, strict=True)
    return [f"{gain:.6g} * sample + {offset} of a sample in the unit of the training data" for gain, offset in rows]


def _quantize(samples: Samples, name: str) -> dict[str, str]:
    """From floats: a shift of the mantissa where raw units are powers of two, else in double."""
    offset = "" if samples.plain else f" + {name}_input_offset[c]"
    following = "c++" if samples.window == 1 else f"c = c + 1 < {samples.channels}u ? c + 1 : 0"  # no division
    facts = {"name": name, "offset": offset, "next": following, "low": samples.low, "high": samples.high}
    facts |= {"nan": MISSING if samples.hold else samples.low}
    facts |= {"nan_is": f"NaN is missing, {MISSING}" if samples.hold else "NaN gives the lowest"}
    if samples.raw_scale is None:
        kind, facts["gain"] = "quantize_gain", array(f"{name}_gain", samples.gain())
    else:
        exponents = (np.frexp(samples.raw_scale)[1] - 1).astype(np.int8)
        kind, facts["exponents"] = "quantize_shift", array(f"{name}_raw_exponent", exponents)
    held = f"; NaN is a missing one, {MISSING}" if samples.hold else ""
    parts = {"quantize_h": f"{kind}.h", "quantize_c": f"{kind}.c", "replay_floats": "replay_floats.c"}
    found = {word: fill(template, facts) for word, template in parts.items()}
    return found | {
        "quantize_note": f"`{name}_quantize(samples, x)` makes `x` of {samples.n_raw} floats in the units of\n"
        f"the training data, as a sensor gives them{held}.\n\n",
        "replay_x": f"\n#ifndef {name}_NO_QUANTIZE\n    int16_t made[{name}_N_I];\n#endif",
    }


EMITTERS: Final[dict[str, Callable[[Any, str, int], InputCode]]] = {Codes.kind: _codes, Samples.kind: _samples}


def input_code(part: Any, name: str, room: int) -> InputCode:
    """The input in C, with room for so many x_i."""
    return EMITTERS[part.kind](part, name, room)
