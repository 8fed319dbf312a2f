"""W -> (integers, alpha). A new quantizer is one file here and one line in the dict."""

from qornn.errors import SettingsError, unknown
from qornn.quant.base import Quantizer, round_half_away
from qornn.quant.identity_offset import IdentityOffset
from qornn.quant.uniform import Uniform

QUANTIZERS: dict[str, type[Quantizer]] = {"uniform": Uniform, "identity-offset": IdentityOffset}

__all__ = [
    "QUANTIZERS",
    "IdentityOffset",
    "Quantizer",
    "Uniform",
    "make_quantizer",
    "round_half_away",
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
