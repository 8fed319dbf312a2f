"""The small parts of a program: what it is fed, the state, the activation, and what is read out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from qornn.bits import BITS, INPUT_BITS
from qornn.errors import SettingsError
from qornn.integer import check
from qornn.integer.matrix import exact_product, packed_bytes
from qornn.integer.rounding import round_half_away
from qornn.structure import check_power, transform

ACTIVATION_BITS: Final = range(4, 17)
INT16: Final = (-(2**15), 2**15 - 1)
INT32: Final = (-(2**31), 2**31 - 1)
RAW_SCALES: Final = (2.0**-120, 2.0**112)  # no float32 that is not normal reaches half of one, none overflows


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class State(check.Checked):
    """h = alpha·h_i/2^(bits−1); the magnitude of h_i is at most 2^(bits−1) − 1."""

    bits: int
    alpha: float

    def __post_init__(self) -> None:
        bits = check.number("activation_bits", self.bits, ACTIVATION_BITS[0], ACTIVATION_BITS[-1])
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "alpha", check.positive("alpha_h", self.alpha))

    @property
    def top(self) -> int:
        """The largest state, 2^(bits−1) − 1."""
        return 2 ** (self.bits - 1) - 1

    @property
    def step(self) -> float:
        """h of one unit of h_i."""
        return self.alpha / 2 ** (self.bits - 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Codes(check.Checked):
    """One-hot inputs by their codes: a column of U is read, nothing multiplied (formally α_i = 2, k_i = 2, x_i = 1)."""

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check.number("number of codes", self.size, 1, INT16[1]))

    @property
    def bits(self) -> int:
        return 2

    @property
    def alpha(self) -> float:
        return 2.0

    @property
    def n_i(self) -> int:
        return self.size

    def sum_bound(self, U: np.ndarray) -> np.ndarray:
        """max|Σ U_i x_i| of each row: one column at a time is read.  # (n_h,)"""
        return np.abs(U.astype(np.int64)).max(1)

    def accept(self, x: np.ndarray, *, saturate: bool = False) -> tuple[np.ndarray, int]:
        """Codes (B, T), checked; a code outside the table means nothing, so none is ever replaced."""
        if x.ndim != 2 or x.dtype.kind not in "iu":
            raise SettingsError(f"this program reads codes: integers (B, T) below {self.size}; got {_shape(x)}")
        if x.min() < 0 or x.max() >= self.size:
            raise SettingsError(f"codes must lie in 0..{self.size - 1}, got {x.min()}..{x.max()}")
        return x.astype(np.int16), 0

    def from_floats(self, x: np.ndarray) -> np.ndarray:
        """Codes are their own raw form."""
        return np.asarray(x)

    from_network = from_floats


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples(check.Checked):
    """Raw integers in low..high, int16 on the device; x = alpha·x_i/2^(bits−1) with, channel by channel,

        x_i = clamp( ((raw − offset)·multiplier + half) >> shift ),  half = 2^(shift−1), or 0 when shift = 0

    which carries the normalisation of the data. Samples that come as floats, in the units of the training data, are
    rounded to float32; with `raw_scale`, raw = round(sample/raw_scale). Without it the network saw them as they are:
    raw = round(x·gain + offset), where there is a `scale`.
    """

    bits: int
    alpha: float
    low: int
    high: int
    offset: np.ndarray  # (n_i,) int32
    multiplier: np.ndarray  # (n_i,) int32, not negative
    shift: np.ndarray  # (n_i,) uint8
    scale: float | None = None
    raw_scale: np.ndarray | None = None  # (n_i,) float32, powers of two: division by them is exact everywhere

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", check.number("input_bits", self.bits, INPUT_BITS[0], INPUT_BITS[-1]))
        object.__setattr__(self, "alpha", check.positive("alpha_i", self.alpha))
        object.__setattr__(self, "low", check.number("input low", self.low, *INT16))
        object.__setattr__(self, "high", check.number("input high", self.high, self.low, INT16[1]))
        # raw − offset stays within 32 bits, its product with the multiplier within 62.
        offset = check.integers("input offset", self.offset, np.int32, (None,), -(2**30), 2**30)
        object.__setattr__(self, "offset", offset)
        for name, dtype, high in (("multiplier", np.int32, INT32[1]), ("shift", np.uint8, 61)):
            array = check.integers(f"input {name}", getattr(self, name), dtype, offset.shape, 0, high)
            object.__setattr__(self, name, array)
        if self.scale is not None:
            object.__setattr__(self, "scale", check.positive("input scale", self.scale))
            if not np.isfinite(self.gain()).all():
                raise check.ProgramError(f"alpha_i {self.alpha:g} is too small: raw units of a float are not finite")
        if self.raw_scale is not None:
            raw_scale = check.floats("input raw_scale", self.raw_scale, np.float64, offset.shape)
            powers = np.frexp(raw_scale)[0] == 0.5
            if not (powers & (raw_scale >= RAW_SCALES[0]) & (raw_scale <= RAW_SCALES[1])).all():
                raise check.ProgramError(f"input raw_scale must be powers of two in 2^-120..2^112, got {raw_scale}")
            object.__setattr__(self, "raw_scale", check.frozen(raw_scale.astype(np.float32)))

    @property
    def n_i(self) -> int:
        return len(self.offset)

    @property
    def plain(self) -> bool:
        """Whether x_i is the raw sample itself."""
        top = 2 ** (self.bits - 1)
        as_is = not self.offset.any() and (self.multiplier == 1).all() and not self.shift.any()
        return bool(as_is) and -top <= self.low and self.high <= top - 1

    def integers(self, raw: np.ndarray) -> np.ndarray:
        """x_i of raw samples.  # (..., n_i) -> (..., n_i) int64"""
        shift = self.shift.astype(np.int64)
        half = np.where(shift > 0, 1 << np.maximum(shift - 1, 0), 0)
        x = ((raw.astype(np.int64) - self.offset) * self.multiplier.astype(np.int64) + half) >> shift
        top = 2 ** (self.bits - 1)
        return x.clip(-top, top - 1)

    def sum_bound(self, U: np.ndarray) -> np.ndarray:
        """Σ|U_i|·max|x_i| of each row; x_i does not decrease with the raw sample, so its ends are extreme.  # (n_h,)"""
        ends = self.integers(np.repeat([[self.low], [self.high]], self.n_i, axis=1))
        return np.abs(U.astype(np.int64)) @ np.abs(ends).max(0)

    def accept(self, x: np.ndarray, *, saturate: bool = False) -> tuple[np.ndarray, int]:
        """Raw samples (B, T, n_i), checked against the declared range or clipped to it, and how many were clipped."""
        if x.ndim != 3 or x.shape[2] != self.n_i:
            raise SettingsError(f"this program reads raw samples (B, T, {self.n_i}); got {_shape(x)}")
        if x.dtype.kind not in "iu":
            raise SettingsError(
                f"this program reads raw integers in {self.low}..{self.high}, got {x.dtype}; "
                "program.input.from_floats(x) turns the floats it was trained on into them"
            )
        outside = int(((x < self.low) | (x > self.high)).sum())
        if outside and not saturate:
            raise SettingsError(
                f"inputs must lie in {self.low}..{self.high}, got {x.min()}..{x.max()} "
                f"({outside} of {x.size} outside); saturate=True clips and counts them"
            )
        return x.clip(self.low, self.high).astype(np.int16), outside

    def gain(self) -> np.ndarray:
        """Raw units a unit of x, channel by channel: the map from raw samples to x_i, backwards.  # (n_i,) float64"""
        with np.errstate(over="ignore", divide="ignore"):  # infinite is refused
            units = np.ldexp(1.0, self.shift.astype(int)) / np.float64(self.alpha / 2 ** (self.bits - 1))
        return np.divide(units, self.multiplier, out=np.zeros(self.n_i), where=self.multiplier > 0)

    @property
    def takes_floats(self) -> bool:
        """Whether `from_floats`, and NAME_quantize in C, exist."""
        return self.raw_scale is not None or self.scale is not None

    def from_floats(self, x: np.ndarray) -> np.ndarray:
        """Raw samples of floats in the units of the training data, as NAME_quantize, not yet held to low..high."""
        if self.raw_scale is None:
            return self.from_network(x)
        x = _float32(x)
        with np.errstate(over="ignore"):
            return _rounded(x.astype(np.float64) / self.raw_scale)

    def from_network(self, x: np.ndarray) -> np.ndarray:
        """Raw samples of the x that the network itself sees, standardised where `raw_scale` says what came before."""
        if self.scale is None:
            raise SettingsError("this program has no scale for floats; feed it raw integers")
        x = _float32(x)
        with np.errstate(over="ignore", invalid="ignore"):  # gain 0 times infinity: NaN, the lowest in C too
            return _rounded(x.astype(np.float64) * self.gain() + self.offset)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReLU(check.Checked):
    """max(z, 0)"""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModReLU(check.Checked):
    """sign(z)·max(|z| + bias, 0), the bias in the units of what is requantized (int64: with per-row multipliers
    it is scaled by 2^shift)."""

    bias: np.ndarray  # (n_h,) int64

    def __post_init__(self) -> None:
        object.__setattr__(self, "bias", _checked_bias(self.bias))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Identity(check.Checked):
    """z + bias itself: the linear recurrence, its bias in the units of modReLU's but added before the sign is taken."""

    bias: np.ndarray | None = None  # (n_h,) int64

    def __post_init__(self) -> None:
        if self.bias is not None:
            object.__setattr__(self, "bias", _checked_bias(self.bias))


