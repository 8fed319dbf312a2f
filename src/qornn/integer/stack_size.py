"""The bytes of a stack of rotations and mixes, from its shape."""

from __future__ import annotations

from qornn.bits import check_bits
from qornn.errors import SettingsError
from qornn.integer.layers.rotations import LAMBDA_BITS
from qornn.integer.matrices.base import packed_bytes
from qornn.integer.size import FLOAT_BYTES, Size, check_shape

SUM_BITS = 32  # every sum is proved to fit, and a mean over time uses them all


def stack_size(
    n_i: int,
    n_o: int,
    *,
    width: int,
    pairs: int,
    layers: int,
    skip: bool = False,
    bits: int | None = 4,
    bits_V: int | None = None,
    lambda_bits: int | None = None,
    input_bytes: int = 0,
) -> Size:
    """The size of such a network: matrices at k bits, λ, a byte for each shift, biases of 16 bits, b_o of 32.

    A mix some of whose biases do not fit 16 bits takes two bytes more for each. `input_bytes` are those of the
    normalisation. At full precision (`bits=None`) every number takes four bytes, and there are no shifts.

    >>> stack_size(4, 2, width=16, pairs=16, layers=2).true_bytes
    1352
    """
    check_shape(n_i=n_i, n_o=n_o, width=width, pairs=pairs, layers=layers)
    if lambda_bits is not None and lambda_bits not in LAMBDA_BITS:
        raise SettingsError(f"lambda_bits must be in {LAMBDA_BITS[0]}..{LAMBDA_BITS[-1]}, got {lambda_bits!r}")
    k = 8 * FLOAT_BYTES if bits is None else check_bits(bits)
    k_V = k if bits_V is None else check_bits(bits_V)
    mixes = layers + 1
    mixed = [n_i * width] + layers * [2 * pairs * width] + (layers * [width * width] if skip else [])
    driven = layers * [2 * pairs * width]
    matrices = sum(packed_bytes(n, k) for n in (*mixed, *driven)) + packed_bytes(n_o * width, k_V)
    lambdas, rows = 2 * pairs * layers, (2 * pairs + (width if skip else 0)) * layers + width * mixes
    if bits is None:
        others = FLOAT_BYTES * (lambdas + width * mixes + n_o)
    else:
        wide = lambda_bits is not None and lambda_bits > 8
        others = lambdas * (2 if wide else 1) + rows + 2 * width * mixes + FLOAT_BYTES * n_o + input_bytes
    return Size(
        parameters=sum(mixed) + sum(driven) + n_o * width + lambdas,
        paper_bytes=None,  # the paper's formula is of one dense W
        true_bytes=matrices + others,
        accumulator_bits=None if bits is None else SUM_BITS,
    )
