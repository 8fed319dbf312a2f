"""The estimators' parameters and the weights of samples, refused in one line where they are not what they should be."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Final

import numpy as np

from qornn.errors import SettingsError
from qornn.estimators.tensors import from_torch
from qornn.integer.state import check_activation_bits
from qornn.maps import OrthogonalMap
from qornn.tasks.base import check_count

# Defaults of what only stacks have.
STACK: Final = {
    "layers": 2,
    "width": 24,
    "pairs": None,
    "skip": True,
    "differences": False,
    "missing": "refuse",
    "dropout": 0.0,
}
MISSING: Final = ("refuse", "hold")


def check_settings(estimator: Any) -> None:
    """Check all parameters that can be checked before the data is read, for every map."""
    for name in ("patience", *(["max_epochs"] if estimator.max_epochs is not None else [])):
        check_count(name, getattr(estimator, name))
    for name in ("batch_size", "window"):
        value = getattr(estimator, name)
        if not isinstance(value, str) or value != "auto":
            check_count(name, value)
    if estimator.activation_bits is not None:
        check_activation_bits(estimator.activation_bits)
    if estimator.lr is not None and real("lr", estimator.lr) == 0:
        raise SettingsError(f"lr must be a number above 0, got {estimator.lr!r}")
    real("dropout", estimator.dropout, below=1)
    for name, below in (("noise", math.inf), ("mixup", math.inf), ("warp", 1.0), ("validation_fraction", 1.0)):
        if getattr(estimator, name) is not None:
            real(name, getattr(estimator, name), below=below)
    if not isinstance(estimator.missing, str) or estimator.missing not in MISSING:
        raise SettingsError(f"missing must be 'refuse' or 'hold', got {_short(estimator.missing)}")
    if not isinstance(estimator.map, str | OrthogonalMap):
        raise SettingsError(f"map must be the name of a map, such as 'bjorck', got {estimator.map!r}")
    if not isinstance(estimator.activation, str | None):
        raise SettingsError(f"activation must be the name of one, or None, got {estimator.activation!r}")


def real(name: str, value: Any, *, below: float = math.inf) -> float:
    """A number in [0, below), of Python's or numpy's kinds."""
    try:
        found = float(value) if isinstance(value, Real) and not isinstance(value, bool | np.bool_) else math.nan
    except OverflowError:
        found = math.nan
    if 0 <= found < below:
        return found
    least = "0 or more" if below == math.inf else f"at least 0 and below {below:g}"
    raise SettingsError(f"{name} must be a number of {least}, got {_short(value)}")


def weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """One weight per sample, the largest 1; None where there are none.  # (n,)"""
    if sample_weight is None:
        return None
    try:
        found = np.asarray(from_torch(sample_weight, "sample_weight"), np.float64)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"sample_weight must hold numbers: {error}") from error
    if found.shape != (n,):
        raise SettingsError(f"sample_weight must hold {n} numbers, one per sample, got shape {found.shape}")
    bad = found[~(np.isfinite(found) & (found >= 0))]
    if bad.size:
        raise SettingsError(f"sample_weight must hold finite numbers of 0 or more, got {bad[0]:g}")
    if not found.any():
        raise SettingsError("sample_weight is 0 for every sample; give at least one sample a positive weight")
    return found / found.max()


def seed_of(random_state: Any) -> int:
    """A seed below 2^32 from what scikit-learn calls random_state; None asks the system, not a global generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if (
        isinstance(random_state, bool)
        or not isinstance(random_state, int | np.integer)
        or not 0 <= random_state < 2**32
    ):
        raise SettingsError(f"random_state must be None, a seed in 0..2^32-1 or a RandomState, got {random_state!r}")
    return int(random_state)


def _short(value: Any) -> str:
    text = " ".join(repr(value).split()) if not isinstance(value, int) or abs(value) < 1e30 else "a huge number"
    return text if len(text) < 60 else f"{text[:56]} ..."
