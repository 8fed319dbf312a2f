"""The readout in NAME.h and NAME.c: what it keeps between steps, what a step does for it, and the outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qornn.export.c99.arrays import literal
from qornn.export.c99.folder import fill
from qornn.export.c99.layers import Code, Member, cleared
from qornn.integer.program import IntegerProgram


@dataclass(frozen=True, kw_only=True)
class ReadoutCode:
    """A readout in C."""

    read: str  # an expression: number j of what is read out, of the NAME_state that s points to
    n_read: int
    words: dict[str, str]  # of the templates
    members: list[Member] = field(default_factory=list)  # of NAME_state
    clear: list[str] = field(default_factory=list)  # lines: before a sequence
    step: str = ""  # a line of NAME_step, after the layers; @h@ is what the last one gives


def readout_code(program: IntegerProgram, name: str, last: Code) -> ReadoutCode:
    """The outputs of the state as it is, or of the mean of all steps."""
    exact, several = program.readout.exact, program.n_o > 1
    words = {"name": name, "y_type": "int32_t" if exact else "float"}
    words["classify_h"] = fill("classify.h", words) if several else ""
    words["answered"] = f"\n{name}_classify(&s);           /* the number of the largest output: the class */" * several
    words["classify_c"] = fill("classify.c", words) if several else ""
    if program.readout.pooled:
        return _mean(program, name, words)
    mix = "mix_" if program.readout.mix else ""
    kind = f"{mix}{'int' if exact else 'float'}{'_wide' if last.unit == 'int32_t' else ''}"
    plus = f", plus {program.readout.offset!r}," if program.readout.offset else ""
    scale = f"; times {program.readout.scale!r}{plus} they are in the network's own units" if exact else ""
    return ReadoutCode(
        read=f"{last.states}[j]",
        n_read=program.n_out,
        words=words
        | {
            "predict": f"qornn_read_{kind}(&{name}_readout, {name}_STATES(s), y);",
            "outputs_of": "the state as it is" + scale,
            "float_note": ", no float" if exact else "",
            "steps_max": "",
            "hash_read": "",
            "values_h": "",
            "values_c": "",
        },
    )


def _mean(program: IntegerProgram, name: str, words: dict[str, str]) -> ReadoutCode:
    """Sums and their count lie in the state. Values divide once, in float32."""
    n, tiny, largest = program.n_out, np.finfo(np.float32).tiny, np.finfo(np.float32).max
    words |= {"scale": literal(np.float32(np.clip(program.readout.scale, tiny, largest)))}
    offset = np.float32(np.clip(program.readout.offset, -largest, largest))
    words |= {"offset": f" + {literal(offset)}" if offset else ""}
    return ReadoutCode(
        read=f"(j < {n}u ? (s)->sums[j] : (int32_t)(s)->count)",
        n_read=n + 1,
        words=words
        | {
            "predict": f"qornn_read_mean(&{name}_readout, s->sums, s->count, y);",
            "outputs_of": f"all steps since {name}_init, V sum h + T b_o: {name}_values divides them",
            "float_note": f", no float but in `{name}_values`",
            "steps_max": f"#define {name}_STEPS_MAX {program.readout.steps_max} /* then sums and T are halved */\n",
            "hash_read": fill("hash_read.c", words),
            "values_h": fill("values.h", words),
            "values_c": fill("values.c", words),
        },
        members=[Member(type="int32_t", name="sums", shape=(n,)), Member(type="uint32_t", name="count")],
        clear=["s->count = 0;", *cleared("sums", n)],
        step=f"qornn_mean_add(&{name}_readout, @h@, s->sums, &s->count);",
    )
