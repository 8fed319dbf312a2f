"""Layers whose every scale is a power of two: what they requantize by shifts alone."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qornn.errors import ProgramError
from qornn.integer import check
from qornn.integer.layout import Fields, Layout, aligned, pack_columns, pack_rows, pairs, units
from qornn.integer.matrices import Matrix
from qornn.integer.requant import LIMIT
from qornn.integer.state import Source, Units

SHIFTS: Final = (-31, 31)  # of 32-bit sums


def exponents(name: str, scale: Any, shape: tuple[int, ...]) -> np.ndarray:
    """log2 of scales, which must be powers of two.  # -> int64"""
    scale = np.asarray(scale, np.float64)
    if scale.shape != shape:
        raise ProgramError(f"{name} must have shape {shape}, got {scale.shape}")
    with np.errstate(invalid="ignore"):
        mantissa, exponent = np.frexp(scale)
    if not (mantissa == 0.5).all():
        raise ProgramError(f"{name} must be powers of two, got {scale[mantissa != 0.5].flat[0]!r}")
    return exponent.astype(np.int64) - 1


def matrix(name: str, integers: np.ndarray, bits: int, unit: np.ndarray) -> Matrix:
    """The matrix whose rows have these values of one unit."""
    rows = np.asarray(integers)
    if rows.ndim != 2:
        raise ProgramError(f"{name} must be a matrix, got shape {rows.shape}")
    return Matrix(integers=rows, bits=bits, alpha=unit * 2.0 ** (bits - 1))


def check_step(name: str, source: Source | None, step: float) -> None:
    """Refuse a layer that was trained on another grid than its source has; an input is made to fit."""
    if isinstance(source, Units) and source.step != step:
        raise ProgramError(
            f"{name} had steps of {float(step):g} in training, and the layer before gives steps of {source.step:g}; "
            "lower the whole network at once"
        )


def shifts(name: str, value: Any, rows: int) -> np.ndarray:
    """One shift for each row.  # (rows,) int8"""
    return check.integers(name, value, np.int8, (rows,), *SHIFTS)


def left(sums: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """sums·2^max(shift, 0)"""
    return sums << np.maximum(shift, 0).astype(np.int64)


def largest(bounds: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The same as `left`, for bounds, in Python's integers: int64 could overflow before the bounds are proved."""
    return bounds.astype(object) << np.maximum(shift, 0).astype(object)


def half_of(shift: np.ndarray) -> np.ndarray:
    """What rounding adds before a shift to the right; 0 where there is none.  # -> int64"""
    return np.where(shift > 0, np.int64(1) << np.maximum(shift.astype(np.int64) - 1, 0), 0)


def rounded(sums: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """R(v, s) = sign(v)·((|v| + 2^(s−1)) » s): ties away from zero; R(v, 0) = v.  # shift (n,), not negative"""
    return np.sign(sums) * ((np.abs(sums) + half_of(shift)) >> shift.astype(np.int64))


def check_width(name: str, matrix: Matrix, source: Source) -> None:
    """Refuse a matrix of another width than what it multiplies."""
    if (width := matrix.integers.shape[1]) != source.n_i:
        raise ProgramError(f"{name} reads {width} numbers, and is given {source.n_i}")


def check_sums(bounds: tuple[np.ndarray, ...], what: str) -> None:
    """Refuse sums that 32 bits do not hold."""
    if (largest := int(max(bound.max() for bound in bounds))) >= LIMIT:
        raise ProgramError(
            f"a sum of this layer can reach {largest}, but the 32-bit accumulator holds at most {LIMIT - 1} ({what}); "
            "use fewer state bits, weight bits or input bits, or train with coarser steps"
        )


def laid_out(name: str, matrix: Matrix, source: Source, layout: Layout, parts: int = 1) -> Fields:
    """A matrix as C reads it: row by row, or where codes select them column by column; `parts` of its rows apart."""
    W = matrix.integers
    if not layout.packed:
        rows = [pairs(part) for part in np.split(W, parts)] if source.multiplied else []
        wide = {f"{name}_pairs": aligned(np.concatenate(rows))} if rows else {}
        return {f"{name}_bytes": np.ascontiguousarray(W.T), **wide}
    if source.multiplied:
        return {f"{name}_planes": pack_rows(W, matrix.bits)}
    return {f"{name}_packed": pack_columns(W, matrix.bits)}


def room_for(matrix: Matrix, source: Source, layout: Layout) -> int:
    """Numbers that the kernels of a matrix read: whole groups where it is packed, else pairs."""
    if not source.multiplied:
        return 0
    return units(source.n_i, matrix.bits) if layout.packed else source.n_i + source.n_i % 2
