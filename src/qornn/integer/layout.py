"""W and U as the C runtime reads them (runtime/qornn_planes.h): planes of k-bit rows, bit streams, padded bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qornn.integer.parts import Samples

if TYPE_CHECKING:
    from qornn.integer.program import IntegerProgram

# Widths f of the planes of a k-bit weight, low bits first: each divides 32, at most one of each.
PLANES: Final = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 7: (4, 2, 1), 8: (8,)}
BYTES_GROUP: Final = 4
# Inputs from which rows of U pay, by its bits, None for bytes. From here the Cortex-M4 gains, and the M0 gains or is
# even, in time or in flash. Below, calling a kernel costs more than reading U weight by weight, and below half a group
# a row's padding would take more flash than the row.
LEAST_INPUTS: Final[dict[int | None, int]] = {None: 12, 2: 8, 3: 16, 4: 6, 5: 16, 6: 8, 7: 16, 8: 8}


def group(bits: int | None) -> int:
    """Units a state buffer is padded to a multiple of: packed at that many bits, or None for one byte a weight.

    >>> group(None), group(4), group(7)
    (4, 8, 32)
    """
    return BYTES_GROUP if bits is None else 32 // min(PLANES[bits])


def units(n: int, bits: int | None) -> int:
    """Room for n states or inputs: whole groups.

    >>> units(170, 4), units(17, 7)
    (176, 32)
    """
    return -(-n // group(bits)) * group(bits)


def in_rows(n_i: int, bits: int | None) -> bool:
    """Whether U is stored row by row, for the kernels of W, when a step reads n_i samples.

    >>> in_rows(3, 4), in_rows(48, 4)
    (False, True)
    """
    return n_i >= LEAST_INPUTS[bits]


def U_in_rows(program: IntegerProgram, layout: str) -> bool:
    """The same of a program; a code reads a column."""
    bits = program.U.bits if layout == "packed" else None
    return isinstance(program.input, Samples) and in_rows(program.n_i, bits)


def plane_words(n_h: int, f: int) -> int:
    """32-bit words of one plane of a row."""
    return -(-n_h * f // 32)


def row_words(n_h: int, bits: int) -> int:
    """32-bit words of a packed row.

    >>> row_words(170, 4)
    22
    """
    return sum(plane_words(n_h, f) for f in PLANES[bits])


def pack_rows(W: np.ndarray, bits: int) -> np.ndarray:
    """The planes of every row, one after another.  # (n_h, n) int8 -> (n_h, words) uint32

    Offset binary w + 2^(k−1), low bits first. In a plane of width f, field i of a word's low half is weight 2i of the
    group of 32/f, the same field of its high half weight 2i + 1.
    """
    rows, n = W.shape
    u = W.astype(np.int64) + 2 ** (bits - 1)
    planes = []
    for f in PLANES[bits]:
        words, pairs = plane_words(n, f), 16 // f
        fields = np.zeros((rows, words * 2 * pairs), np.int64)
        fields[:, :n] = u & ((1 << f) - 1)
        u >>= f
        shifts = f * np.arange(pairs)[:, None] + np.array([0, 16])  # (pairs, 2)
        planes.append((fields.reshape(rows, words, pairs, 2) << shifts).sum((2, 3)))
    return np.ascontiguousarray(np.concatenate(planes, 1).astype(np.uint32))


def pack_columns(U: np.ndarray, bits: int) -> np.ndarray:
    """U column by column as one stream of fields u + 2^(k−1), lowest bit first, and one byte to spare.  # -> uint8

    The spare byte lets a field be read as two bytes wherever it lies.
    """
    u = U.T.reshape(-1).astype(np.int64) + 2 ** (bits - 1)
    stream = (u[:, None] >> np.arange(bits)) & 1
    packed = np.packbits(stream.astype(np.uint8).reshape(-1), bitorder="little")
    return np.concatenate([packed, np.zeros(1, np.uint8)])


def pad_rows(W: np.ndarray, multiple: int = BYTES_GROUP) -> np.ndarray:
    """Rows of bytes with zeros up to a multiple of that many.  # (n_h, n) int8 -> (n_h, stride) int8"""
    return np.ascontiguousarray(np.pad(W, ((0, 0), (0, -W.shape[1] % multiple))))


def blocks(W: np.ndarray, rows: int = 16, columns: int = 4) -> np.ndarray:
    """Blocks of 16 rows × 4 columns, a 512-bit register each.  # -> (bands of rows, groups of columns, 16, 4)"""
    n, m = W.shape
    padded = np.pad(W, ((0, -n % rows), (0, -m % columns)))
    return np.ascontiguousarray(
        padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns).transpose(0, 2, 1, 3)
    )
