"""The bytes of a network and the operations per step, from its shape (paper, tables of sizes and of complexity)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qornn.bits import check_bits
from qornn.errors import SettingsError, unknown
from qornn.integer.matrices.base import packed_bytes

KB: Final = 1024  # the paper's kilobyte
FLOAT_BYTES: Final = 4
SCALES: Final = ("tensor", "row")
GATES: Final = {  # of a baseline: matrices of either kind, biases per unit, single numbers
    "rnn": (1, 2, 0),
    "lstm": (4, 8, 0),
    "gru": (3, 6, 0),
    "fastrnn": (1, 1, 2),
    "fastgrnn": (1, 2, 2),
}
ACTIVATIONS: Final = ("relu", "modrelu", "identity", "tanh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The memory of one network."""

    parameters: int  # n_h^2 + n_h n_i + n_h n_o, as the paper counts them
    paper_bytes: float | None  # the paper's formula, which does not round to whole bytes; None where it has none
    true_bytes: int  # everything that must be stored
    accumulator_bits: int | None  # None at full precision

    @property
    def paper_kB(self) -> float | None:
        return None if self.paper_bytes is None else self.paper_bytes / KB

    @property
    def true_kB(self) -> float:
        return self.true_bytes / KB


@dataclass(frozen=True, slots=True)
class Product:
    """One matrix-vector product; `operands` says between what its multiplications are."""

    mult: int
    add: int
    operands: str


@dataclass(frozen=True, slots=True)
class Step:
    """The two products of a time step."""

    input: Product
    recurrent: Product


def size(
    n_i: int,
    n_h: int,
    n_o: int,
    *,
    bits: int | None,
    bits_U: int | None = None,
    scale: str = "tensor",
    activation: str = "relu",
    activation_bits: int = 12,
) -> Size:
    """The size of a network by the paper's formula, and as stored.

    paper = (n_h² + n_h n_i)·k/8 + 4 n_o n_h bytes, with k = 32 at full precision (`bits=None`).
    The stored size adds what the formula leaves out: b_o, the bias of modReLU, the alphas, and the rounding of W and U
    to whole bytes.

    >>> pmnist = size(1, 170, 10, bits=4)
    >>> f"{pmnist.paper_kB:.1f} kB by the formula, {pmnist.true_bytes} bytes stored"
    '20.8 kB by the formula, 21383 bytes stored'
    """
    check_shape(n_i=n_i, n_h=n_h, n_o=n_o)
    if bits is not None:
        check_bits(bits)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if activation not in ACTIVATIONS:
        raise unknown("activation", activation, ACTIVATIONS)
    k = 8 * FLOAT_BYTES if bits is None else bits
    k_U = k if bits_U is None else check_bits(bits_U)
    V = FLOAT_BYTES * n_o * n_h
    floats = n_o + (n_h if activation == "modrelu" else 0)  # b_o and b
    if bits is not None:
        floats += 2 * (n_h if scale == "row" else 1)  # alpha_W and alpha_U
    return Size(
        parameters=n_h * (n_h + n_i + n_o),
        paper_bytes=n_h * (n_h * k + n_i * k_U) / 8 + V,
        true_bytes=packed_bytes(n_h * n_h, k) + packed_bytes(n_h * n_i, k_U) + V + FLOAT_BYTES * floats,
        accumulator_bits=accumulator_bits(n_h, bits, activation_bits),
    )


