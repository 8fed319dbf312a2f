"""How many bits a weight has (2 to 8, or None for full precision), and how many a raw sample needs."""

from __future__ import annotations

from qornn.errors import SettingsError, shown

FULL_PRECISION = "fp"  # how None is spelled on the command line and in recipes
BITS = range(2, 9)
INPUT_BITS = range(2, 17)  # of an input in integers


def check_bits(bits: object) -> int:
    """Check weight bits. The error for bits outside 2..8 says what to do."""
    if isinstance(bits, bool) or not isinstance(bits, int) or bits not in BITS:
        activations = bits if isinstance(bits, int) and 8 < bits <= 16 else 12
        raise SettingsError(
            f"bits must be in 2..8, got {shown(bits)}; activations take activation_bits={activations}, "
            f"full precision is None ({FULL_PRECISION!r} on the command line and in recipes)"
        )
    return bits


def parse_bits(bits: int | str | None) -> int | None:
    """2..8 as a number or in words; None or "fp" is full precision."""
    if bits is None or (isinstance(bits, str) and bits.lower() == FULL_PRECISION):
        return None
    return check_bits(int(bits) if isinstance(bits, str) and bits.isdecimal() and len(bits) < 5 else bits)


def lossless(low: int, high: int, offset: int = 0) -> int:
    """Bits, the sign's among them, that hold every raw − offset for raw in low..high.

    >>> lossless(0, 255)
    9
    """
    return int(max(abs(low - offset), abs(high - offset) + 1) - 1).bit_length() + 1
