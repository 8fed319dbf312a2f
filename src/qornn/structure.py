"""What structured matrices are made of: signs, Sylvester's matrix and delay lines, in numpy alone.

Training (maps/) and the integers (integer/structured.py) read the same definitions here.
"""

from __future__ import annotations

import numpy as np

from qornn.errors import SettingsError

MAPS = ("hadamard", "hadamard-block", "cycle", "delay")  # the maps of such matrices
WARM = 16  # draws thrown away: seeds that differ in one bit start alike


def signs(n: int, seed: int) -> np.ndarray:
    """n signs that depend on the seed alone: the top bit of Marsaglia's xorshift32.  # (n,) int8

    >>> signs(8, 0).tolist()
    [1, 1, 1, -1, -1, -1, 1, 1]
    """
    state, found = (seed ^ 0x9E3779B9) or 1, []
    for _ in range(n + WARM):
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        found.append(-1 if state >> 31 else 1)
    return np.array(found[WARM:], np.int8)


def transform(x: np.ndarray) -> np.ndarray:
    """S x along the last axis, S Sylvester's matrix (S_1 = 1, S_2n = [[S, S], [S, −S]]), by log2 n additions.

    >>> transform(np.array([1, 0, 0, 2])).tolist()
    [3, -1, -1, 3]
    """
    shape, n, apart = x.shape, x.shape[-1], 1
    while apart < n:
        pairs = x.reshape(*shape[:-1], n // (2 * apart), 2, apart)
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        x = np.stack([a + b, a - b], -2).reshape(shape)
        apart *= 2
    return x


def transposition(n: int, block: int) -> np.ndarray:
    """Where row i of P h comes from: the n/block × block table of h read by columns.  # (n,)

    What one block puts out goes to different blocks: without P they would never mix.
    """
    return np.arange(n).reshape(n // block, block).T.reshape(-1)


def line_starts(n: int, lines: int) -> np.ndarray:
    """The first unit of every delay line, and n: lengths all differ and are as even as that allows.  # (lines + 1,)

    >>> np.diff(line_starts(40, 4)).tolist()
    [8, 9, 11, 12]
    """
    base, extra = divmod(n - lines * (lines - 1) // 2, lines)
    if base < 1:
        least = lines * (lines + 1) // 2
        raise SettingsError(
            f"{lines} delay lines of different lengths need n_h of at least {least}, got {n}; take more units, "
            "or fewer lines, as in lines=4 (model.map_options.lines=4 in a recipe)"
        )
    lengths = [base + i + (i >= lines - extra) for i in range(lines)]
    return np.cumsum([0, *lengths])


def check_power(n: int, base: int, what: str) -> int:
    """The m ≥ 1 with base^m = n, or an error that names the nearest sizes."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise SettingsError(f"{what} must be a power of {base}, got {n!r}")
    m, size = 0, 1
    while size < n:
        size *= base
        m += 1
    if size == n and m:
        return m
    near = " or ".join(dict.fromkeys(str(max(size, base)) for size in (size // base, size)))
    raise SettingsError(f"{what} must be a power of {base}, got {n}; the nearest: {near}")


def check_cycle(n: int) -> None:
    """Refuse a ring of one."""
    if n < 2:
        raise SettingsError(f"map='cycle' needs at least two units, got n_h={n}")


def check_lines(n: int, lines: int) -> None:
    """Refuse numbers of delay lines that have no whole root, or too few units for them."""
    check_power(lines, 4, "the number of lines of map='delay'")
    line_starts(n, lines)


def check_block(n: int, block: int) -> None:
    """Refuse blocks that do not divide n."""
    check_power(block, 2, "the block of map='hadamard-block'")
    if n % block:
        below = n // block * block
        sizes = " or ".join(str(size) for size in (below, below + block) if size)
        raise SettingsError(
            f"map='hadamard-block' needs n_h to be a multiple of block={block}, got {n}; take {sizes}, or another block"
        )
