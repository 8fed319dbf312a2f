"""Checks of the arguments that a network is built with."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import Parameter, signature
from typing import Any

from qornn.errors import SettingsError, unknown
from qornn.maps import MAPS, OrthogonalMap, options_of
from qornn.quant import Quantizer
from qornn.structure import check_power

STATE_BITS = range(4, 17)
LAMBDA_BITS = range(8, 13)


def refuse_unknown(options: Iterable[str], map: str | OrthogonalMap, *kinds: type[Any]) -> None:
    """Refuse a keyword that neither the classes nor any map knows, in the name of the first class.

    Options of another map pass: `make_map` says which options this one has.
    """
    known = {name for kind in kinds for name in _keywords(kind)}
    for_maps = {name for kind in MAPS.values() for name in options_of(kind)}
    for key in options:
        if key not in known | for_maps:
            own = options_of(MAPS[map]) if isinstance(map, str) and map in MAPS else []
            raise unknown(f"keyword of {kinds[0].__name__}", key, known.union(own))


def check_widths(**widths: object) -> None:
    """Refuse numbers of units that are not positive whole numbers."""
    for name, value in widths.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise SettingsError(f"{name} must be a whole number, got {value!r}")
        if value < 1:
            raise SettingsError(f"{name} must be at least 1, got {value}")


def check_mix(n_h: int, readout: str) -> None:
    """Refuse a transform whose size is not a power of two, or of every step."""
    check_power(n_h, 2, "n_h with mix=True")
    if readout != "last":
        raise SettingsError("mix=True transforms the last state; this task reads out every step, leave it out")


def refuse_weight_bits(map_: OrthogonalMap, bits_W: int | None, quantizer: str | Quantizer) -> None:
    """Refuse to quantize a W that is not stored."""
    if bits_W is not None or quantizer != "uniform":
        got = f"bits_W={bits_W}" if bits_W is not None else f"quantizer={quantizer!r}"
        raise SettingsError(
            f"{type(map_).__name__} has no weights of W to quantize, got {got}: its entries are fixed already; "
            "bits=2..8 is for U and V"
        )


def _keywords(kind: type[Any]) -> list[str]:
    return [p.name for p in signature(kind.__init__).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]


def check_state_bits(bits: object) -> None:
    """Refuse widths that no state has."""
    if bits is not None and (isinstance(bits, bool) or not isinstance(bits, int) or bits not in STATE_BITS):
        low, high = STATE_BITS[0], STATE_BITS[-1]
        raise SettingsError(f"state_bits must be in {low}..{high}, or None for float states, got {bits!r}")


def check_ring(ring: Any) -> None:
    """Refuse radii that λ cannot begin with."""
    try:
        low, high = (float(radius) for radius in ring)
        fine = 0 <= low <= high <= 1
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise SettingsError(f"ring must be two radii in 0..1, the smaller first, got {ring!r}")


def checked_lambda(lambda_bits: int | None, bits: int | None) -> int | None:
    """Bits of λ: as given, or the fewest where U is quantized."""
    if lambda_bits is None:
        return None if bits is None else LAMBDA_BITS[0]
    if type(lambda_bits) is not int or lambda_bits not in LAMBDA_BITS:
        raise SettingsError(f"lambda_bits must be in {LAMBDA_BITS[0]}..{LAMBDA_BITS[-1]}, got {lambda_bits!r}")
    return lambda_bits
