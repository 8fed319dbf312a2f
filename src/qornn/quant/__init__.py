"""W -> (integers, alpha). A new quantizer is one file here and one line in the dict."""

from qornn.errors import SettingsError, unknown
from qornn.quant.base import Quantizer, having, round_half_away, straight_through
from qornn.quant.disc import on_disc
from qornn.quant.identity_offset import IdentityOffset
from qornn.quant.power import PowerOfTwo
from qornn.quant.uniform import Uniform

QUANTIZERS: dict[str, type[Quantizer]] = {
    "uniform": Uniform,
    "identity-offset": IdentityOffset,
    "power-of-two": PowerOfTwo,
}

__all__ = [
    "QUANTIZERS",
    "IdentityOffset",
    "PowerOfTwo",
    "Quantizer",
    "Uniform",
    "having",
    "make_quantizer",
    "on_disc",
    "round_half_away",
    "straight_through",
]


def make_quantizer(quantizer: str | Quantizer, bits: int | None, **options: str) -> Quantizer | None:
    """The quantizer of that name, the object itself, or None for full precision (bits=None)."""
    if isinstance(quantizer, Quantizer):
        if bits is not None and bits != quantizer.bits:
            raise SettingsError(
                f"the quantizer has {quantizer.bits} bits and bits={bits} was asked for; give one of them"
            )
        return quantizer
    if not isinstance(quantizer, str) or quantizer not in QUANTIZERS:
        raise unknown("quantizer", quantizer, QUANTIZERS)
    return None if bits is None else QUANTIZERS[quantizer](bits, **options)
