"""Integers of few bits side by side: how the arrays of a program lie in its file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from qornn.errors import ProgramError
from qornn.integer import check
from qornn.integer.matrix import Dense, Matrix, packed_bytes
from qornn.integer.parts import IntReadout
from qornn.integer.structured import Delay, Hadamard

LENGTH_LIMIT: Final = 2**31 - 1
SIGN_BITS: Final = 1  # a one for −1
WHOLE: Final = 8  # V of so many bits lies as it is

# Packed fields and their dimensions. The file says the shape under the field's name (of integers: as "shape").
PACKED: Final[dict[type, dict[str, int]]] = {
    Dense: {"integers": 2},
    Matrix: {"integers": 2},
    IntReadout: {"V": 2},
    Hadamard: {"signs": 1},
    Delay: {"signs": 1},
}


def packed_fields(cls: type, bits: object) -> dict[str, int]:
    """The packed fields of a part whose integers have so many bits, and their dimensions."""
    return {} if cls is IntReadout and bits == WHOLE else PACKED.get(cls, {})


def shape_key(field: str) -> str:
    """Where the file says the shape of a packed field."""
    return "shape" if field == "integers" else field


def stored(part: Any, field: str) -> np.ndarray:
    """The packed form of a field.  # (bytes,) uint8"""
    values = getattr(part, field)
    if field == "signs":
        return pack((values - 1) // 2, SIGN_BITS)
    return pack(values, part.bits)


def restored(name: str, field: str, packed: np.ndarray, shape: Any, numbers: Mapping[str, Any]) -> np.ndarray:
    """What `stored` packed; the shape is held against the bytes that are there before anything is made."""
    dimensions, whose = 1 if field == "signs" else 2, name if field == "integers" else f"{name}.{field}"
    if not isinstance(shape, list) or len(shape) != dimensions:
        count = "one number" if dimensions == 1 else "two numbers"
        raise ProgramError(f"the shape of {whose} must be {count}, got {brief(shape)}")
    sides = [check.number(f"each side of {whose}", n, 1, LENGTH_LIMIT) for n in shape]
    if field == "signs":
        return 2 * unpack(packed, SIGN_BITS, math.prod(sides)) + np.int8(1)
    bits = check.number(f"bits of {name}", numbers.get("bits"), 2, 8)
    return unpack(packed, bits, math.prod(sides)).reshape(sides)


def pack(integers: np.ndarray, bits: int) -> np.ndarray:
    """k-bit two's complement side by side, lowest bit first, row after row, the last byte filled with zeros.

    >>> pack(np.array([1, -1, -4]), 3).tolist()  # 001, 111, 100
    [57, 1]
    """
    low = (integers.astype(np.int16).reshape(-1, 1) & (2**bits - 1)).astype(np.uint8)
    return np.packbits(np.unpackbits(low, axis=1, count=bits, bitorder="little"), bitorder="little")


def unpack(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The `count` integers packed by `pack`; other lengths, and other fillings of the last byte, are refused."""
    if packed.shape != (packed_bytes(count, bits),):
        raise ProgramError(
            f"{count} integers of {bits} bits take {packed_bytes(count, bits)} bytes, got {packed.dtype}{packed.shape}"
        )
    stream = np.unpackbits(packed, bitorder="little")
    if stream[count * bits :].any():
        raise ProgramError("the bits that fill the last byte of packed integers must be zero")
    low = np.packbits(stream[: count * bits].reshape(count, bits), axis=1, bitorder="little")[:, 0].astype(np.int16)
    sign = 2 ** (bits - 1)
    return ((low ^ sign) - sign).astype(np.int8)


def brief(value: Any) -> str:
    """What was found, in few words: it may be anything, of any length."""
    names = ", ".join(map(str, value)) if isinstance(value, dict) else repr(value)
    return names if len(names) <= 80 else names[:77] + "..."
