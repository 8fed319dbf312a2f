"""What a network with a structured W weighs and costs, from its shape alone: nothing is stored of W but signs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qornn import structure
from qornn.bits import check_bits
from qornn.errors import unknown
from qornn.integer.matrix import packed_bytes
from qornn.integer.parts import Codes
from qornn.integer.size import FLOAT_BYTES, Product, Size, Step, _check_range, _check_shape, complexity, size
from qornn.integer.structured import Structured

if TYPE_CHECKING:
    from qornn.integer.program import IntegerProgram


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
    _check_shape(n_i=n_i, n_h=n_h, n_o=n_o)
    _check_range("activation_bits", activation_bits)
    signs, growth = _W(map, n_h, block, lines)
    driven = lines if map == "delay" else n_h
    k_U, k_V = (_width(bits if own is None else own) for own in (bits_U, bits_V))
    floats = n_o + (n_h if bias and map not in ("cycle", "delay") else 0)  # b_o, and b in the loop
    floats += sum(k < 8 * FLOAT_BYTES for k in (k_U, k_V))  # their scales
    return Size(
        parameters=driven * n_i + n_h * n_o,
        paper_bytes=(driven * n_i * k_U + n_h * n_o * k_V) / 8,
        true_bytes=signs + packed_bytes(driven * n_i, k_U) + packed_bytes(n_h * n_o, k_V) + FLOAT_BYTES * floats,
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
    """Operations a time step: W h takes additions alone."""
    _check_shape(n_i=n_i, n_h=n_h)
    _W(map, n_h, block, lines)
    additions = {
        "hadamard": n_h * (n_h.bit_length() - 1),
        "hadamard-block": n_h * (block.bit_length() - 1),
        "cycle": 0,
        "delay": lines * (lines.bit_length() - 1),
    }
    driven = lines if map == "delay" else n_h
    operands = "FP" if bits is None else f"{bits}x{input_bits} bits"
    read = Product(0, driven, "none") if one_hot else Product(n_i * driven, n_i * driven, operands)
    return {"structured": Step(read, Product(0, additions[map], "none"))}


def of_program(p: IntegerProgram) -> tuple[Size, dict[str, Step]]:
    """By the formulas, for a program of any kind: its size, and the operations of a step."""
    one_hot = isinstance(p.input, Codes)
    if not isinstance(p.W, Structured):
        bits: dict[str, Any] = {"bits": p.W.bits, "bits_U": p.U.bits, "activation_bits": p.state.bits}
        return size(p.n_i, p.n_h, p.n_o, **bits), complexity(
            p.n_i, p.n_h, **bits, input_bits=p.input.bits, one_hot=one_hot
        )
    shape = {"block": getattr(p.W, "block", 16), "lines": 16 if p.W.driven is None else len(p.W.driven)}
    map_ = "hadamard-block" if p.W.kind == "hadamard" and shape["block"] < p.n_h else p.W.kind
    bits_V = getattr(p.readout, "bits", None)
    return structured_size(
        map_,
        p.n_i,
        p.n_h,
        p.n_o,
        bits=p.U.bits,
        bits_V=bits_V,
        bias=p.bias is not None,
        activation_bits=p.state.bits,
        **shape,
    ), structured_step(map_, p.n_i, p.n_h, bits=p.U.bits, input_bits=p.input.bits, one_hot=one_hot, **shape)


def _W(map: str, n_h: int, block: int, lines: int) -> tuple[int, int]:
    """Bytes of its signs, and how many times larger than a state a sum can get."""
    if map == "hadamard":
        structure.check_power(n_h, 2, "n_h of map='hadamard'")
        return packed_bytes(n_h, 1), n_h
    if map == "hadamard-block":
        structure.check_block(n_h, block)
        return packed_bytes(n_h, 1), block
    if map == "cycle":
        structure.check_cycle(n_h)
        return 0, 1
    if map == "delay":
        structure.check_lines(n_h, lines)
        return packed_bytes(lines, 1), lines
    raise unknown("map", map, structure.MAPS)


def _width(bits: int | None) -> int:
    return 8 * FLOAT_BYTES if bits is None else check_bits(bits)
