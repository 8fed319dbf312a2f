"""How the parts of a program check themselves: type, shape and range of every array, or an error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from qornn.errors import ProgramError

if TYPE_CHECKING:
    from qornn.integer.packing import Packed

INT16: Final = (-(2**15), 2**15 - 1)
INT32: Final = (-(2**31), 2**31 - 1)
LARGEST: Final = sys.float_info.max


class Checked:
    """A dataclass that is copied and unpickled by its constructor: checked again, its arrays closed to writing.

    numpy's own copies and pickles are open to writing, whatever they were made from.
    """

    __slots__ = ()
    arrays: ClassVar[Mapping[str, Any]] = {}  # its fields that are arrays, and their types
    packed: ClassVar[Mapping[str, Packed]] = {}  # those of them that lie packed in a file

    @classmethod
    def packed_at(cls, bits: object) -> Mapping[str, Packed]:
        """The packed fields of a part whose integers have so many bits."""
        return cls.packed

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        given = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return built, (type(self), given)


@contextmanager
def of_layer(index: int, count: int) -> Iterator[None]:
    """Errors raised inside name the layer, if there are several."""
    try:
        yield
    except ProgramError as error:
        raise ProgramError(f"layer {index}: {error}" if count > 1 else str(error)) from error


def built(kind: type, given: dict[str, Any]) -> Any:
    """A part from its fields."""
    return kind(**given)


def integers(name: str, value: Any, dtype: Any, shape: tuple[int | None, ...], low: int, high: int) -> np.ndarray:
    """The array as `dtype`, read-only, of that shape (None: any length), every entry in low..high."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise ProgramError(f"{name} must hold integers, got {array.dtype}")
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or not array.size:
        raise ProgramError(f"{name} must have shape {_text(shape)}, got {array.shape}")
    if array.min() < low or array.max() > high:
        raise ProgramError(f"{name} must lie in {low}..{high}, got {array.min()}..{array.max()}")
    return frozen(array.astype(dtype))


def floats(name: str, value: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The array as `dtype`, read-only, of that shape, every entry finite."""
    with np.errstate(over="ignore"):  # past float32 becomes infinity, refused below
        array = np.asarray(value, dtype)
    if array.shape != shape:
        raise ProgramError(f"{name} must have shape {_text(shape)}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ProgramError(f"{name} must be finite, got NaN or infinity; its training diverged or did not finish")
    return frozen(array.copy())


def scale(name: str, value: Any, rows: int) -> np.ndarray:
    """A positive scale as float64: one number, or one per row (a row of zeros has the scale 0)."""
    array = np.asarray(value, np.float64)
    if array.shape not in ((), (rows,)):
        raise ProgramError(f"{name} must be one number or one for each of the {rows} rows, got shape {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any() or not (array > 0).any():
        raise ProgramError(f"{name} must be positive and finite, got {array.min()}..{array.max()}")
    return frozen(array.copy())


def number(name: str, value: Any, low: int, high: int) -> int:
    """A whole number in low..high."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise ProgramError(f"{name} must be a whole number in {low}..{high}, got {value!r}")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ProgramError(f"{name} must be true or false, got {value!r}")
    return bool(value)


def finite(name: str, value: Any) -> float:
    """A number that is neither NaN nor infinite."""
    is_number = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
    if not is_number or not -LARGEST <= value <= LARGEST:
        raise ProgramError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def positive(name: str, value: Any) -> float:
    """A positive, finite float."""
    is_number = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
    if not is_number or not 0 < value < np.inf or (isinstance(value, int) and value > LARGEST):
        raise ProgramError(f"{name} must be positive and finite, got {value!r}")
    return float(value)


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, contiguous and read-only: a program is checked once and cannot change afterwards."""
    array = np.ascontiguousarray(array) if array.ndim else array
    array.flags.writeable = False
    return array


def _text(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"


def ceil(x: Fraction) -> int:
    """The least integer that is not below x."""
    return -(-x.numerator // x.denominator)