Activation = ReLU | ModReLU | Identity


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloatReadout(check.Checked):
    """y = scale·(V h_i) + b_o in float32: products and sums in the order j = 0…n_h−1, none fused.

    With `mix`, of S h_i in place of h_i, S Sylvester's matrix; the 1/√n of the transform is in the scale.
    """

    V: np.ndarray  # (n_o, n_h) float32
    b_o: np.ndarray  # (n_o,) float32
    scale: float  # a float32
    relu: bool = False  # of the state, for linear recurrences
    mix: bool = False

    def __post_init__(self) -> None:
        _check_readout(self, lambda V: check.floats("V", V, np.float32, np.shape(V)))
        object.__setattr__(self, "b_o", check.floats("b_o", self.b_o, np.float32, (len(self.V),)))
        with np.errstate(over="ignore"):  # past float32 becomes infinity, refused below
            object.__setattr__(self, "scale", float(np.float32(check.positive("readout scale", self.scale))))
        check.positive("readout scale (as float32)", self.scale)

    @property
    def stored_bytes(self) -> int:
        return self.V.nbytes + self.b_o.nbytes + 4

    def outputs(self, h: np.ndarray) -> np.ndarray:
        """y of integer states.  # (..., n_h) -> (..., n_o) float32"""
        h = _seen(h, self).astype(np.float32)
        total = np.zeros((*h.shape[:-1], len(self.V)), np.float32)
        for j in range(h.shape[-1]):
            total += h[..., j, None] * self.V[:, j]
        return total * np.float32(self.scale) + self.b_o

    def values(self, y: np.ndarray) -> np.ndarray:
        """Outputs in the network's own units."""
        return y


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntReadout(check.Checked):
    """y_i = V_i h_i + bias, all integers: argmax needs no float; y = scale·y_i."""

    V: np.ndarray  # (n_o, n_h) int8
    bias: np.ndarray  # (n_o,) int32
    scale: float
    relu: bool = False
    bits: int = 8  # of V
    mix: bool = False  # as above; the bias is in units of V_i S h_i

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", check.number("bits of V", self.bits, BITS[0], BITS[-1]))
        top = 2 ** (self.bits - 1)
        _check_readout(self, lambda V: check.integers("V", V, np.int8, (None, None), -top, top - 1))
        object.__setattr__(self, "bias", check.integers("b_o", self.bias, np.int32, (len(self.V),), *INT32))
        object.__setattr__(self, "scale", check.positive("readout scale", self.scale))

    @property
    def stored_bytes(self) -> int:
        return packed_bytes(self.V.size, self.bits) + self.bias.nbytes

    def outputs(self, h: np.ndarray) -> np.ndarray:
        """y_i of integer states.  # (..., n_h) -> (..., n_o) int32"""
        flat = _seen(h, self).reshape(-1, h.shape[-1])
        return (exact_product(self.V, flat) + self.bias).astype(np.int32).reshape(*h.shape[:-1], len(self.V))

    def values(self, y: np.ndarray) -> np.ndarray:
        """Outputs in the network's own units, as float32."""
        return (y * self.scale).astype(np.float32)


