"""What a caller of lower() may choose, and what is chosen where nothing was said."""

from __future__ import annotations

from qornn.errors import SettingsError, unknown
from qornn.integer.matrix import Matrix
from qornn.integer.parts import Codes, Samples, check_activation_bits
from qornn.model import OrthogonalRecurrence
from qornn.tasks.base import check_count

SCHEMES = ("paper", "per-row")
REQUANTS = ("multiplier", "thresholds", "table")
READOUTS = ("float", "int8")
NARROW, WIDE = 99.99, 12  # the percentile at which states of fewer bits saturate: a finer grid is worth more


def check_choices(
    *, requant: str, activation_bits: int, clip: float, scheme: str | None, readout: str | None, refit: int
) -> None:
    """Refuse what can be told before anything is looked at."""
    for kind, name, choices in (
        ("scheme", scheme, SCHEMES),
        ("requant", requant, REQUANTS),
        ("readout", readout, READOUTS),
    ):
        if name not in choices and (name is not None or kind == "requant"):
            raise unknown(kind, name, choices)
    if isinstance(clip, bool) or not isinstance(clip, int | float) or not 0 < clip <= 1:
        raise SettingsError(f"clip is the part of alpha_h at which states saturate, in (0, 1], got {clip!r}")
    check_activation_bits(activation_bits)
    check_count("refit", refit, least=0)


def state_limit(
    alpha_h: str | float | None, layer: OrthogonalRecurrence, U: Matrix, inputs: Codes | Samples, k_a: int, max_h: float
) -> str | float:
    """ "max", or the percentile of |h| at which states saturate; the default where none was asked for."""
    if alpha_h is not None:
        return alpha_h if alpha_h == "max" else percent(alpha_h)
    return NARROW if k_a < WIDE and _rounds(layer, U, inputs, k_a, max_h) else "max"


def _rounds(layer: OrthogonalRecurrence, U: Matrix, inputs: Codes | Samples, k_a: int, max_h: float) -> bool:
    """Whether a structured W rounds at every step; one that permutes does where states do not fit its inputs' grid."""
    unit = U.alpha * inputs.alpha / 2.0 ** (U.bits + inputs.bits - 2)
    fits = not unit.ndim and max_h <= 2 ** (k_a - 1) * unit
    return layer.map.structured and not (layer.map.permutes and fits)


def percent(alpha_h: str | float) -> float:
    """A percentile, also as text."""
    try:
        return float(alpha_h)
    except (TypeError, ValueError) as error:
        raise SettingsError(f'alpha_h is "max" or a percentile such as 99.99, got {alpha_h!r}') from error
