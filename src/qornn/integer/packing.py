"""Integers of few bits side by side: how the arrays of a program lie in its file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from qornn.errors import ProgramError
from qornn.integer import check

LENGTH_LIMIT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Packed:
    """How one array of a part lies in a file: on the part's own bits, or on one as signs."""

    dimensions: int
    signs: bool = False  # ±1, a one for −1

    def stored(self, values: np.ndarray, bits: int) -> np.ndarray:
        """The packed form.  # (bytes,) uint8"""
        return pack((values - 1) // 2, 1) if self.signs else pack(values, bits)

    def restored(self, whose: str, packed: np.ndarray, shape: Any, numbers: Mapping[str, Any]) -> np.ndarray:
        """The inverse of `stored`. The shape is checked against the number of bytes before memory is allocated."""
        if not isinstance(shape, list) or len(shape) != self.dimensions:
            count = "one number" if self.dimensions == 1 else "two numbers"
            raise ProgramError(f"the shape of {whose} must be {count}, got {brief(shape)}")
        sides = [check.number(f"each side of {whose}", n, 1, LENGTH_LIMIT) for n in shape]
        if self.signs:
            return 2 * unpack(packed, 1, math.prod(sides)) + np.int8(1)
        bits = check.number(f"bits of {whose.split('.V')[0]}", numbers.get("bits"), 2, 8)
        return unpack(packed, bits, math.prod(sides)).reshape(sides)


SIGNS: Final = Packed(1, signs=True)


def pack(integers: np.ndarray, bits: int) -> np.ndarray:
    """k-bit two's complement side by side, lowest bit first, row after row, the last byte filled with zeros.

    >>> pack(np.array([1, -1, -4]), 3).tolist()  # 001, 111, 100
    [57, 1]
    """
    low = (integers.astype(np.int16).reshape(-1, 1) & (2**bits - 1)).astype(np.uint8)
    return np.packbits(np.unpackbits(low, axis=1, count=bits, bitorder="little"), bitorder="little")


def unpack(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The `count` integers packed by `pack`; other lengths, and other fillings of the last byte, are refused."""
    size = -(-count * bits // 8)
    if packed.shape != (size,):
        raise ProgramError(f"{count} integers of {bits} bits take {size} bytes, got {packed.dtype}{packed.shape}")
    stream = np.unpackbits(packed, bitorder="little")
    if stream[count * bits :].any():
        raise ProgramError("the bits that fill the last byte of packed integers must be zero")
    low = np.packbits(stream[: count * bits].reshape(count, bits), axis=1, bitorder="little")[:, 0].astype(np.int16)
    sign = 2 ** (bits - 1)
    return ((low ^ sign) - sign).astype(np.int8)


def brief(value: Any) -> str:
    """A short text of a value from a file, which may be anything, of any length."""
    names = ", ".join(map(str, value)) if isinstance(value, dict) else repr(value)
    return names if len(names) <= 80 else names[:77] + "..."
