"""How large a state is, and how sums become the next one: the paper's scheme, and one factor per row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from qornn.errors import SettingsError
from qornn.integer.activations import Activation
from qornn.integer.factors import differing, make_multiplier, make_per_row, make_table, make_thresholds
from qornn.integer.matrices import Matrix, RecurrentMatrix
from qornn.integer.requant import Paper
from qornn.integer.rounding import round_half_away
from qornn.integer.state import Source, State
from qornn.lowering.activations import activation_of, bias_of
from qornn.model import OrthogonalRecurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """What a scheme decides for one layer."""

    state: State
    activation: Activation
    requant: Any
    unit: float  # the h of one unit of h_i
    rounded: bool  # whether the factors themselves were
    exactness: dict[str, Any]  # for the report


def paper(
    layer: OrthogonalRecurrence,
    W: RecurrentMatrix,
    U: Matrix,
    inputs: Source,
    k_a: int,
    largest: float,
    form: str,
    *,
    nearest: bool,
) -> Scales:
    """λ = 1/(α_i α_U), the smallest α_h ≥ max|h| with α_W α_h = 2^m, and one factor c = α_W/2^(k−1+s).

    Where states are clipped anyway, the `nearest` α_h.
    """
    if W.alpha.ndim or U.alpha.ndim or W.identity:
        raise SettingsError('scheme="paper" takes one scale per matrix and no identity offset; use scheme="per-row"')
    alpha_W, alpha_U = float(W.alpha), float(U.alpha)
    rescaled = Fraction(largest) / (Fraction(inputs.alpha) * Fraction(alpha_U))
    m = (_log2_nearest if nearest else _log2_ceil)(Fraction(alpha_W) * rescaled)
    e = W.bits + k_a - U.bits - inputs.bits - m
    s = max(0, -e)
    state = State(bits=k_a, alpha=2.0**m / alpha_W)
    b_acc = bias_of(layer) / (inputs.alpha * alpha_U) * 2.0 ** (W.bits + k_a - 2 - m + s)
    below = _bits_below(layer, W, _sums(W, U, inputs, state), (s, e + s), b_acc) if form == "multiplier" else 0
    s, b_acc = s + below, b_acc * 2**below
    c = Fraction(alpha_W) / 2 ** (W.bits - 1 + s)
    shifts = {"shift_W": s, "shift_U": e + s}
    if max(shifts.values()) > 30:
        raise SettingsError(
            f"the input and the state are 2^{e} apart, too far for a 32-bit accumulator; use other activation bits or "
            'input bits, or scheme="per-row"'
        )
    if form == "multiplier":
        requant: Paper = make_multiplier(c, **shifts)
    else:
        requant = (make_thresholds if form == "thresholds" else make_table)(c, state.top, **shifts)
    wrong, values = differing(requant, c, state.top)
    if np.abs(b_acc).max(initial=0) >= 2**31:
        raise SettingsError(
            f"a bias reaches {np.abs(b_acc).max():.3g} accumulator units, too large for 32 bits; use fewer bits"
        )
    unit = inputs.alpha * alpha_U * state.step
    exactness = {"accumulator_values": values, "differing": wrong, "lambda": 1 / (inputs.alpha * alpha_U), "m": m}
    bias = 2 * np.floor(b_acc / 2).astype(np.int64) + 1 if below else round_half_away(b_acc)
    return Scales(
        state=state,
        activation=activation_of(layer, bias),
        requant=requant,
        unit=unit,
        rounded=False,
        exactness=exactness,
    )


def per_row(
    layer: OrthogonalRecurrence,
    W: RecurrentMatrix,
    U: Matrix,
    inputs: Source,
    k_a: int,
    largest: float,
    form: str,
    *,
    nearest: bool,
) -> Scales:
    """No λ and no power of two: two multipliers and a shift for each row."""
    if form != "multiplier":
        raise SettingsError(
            f'requant={form!r} exists only in scheme="paper"; scheme="per-row" takes requant="multiplier"'
        )
    state = State(bits=k_a, alpha=largest)
    c_W, c_U = factors(W, U, inputs, state)
    c_b = bias_of(layer) / state.step
    sums = np.stack(_sums(W, U, inputs, state), 1)
    requant, B, errors = make_per_row(c_W, c_U, c_b, sums, identity=W.identity, top=state.top)
    exactness = {"error_bound": float(errors.max())}
    activation = activation_of(layer, B)
    return Scales(
        state=state, activation=activation, requant=requant, unit=state.step, rounded=True, exactness=exactness
    )


SCHEMES = {"paper": paper, "per-row": per_row}


def factors(W: RecurrentMatrix, U: Matrix, inputs: Source, state: State) -> tuple[np.ndarray, np.ndarray]:
    """c_W and c_U of every row: states per unit of either sum.  # two (n_h,) float64"""
    rows = np.ones(W.n_h)
    c_U = U.alpha * inputs.alpha / (state.step * 2.0 ** (U.bits + inputs.bits - 2))
    return W.alpha / 2 ** (W.bits - 1) * rows, c_U * rows


def _bits_below(
    layer: OrthogonalRecurrence,
    W: RecurrentMatrix,
    sums: tuple[np.ndarray, np.ndarray],
    shifts: tuple[int, int],
    b_acc: np.ndarray,
) -> int:
    """Bits below the sums of a linear recurrence, for an odd bias; none where there is no room.

    Dividing by a power of two often gives exact ties. Ties round away from zero, so states would grow at every step,
    and an orthogonal W forgets none of it. An odd bias avoids ties. With other divisors, three more bits make the bias
    finer: what it loses is lost at every step as well.
    """
    if layer.b is None:
        return 0
    below = 1 if math.frexp(float(W.alpha))[0] == 0.5 else 3
    largest = sum(int(part.max()) << shift for part, shift in zip(sums, shifts, strict=True)) + np.abs(b_acc).max() + 1
    return below if largest * 2**below < 2**31 and max(shifts) + below <= 30 else 0


def _sums(W: RecurrentMatrix, U: Matrix, inputs: Source, state: State) -> tuple[np.ndarray, np.ndarray]:
    """Σ|W_i| h_max and max|Σ U_i x_i| of each row.  # two (n_h,) int64"""
    return W.row_sums() * state.top, inputs.sum_bound(U.integers)


def _log2_ceil(x: Fraction) -> int:
    """The least m with 2^m ≥ x, exactly."""
    m = x.numerator.bit_length() - x.denominator.bit_length() - 1
    while Fraction(2) ** m < x:
        m += 1
    return m


def _log2_nearest(x: Fraction) -> int:
    """The m with 2^m nearest to x in ratio, exactly."""
    m = _log2_ceil(x)
    return m - 1 if x * x < Fraction(2) ** (2 * m - 1) else m
