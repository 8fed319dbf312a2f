"""Bytes of flash and RAM that the exported C takes, known before it is written: NAME_FLASH_BYTES and NAME_RAM_BYTES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from qornn.integer.layout import DEVICE

if TYPE_CHECKING:
    from qornn.integer.program import IntegerProgram

WORD: Final = 4


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a device holds of a program. Code and stack depend on the compiler: `qornn verify` measures them."""

    flash_bytes: int  # all constants as they lie in flash
    ram_bytes: int  # state and outputs
    steps_max: int  # steps of a mean before its sums are halved; 0 where there is no limit


def memory(program: IntegerProgram) -> Memory:
    """Of the packed layout, the one that is exported."""
    return Memory(
        flash_bytes=_flash(program),
        ram_bytes=-(-_state(program) // WORD) * WORD + WORD * program.n_o,
        steps_max=program.readout.steps_max or 0,
    )


def _flash(program: IntegerProgram) -> int:
    parts = [program.input.fields(program.rooms(DEVICE)[0])]
    parts += [layer.fields(source, DEVICE) for layer, source in program.walk()]
    parts += [program.readout.fields(DEVICE, wide=program.layers[-1].wide_state)]
    return sum(value.nbytes for fields in parts for value in fields.values() if isinstance(value, np.ndarray))


def _state(program: IntegerProgram) -> int:
    """sizeof(NAME_state)."""
    rooms = [*program.rooms(DEVICE), program.n_out if program.readout.pooled else 0]
    kept: dict[int, int] = {}  # how many numbers of each size
    parts = [
        program.input.kept(rooms[0]),
        *(layer.kept(room) for layer, room in zip(program.layers, rooms[1:], strict=True)),
    ]
    parts += [{WORD: program.n_out + 1}] if program.readout.pooled else []
    for part in parts:
        for size, count in part.items():
            kept[size] = kept.get(size, 0) + count
    kept.setdefault(WORD, 1)  # without any, one word makes the arrays begin at whole words
    size = sum(each * count for each, count in kept.items())
    return -(-size // WORD) * WORD
