"""How the figures of a record are written; anything that is not a figure is written as it is, and escaped later."""

from __future__ import annotations

import math
from typing import Any

STRATEGIES = {
    "bjorck": "STE-Björck",
    "projunn": "STE-projUNN",
    "ptq": "PTQ",
    "penalty": "STE-pen",
    "lstm": "LSTM",
    "gru": "GRU",
    "rnn": "RNN",
    "fastrnn": "FastRNN",
    "fastgrnn": "FastGRNN",
    "hadamard": "signed Hadamard",
    "hadamard-block": "Hadamard blocks",
    "cycle": "signed cycle",
    "delay": "delay lines",
    "stack": "stack of rotations",
}
TASKS = {"copy": "copy", "adding": "adding", "smnist": "sMNIST", "pmnist": "pMNIST", "ptb": "PTB", "digits": "digits"}
METRICS = {"mse": "mean squared error", "accuracy": "accuracy, %"}
NONE = "–"


def number(value: Any) -> float | None:
    """The value if it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def figure(value: Any, metric: str, *, digits: int = 2) -> str:
    """A value of the metric as the paper prints it; NC and NU stay words."""
    if value is None:
        return NONE
    if (found := number(value)) is None:
        return str(value)
    if metric == "accuracy":
        return f"{found:.2f}"
    if metric == "bits per character":
        return f"{found:.3f}"
    if metric == "mse" and 0.01 <= found < 1000:
        return f"{found:.3f}"
    return exponential(found, digits)


def exponential(value: float, digits: int = 2) -> str:
    """1.6e-5, without the zeros that Python puts before the exponent."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def difference(value: Any, paper: Any, metric: str) -> str:
    """Measured less paper; where a metric spans decades, how many times the paper's figure."""
    ours, theirs = number(value), number(paper)
    if ours is None or theirs is None:
        return NONE
    if metric in ("accuracy", "bits per character"):
        return f"{ours - theirs:+.{2 if metric == 'accuracy' else 3}f}".replace("-", "−")
    if theirs <= 0:
        return NONE
    ratio = ours / theirs
    return f"× {ratio:.2g}" if 0.01 <= ratio < 100 else f"× {exponential(ratio)}"


def bits(value: Any) -> str:
    return "FP" if value is None else str(value)


def strategy(name: Any) -> str:
    return STRATEGIES.get(str(name), str(name))


def percent(fraction: Any) -> str:
    """A fraction of the paper's training; two digits, so that 0.075 is 7.5 %."""
    found = number(fraction)
    return NONE if found is None else f"{100 * found:.3g} %" if found >= 0.1 else f"{100 * found:.2g} %"


def minutes(seconds: Any) -> str:
    found = number(seconds)
    return NONE if found is None else f"{found / 60:.0f}" if found >= 600 else f"{found / 60:.1f}"


def whole(value: Any) -> str:
    """A whole number in groups of three."""
    found = number(value)
    return NONE if found is None else f"{found:,.0f}".replace(",", " ")
