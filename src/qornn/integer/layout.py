"""W, U and V as the C runtime reads them (runtime/qornn.h): planes of k-bit rows, bit streams, words, padded bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

# The fields of a part's C struct, by name: arrays, numbers, and names of C constants.
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """How arrays are stored: `packed` or one byte per weight, for a device or for the wide registers of a host."""

    packed: bool
    host: bool


DEVICE: Final = Layout(packed=True, host=False)
HOST: Final = {"bytes": Layout(packed=False, host=True), "packed": Layout(packed=True, host=True)}
HOST_UNITS: Final = 64  # QORNN_HOST_UNITS
ON_STACK: Final = 64  # QORNN_ON_STACK: more sums than these lie in the state
SPARE_WORDS: Final = 8  # a wide load at the last packed row's end

# Widths f of the planes of a k-bit weight, low bits first: each divides 32, at most one of each.
PLANES: Final = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 7: (4, 2, 1), 8: (8,)}
BYTES_GROUP: Final = 4
# Inputs from which packed rows of U pay, by its bits. From here the Cortex-M4 gains, and the M0 gains or is even, in
# time or in flash. Below, calling a kernel costs more than reading U weight by weight, and below half a group a row's
# padding would take more flash than the row.
LEAST_INPUTS: Final = {2: 8, 3: 16, 4: 6, 5: 16, 6: 8, 7: 16, 8: 8}
WORD_BITS: Final = (2, 4, 8)  # of U in words: they divide 32


def group(bits: int) -> int:
    """Units a state buffer is padded to a multiple of, for weights packed at that many bits.

    >>> group(4), group(7)
    (8, 32)
    """
    return 32 // min(PLANES[bits])


def units(n: int, bits: int) -> int:
    """Room for n states or inputs: whole groups.

    >>> units(170, 4), units(17, 7)
    (176, 32)
    """
    return -(-n // group(bits)) * group(bits)


def in_rows(n_i: int, bits: int) -> bool:
    """Whether U is stored row by row, for the kernels of W, when a step reads n_i numbers.

    >>> in_rows(3, 4), in_rows(48, 4)
    (False, True)
    """
    return n_i >= LEAST_INPUTS[bits]


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


def pack_stream(rows: np.ndarray, bits: int) -> np.ndarray:
    """Row by row as one stream of fields v + 2^(k−1), lowest bit first.  # -> uint8"""
    v = rows.reshape(-1).astype(np.int64) + 2 ** (bits - 1)
    stream = (v[:, None] >> np.arange(bits)) & 1
    return np.packbits(stream.astype(np.uint8).reshape(-1), bitorder="little")


def pack_columns(U: np.ndarray, bits: int) -> np.ndarray:
    """U column by column as one stream, and one byte to spare: a field is read as two bytes wherever it lies."""
    return np.concatenate([pack_stream(U.T, bits), np.zeros(1, np.uint8)])


def pack_words(U: np.ndarray, bits: int) -> np.ndarray:
    """Two's complement fields in words, lowest bit first, each column in whole words.  # -> (n_i, words) uint32

    >>> [hex(word) for word in pack_words(np.array([[1], [-1], [2]]), 4)[0]]
    ['0x2f1']
    """
    per = 32 // bits
    columns = np.pad(U.T.astype(np.int64), ((0, 0), (0, -len(U) % per))) & (2**bits - 1)
    fields = columns.reshape(len(columns), -1, per) << (bits * np.arange(per))
    return np.ascontiguousarray(fields.sum(2).astype(np.uint32))


def pack_signs(signs: np.ndarray) -> np.ndarray:
    """A bit for every sign, set where it is negative, lowest first.  # (n,) -> (⌈n/8⌉,) uint8"""
    return np.packbits(signs < 0, bitorder="little")


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


def pairs(W: np.ndarray, rows: int = 16) -> np.ndarray:
    """Blocks of 16 rows × 2 columns of 16 bits, as qornn_pairs.h wants them.  # -> (bands of rows, pairs, 16, 2)"""
    return blocks(W.astype(np.int16), rows, 2)


def aligned(array: np.ndarray, boundary: int = 64) -> np.ndarray:
    """The same bytes starting at a multiple of `boundary`: a register's load must not straddle two cache lines."""
    room = np.empty(array.nbytes + boundary, np.uint8)
    start = -room.ctypes.data % boundary
    moved: Any = room[start : start + array.nbytes].view(array.dtype)
    moved[:] = array.reshape(-1)
    return moved
