"""The bytes and operations of a network with a structured W, from its shape: only signs of W are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from qornn import structure
from qornn.bits import check_bits
from qornn.errors import unknown
from qornn.integer.matrices.base import RecurrentMatrix, packed_bytes
from qornn.integer.matrices.cycle import Cycle
from qornn.integer.matrices.delay import Delay
from qornn.integer.matrices.hadamard import Hadamard
from qornn.integer.size import FLOAT_BYTES, Product, Size, Step, check_range, check_shape


def structured_size(
    map: str,
    n_i: int,
    n_h: int,
    n_o: int,
    *,
    bits: int | None,
    bits_U: int | None = None,
    bits_V: int | None = None,
    block: int = 16,
    lines: int = 16,
    bias: bool = True,
    activation_bits: int = 12,
) -> Size:
    """The size of such a network: U and V at k bits, signs, biases and scales.

    >>> structured_size("hadamard", 1, 512, 10, bits=4).true_bytes
    4976
    """
    check_shape(n_i=n_i, n_h=n_h, n_o=n_o)
    W, biased = _W(map, n_h, block, lines)
    k_U, k_V = (bits if own is None else own for own in (bits_U, bits_V))
    return size_around(W, n_i, n_o, bits=k_U, bits_V=k_V, bias=bias and biased, activation_bits=activation_bits)


def size_around(
    W: RecurrentMatrix, n_i: int, n_o: int, *, bits: int | None, bits_V: int | None, bias: bool, activation_bits: int
) -> Size:
    """The size of a network with this W, whose U and V have so many bits."""
    check_range("activation_bits", activation_bits)
    driven = W.n_h if W.driven is None else len(W.driven)
    k_U, k_V = _width(bits), _width(bits_V)
    floats = n_o + (W.n_h if bias else 0)  # b_o, and b in the loop
    floats += sum(k < 8 * FLOAT_BYTES for k in (k_U, k_V))  # their scales
    matrices = packed_bytes(driven * n_i, k_U) + packed_bytes(W.n_h * n_o, k_V)
    growth = int(W.row_sums().max())  # how many times larger than a state a sum can get
    return Size(
        parameters=driven * n_i + W.n_h * n_o,
        paper_bytes=(driven * n_i * k_U + W.n_h * n_o * k_V) / 8,
        true_bytes=W.stored_bytes + matrices + FLOAT_BYTES * floats,
        accumulator_bits=None if bits is None else growth.bit_length() - 1 + activation_bits,
    )


def structured_step(
    map: str,
    n_i: int,
    n_h: int,
    *,
    bits: int | None,
    block: int = 16,
    lines: int = 16,
    input_bits: int = 9,
    one_hot: bool = False,
) -> dict[str, Step]:
    """Operations of a time step: W h takes additions alone."""
    check_shape(n_i=n_i, n_h=n_h)
    W, _ = _W(map, n_h, block, lines)
    return step_around(W, n_i, bits=bits, input_bits=input_bits, one_hot=one_hot)


def step_around(W: RecurrentMatrix, n_i: int, *, bits: int | None, input_bits: int, one_hot: bool) -> dict[str, Step]:
    """Operations of a time step of a network with this W."""
    driven = W.n_h if W.driven is None else len(W.driven)
    operands = "FP" if bits is None else f"{bits}x{input_bits} bits"
    read = Product(0, driven, "none") if one_hot else Product(n_i * driven, n_i * driven, operands)
    return {"structured": Step(read, Product(0, sum(W.work().values()), "none"))}


def _hadamard(n: int, block: int, lines: int) -> RecurrentMatrix:
    structure.check_power(n, 2, "n_h of map='hadamard'")
    return Hadamard(signs=_ones(n), block=n)


def _blocks(n: int, block: int, lines: int) -> RecurrentMatrix:
    structure.check_block(n, block)
    return Hadamard(signs=_ones(n), block=block)


def _cycle(n: int, block: int, lines: int) -> RecurrentMatrix:
    structure.check_cycle(n)
    return Cycle(units=n)


def _delay(n: int, block: int, lines: int) -> RecurrentMatrix:
    structure.check_lines(n, lines)
    return Delay(units=n, signs=_ones(lines))


# The W of each map, and whether its recurrence has a bias.
BY_MAP: Final[dict[str, tuple[Callable[[int, int, int], RecurrentMatrix], bool]]] = {
    "hadamard": (_hadamard, True),
    "hadamard-block": (_blocks, True),
    "cycle": (_cycle, False),
    "delay": (_delay, False),
}


def _W(map: str, n_h: int, block: int, lines: int) -> tuple[RecurrentMatrix, bool]:
    """A W of that shape; its signs weigh the same whatever they are."""
    if map not in BY_MAP:
        raise unknown("structured map", map, structure.MAPS)
    make, biased = BY_MAP[map]
    return make(n_h, block, lines), biased


def _ones(n: int) -> Any:
    return np.ones(n, np.int8)


def _width(bits: int | None) -> int:
    return 8 * FLOAT_BYTES if bits is None else check_bits(bits)
