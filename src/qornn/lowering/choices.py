"""The options of lower(), and their defaults."""

from __future__ import annotations

from qornn.errors import SettingsError, unknown
from qornn.integer.matrices import Matrix, RecurrentMatrix
from qornn.integer.state import Source, check_activation_bits
from qornn.tasks.base import check_count

SCHEMES = ("paper", "per-row")
REQUANTS = ("multiplier", "thresholds", "table")
READOUTS = ("float", "int8")
PAPER_BITS = 12  # of a state, where training has not decided
NARROW, WIDE = 99.99, 12  # the percentile at which states of fewer bits saturate: a finer grid is worth more


def check_choices(
    *, requant: str, activation_bits: int | None, clip: float, scheme: str | None, readout: str | None, refit: int
) -> None:
    """Check the options that need no data."""
    for kind, name, choices in (
        ("scheme", scheme, SCHEMES),
        ("requant", requant, REQUANTS),
        ("readout", readout, READOUTS),
    ):
        if name not in choices and (name is not None or kind == "requant"):
            raise unknown(kind, name, choices)
    if isinstance(clip, bool) or not isinstance(clip, int | float) or not 0 < clip <= 1:
        raise SettingsError(f"clip is the fraction of alpha_h at which states saturate, in (0, 1], got {clip!r}")
    if activation_bits is not None:
        check_activation_bits(activation_bits)
    check_count("refit", refit, least=0)


def check_trained_bits(trained: list[int | None], asked: int | None) -> None:
    """Refuse other bits than those that states were rounded to in training."""
    for bits in trained:
        if None not in (bits, asked) and bits != asked:
            raise SettingsError(
                f"the states were rounded to {bits} bits in training, and activation_bits={asked} was asked for; leave "
                f"it out, or train with activation_bits={asked}"
            )


def refuse_choices(**asked: object) -> None:
    """Refuse options that have no effect because training has decided everything."""
    left = {"scheme": None, "requant": "multiplier", "alpha_h": None, "clip": 1.0}
    for name, value in asked.items():
        if value != left[name]:
            raise SettingsError(
                f"{name}={value!r} has no effect here: all layers were rounded in training, so nothing is left to "
                f"choose; leave {name} out"
            )


def state_limit(
    alpha_h: str | float | None, W: RecurrentMatrix, U: Matrix, source: Source, k_a: int, max_h: float
) -> str | float:
    """ "max", or the percentile of |h| at which states saturate; the default where none was asked for."""
    if alpha_h is not None:
        return alpha_h if alpha_h == "max" else percent(alpha_h)
    unit = U.alpha * source.alpha / 2.0 ** (U.bits + source.bits - 2)
    return NARROW if k_a < WIDE and W.rounds(unit, max_h, k_a) else "max"


def percent(alpha_h: str | float) -> float:
    """A percentile, also as text."""
    try:
        return float(alpha_h)
    except (TypeError, ValueError) as error:
        raise SettingsError(f'alpha_h is "max" or a percentile such as 99.99, got {alpha_h!r}') from error