def baseline_size(kind: str, n_i: int, n_h: int, n_o: int, *, bits: int | None, scale: str = "tensor") -> Size:
    """The size of a baseline: its matrices at k bits, V and the biases in float32.

    paper = gates·(n_h² + n_h n_i)·k/8 + 4 n_o n_h bytes, as for ours. The stored size adds biases, b_o and alphas.
    torch's cells have two biases per gate; the two matrices of a FastGRNN serve both of its gates.

    >>> baseline_size("lstm", 1, 170, 10, bits=None).parameters
    117980
    """
    check_shape(n_i=n_i, n_h=n_h, n_o=n_o)
    if kind not in GATES:
        raise unknown("baseline", kind, GATES)
    gates, biases, scalars = GATES[kind]
    k = 8 * FLOAT_BYTES if bits is None else check_bits(bits)
    V = FLOAT_BYTES * n_o * n_h
    matrices = gates * n_h * (n_h + n_i)
    floats = n_o + biases * n_h + scalars
    if bits is not None:
        floats += 2 * (gates * n_h if scale == "row" else 1)
    return Size(
        parameters=matrices + n_h * n_o,
        paper_bytes=matrices * k / 8 + V,
        true_bytes=packed_bytes(gates * n_h * n_h, k) + packed_bytes(gates * n_h * n_i, k) + V + FLOAT_BYTES * floats,
        accumulator_bits=None,
    )


def accumulator_bits(n_h: int, bits: int | None, activation_bits: int = 12) -> int | None:
    """Bits that always hold Σ_j W_int[i, j] h_int[j]: ⌈log2 n_h⌉ + k + k_a − 1; None at full precision.

    This is the loose form, from the shape alone: the true integers of a network usually need fewer.
    """
    check_shape(n_h=n_h)
    if bits is not None:
        check_bits(bits)
    check_range("activation_bits", activation_bits)
    if bits is None:
        return None
    return (n_h - 1).bit_length() + bits + activation_bits - 1


def complexity(
    n_i: int,
    n_h: int,
    *,
    bits: int | None,
    bits_U: int | None = None,
    activation_bits: int = 12,
    input_bits: int = 9,
    one_hot: bool = False,
) -> dict[str, Step]:
    """Operations per time step, by column of the paper's table (Computational complexity).

    `full_precision` always; with bits also `quantized_weights`, where W_q is a sum of k binary matrices
    (−2^(k−1) B_{k−1} + Σ 2^i B_i)·alpha/2^(k−1) and only that factor is multiplied, and `fully_quantized`.
    With `one_hot` the input product of these two is n_h multiplications and (k_i − 1)(n_i − 1) n_h additions, as the
    paper states it (k_i = 2 is enough then), and `column_read` is what a device needs instead: to add one column of U.
    """
    check_shape(n_i=n_i, n_h=n_h)
    if bits is not None:
        check_bits(bits)
    check_range("activation_bits", activation_bits)
    check_range("input_bits", input_bits)
    dense = Step(Product(n_i * n_h, n_i * n_h, "FP"), Product(n_h * n_h, n_h * n_h, "FP"))
    if bits is None:
        return {"full_precision": dense}
    k_U = bits if bits_U is None else check_bits(bits_U)
    recurrent = Product(n_h * n_h, n_h * n_h, f"{bits}x{activation_bits} bits")
    weights = Step(Product(n_h, k_U * n_i * n_h, "FP"), Product(n_h, bits * n_h * n_h, "FP"))
    full = Step(Product(n_i * n_h, n_i * n_h, f"{k_U}x{input_bits} bits"), recurrent)
    if not one_hot:
        return {"full_precision": dense, "quantized_weights": weights, "fully_quantized": full}
    additions = (input_bits - 1) * (n_i - 1) * n_h
    return {
        "full_precision": dense,
        "quantized_weights": Step(Product(n_h, additions, "FP"), weights.recurrent),
        "fully_quantized": Step(Product(n_h, additions, full.input.operands), recurrent),
        "column_read": Step(Product(0, n_h, "none"), recurrent),
    }


def check_shape(**shape: int) -> None:
    """Refuse widths that are not positive whole numbers."""
    for name, n in shape.items():
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise SettingsError(f"{name} must be a whole number of at least 1, got {n!r}")


def check_range(name: str, bits: int) -> None:
    """Refuse bits that no state or input has."""
    if isinstance(bits, bool) or not isinstance(bits, int) or not 2 <= bits <= 16:
        raise SettingsError(f"{name} must be in 2..16, got {bits!r}")