Readout = FloatReadout | IntReadout


def _float32(x: np.ndarray) -> np.ndarray:
    """As a device has them; past the largest float32 they are infinite, and saturate."""
    x = np.asarray(x)
    if not np.isfinite(x).all():
        raise SettingsError("x holds NaN or infinity; fill or drop missing values first")
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def _rounded(raw: np.ndarray) -> np.ndarray:
    """Clipped before the cast: 1e300 has no int64."""
    return round_half_away(np.nan_to_num(raw, nan=-(2.0**31)).clip(-(2.0**31), 2.0**31))


def _check_readout(readout: FloatReadout | IntReadout, checked: object) -> None:
    V = checked(readout.V)  # type: ignore[operator]
    if V.ndim != 2 or not V.size:
        raise check.ProgramError(f"V must be (n_o, n_h), got shape {V.shape}")
    object.__setattr__(readout, "V", V)
    for name in ("relu", "mix"):
        if not isinstance(getattr(readout, name), bool):
            raise check.ProgramError(f"the readout's {name} is yes or no, got {getattr(readout, name)!r}")
    if readout.mix:
        try:
            check_power(V.shape[1], 2, "n_h of a readout with mix")
        except SettingsError as error:
            raise check.ProgramError(str(error)) from error


def _checked_bias(bias: np.ndarray) -> np.ndarray:
    return check.integers("bias", bias, np.int64, (None,), -(2**62), 2**62)


def _seen(h: np.ndarray, readout: FloatReadout | IntReadout) -> np.ndarray:
    if readout.mix:
        h = transform(h.astype(np.int64))  # int64: states come in 16 bits
    return np.maximum(h, 0) if readout.relu else h


def _shape(x: np.ndarray) -> str:
    return f"shape {x.shape}, {x.dtype}"


def check_activation_bits(bits: object) -> None:
    """Refuse widths that no state has; whoever trains first asks before training."""
    whole = isinstance(bits, int | np.integer) and not isinstance(bits, bool)
    if not whole or bits not in ACTIVATION_BITS:
        low, high = ACTIVATION_BITS[0], ACTIVATION_BITS[-1]
        raise SettingsError(f"activation_bits must be in {low}..{high}, got {bits!r}; 12 is the paper's")
