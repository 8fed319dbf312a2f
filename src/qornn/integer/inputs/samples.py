"""Raw samples of a device, normalised by integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np

from qornn.bits import INPUT_BITS
from qornn.errors import SettingsError
from qornn.integer import check
from qornn.integer.check import INT16, INT32
from qornn.integer.inputs.base import Input, shape_of
from qornn.integer.inputs.memory import COMPANDED_BITS, COMPANDED_TOP, LEAST, MISSING, remembered
from qornn.integer.rounding import round_half_away

RAW_SCALES: Final = (2.0**-120, 2.0**112)  # no float32 that is not normal reaches half of one, none overflows
LARGEST: Final = float(np.finfo(np.float32).max)
INPUTS: Final = 2**20  # of a step, at most


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples(Input):
    """Raw integers in low..high, int16 on the device; x = alpha·x_i/2^(bits−1) with, channel by channel,

        x_i = clamp( ((raw − offset)·multiplier + half) >> shift ),  half = 2^(shift−1), or 0 when shift = 0

    which carries the normalisation of the data. A step reads `window` samples one after another, all channels of each.
    With `differences` as many companded differences to the samples before follow, on the same grid of integers. With
    `hold` a raw sample of −2^15 is missing: the last one of its channel stands for it, and before the first x_i = 0.
    For both the last raw sample of each channel is remembered (memory.py).

    Samples that come as floats, in the units of the training data, are rounded to float32; with `hold` NaN is a missing
    one. With `raw_scale`, raw = round(sample/raw_scale). Without it the network saw them as they are:
    raw = round(x·gain + offset), where there is a `scale`.
    """

    kind = "samples"
    noun = "channels"
    multiplied = True
    arrays: ClassVar = {"offset": np.int32, "multiplier": np.int32, "shift": np.uint8, "raw_scale": np.float32}

    bits: int
    alpha: float
    low: int
    high: int
    offset: np.ndarray  # (channels,) int32
    multiplier: np.ndarray  # (channels,) int32, not negative
    shift: np.ndarray  # (channels,) uint8
    scale: float | None = None
    raw_scale: np.ndarray | None = None  # (channels,) float32, powers of two: division by them is exact everywhere
    window: int = 1  # samples that a step reads
    differences: bool = False
    hold: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", check.number("input_bits", self.bits, INPUT_BITS[0], INPUT_BITS[-1]))
        object.__setattr__(self, "alpha", check.positive("alpha_i", self.alpha))
        object.__setattr__(self, "low", check.number("input low", self.low, *INT16))
        object.__setattr__(self, "high", check.number("input high", self.high, self.low, INT16[1]))
        # raw − offset stays within 32 bits, its product with the multiplier within 62.
        offset = check.integers("input offset", self.offset, np.int32, (None,), -(2**30), 2**30)
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "window", check.number("samples of a window", self.window, 1, INPUTS // len(offset)))
        self._check_memory()
        for name, dtype, high in (("multiplier", np.int32, INT32[1]), ("shift", np.uint8, 61)):
            array = check.integers(f"input {name}", getattr(self, name), dtype, offset.shape, 0, high)
            object.__setattr__(self, name, array)
        if self.scale is not None:
            object.__setattr__(self, "scale", check.positive("input scale", self.scale))
            if not np.isfinite(self.gain()).all():
                raise check.ProgramError(f"alpha_i {self.alpha:g} is too small: raw units of a float are not finite")
        if self.raw_scale is not None:
            raw_scale = check.floats("input raw_scale", self.raw_scale, np.float64, offset.shape)
            if not self.can_scale(raw_scale, offset.shape):
                raise check.ProgramError(f"input raw_scale must be powers of two in 2^-120..2^112, got {raw_scale}")
            object.__setattr__(self, "raw_scale", check.frozen(raw_scale.astype(np.float32)))

    def _check_memory(self) -> None:
        for name in ("differences", "hold"):
            object.__setattr__(self, name, check.flag(f"input {name}", getattr(self, name)))
        if self.n_state and self.low < LEAST:
            raise check.ProgramError(
                f"input low must be at least {LEAST} if samples are remembered, because {MISSING} means missing"
            )
        if self.differences and self.bits < COMPANDED_BITS:
            raise check.ProgramError(f"differences take input_bits of {COMPANDED_BITS} or more, got {self.bits}")

    @staticmethod
    def can_scale(raw_scale: np.ndarray, shape: tuple[int, ...]) -> bool:
        """Whether these are raw units of channels of that shape: powers of two of ordinary size."""
        powers = np.frexp(raw_scale)[0] == 0.5
        usual = (raw_scale >= RAW_SCALES[0]) & (raw_scale <= RAW_SCALES[1])
        return raw_scale.shape == shape and bool((powers & usual).all())

    @property
    def channels(self) -> int:
        return len(self.offset)

    @property
    def n_raw(self) -> int:
        return self.channels * self.window

    @property
    def n_i(self) -> int:
        return self.n_raw * (2 if self.differences else 1)

    @property
    def n_state(self) -> int:
        return self.channels if self.differences or self.hold else 0

    def describe(self) -> str:
        said = ["1 channel" if self.channels == 1 else f"{self.channels} {self.noun}"]
        said += [f"{self.window} samples of each per step"] if self.window > 1 else []
        said += ["with companded differences"] if self.differences else []
        return ", ".join([*said, *(["missing samples held"] if self.hold else [])])

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_raw,)

    @property
    def limits(self) -> tuple[int, int]:
        return self.low, self.high

    @property
    def stored_bytes(self) -> int:
        return 0 if self.plain else 9 * self.channels

    @property
    def plain(self) -> bool:
        """Whether x_i is the raw sample itself."""
        top = 2 ** (self.bits - 1)
        as_is = not self.offset.any() and (self.multiplier == 1).all() and not self.shift.any()
        return bool(as_is) and -top <= self.low and self.high <= top - 1

    @property
    def narrow(self) -> bool:
        """Whether 32 bits hold raw − offset, its product with the multiplier, and that with its half."""
        rows = zip(self.offset.tolist(), self.multiplier.tolist(), self.shift.tolist(), strict=True)
        return all(self._is_narrow(*row) for row in rows)

    def _is_narrow(self, offset: int, multiplier: int, shift: int) -> bool:
        least, most = ((raw - offset) * multiplier for raw in self.limits)
        return shift < 32 and INT32[0] <= least and most + (1 << shift >> 1) <= INT32[1]

    def along(self, channels: np.ndarray) -> np.ndarray:
        """From one value per channel to one value per number of a step.  # (channels,) -> (n_raw,)"""
        return channels if self.window == 1 else np.tile(channels, self.window)

    def integers(self, raw: np.ndarray) -> np.ndarray:
        """x_i of raw samples, none of them missing.  # (..., n_raw) -> (..., n_raw) int64"""
        shift = self.along(self.shift).astype(np.int64)
        half = np.where(shift > 0, 1 << np.maximum(shift - 1, 0), 0)
        multiplier = self.along(self.multiplier).astype(np.int64)
        x = ((raw.astype(np.int64) - self.along(self.offset)) * multiplier + half) >> shift
        top = 2 ** (self.bits - 1)
        return x.clip(-top, top - 1)

    def step(self, kept: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kept, x = self.sequence(kept, raw[:, None])
        return kept, x[:, 0]

    def sequence(self, kept: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All steps at once: what is kept at their end, and what the first layer reads.  # raw (B, T, n_raw)"""
        if not self.n_state:
            return kept, self.integers(raw)
        kept, held, differences = remembered(kept, raw.reshape(len(raw), -1, self.channels), self.low, self.high)
        held = held.reshape(raw.shape)
        x = np.where(held == MISSING, 0, self.integers(held))
        return kept, np.concatenate([x, differences.reshape(raw.shape)], -1) if self.differences else x

    def sum_bound(self, U: np.ndarray) -> np.ndarray:
        """Σ|U_i|·max|x_i| of each row; x_i does not decrease with the raw sample, so its ends are extreme.  # (n_h,)"""
        ends = self.integers(np.repeat([[self.low], [self.high]], self.n_raw, axis=1))
        largest = np.abs(ends).max(0)
        largest = np.append(largest, np.full(self.n_i - self.n_raw, COMPANDED_TOP))
        return np.abs(U.astype(np.int64)) @ largest

    def accept(self, x: np.ndarray, *, saturate: bool = False) -> tuple[np.ndarray, int]:
        """Raw samples (B, T, n_raw), checked against the declared range or clipped to it, and how many were clipped."""
        if x.ndim != 3 or x.shape[2] != self.n_raw:
            raise SettingsError(f"this program reads raw samples (B, T, {self.n_raw}); got {shape_of(x)}")
        if x.dtype.kind not in "iu":
            raise SettingsError(
                f"this program reads raw integers in {self.low}..{self.high}, got {x.dtype}; "
                "program.input.from_floats(x) turns the floats it was trained on into them"
            )
        if not x.size or (np.minimum.reduce(x, None) >= self.low and np.maximum.reduce(x, None) <= self.high):
            return x.astype(np.int16, copy=False), 0  # the usual case, found fast
        outside = int((self.clip(x) != x).sum())
        if outside and not saturate:
            raise SettingsError(
                f"inputs must lie in {self.low}..{self.high}, got {x.min()}..{x.max()} "
                f"({outside} of {x.size} outside); saturate=True clips and counts them"
            )
        return self.clip(x).astype(np.int16), outside

    def gain(self) -> np.ndarray:
        """Raw units per unit of x, channel by channel: the map from raw samples to x_i, backwards.  # float64"""
        with np.errstate(over="ignore", divide="ignore"):  # infinite is refused
            units = np.ldexp(1.0, self.shift.astype(int)) / np.float64(self.alpha / 2 ** (self.bits - 1))
        return np.divide(units, self.multiplier, out=np.zeros(self.channels), where=self.multiplier > 0)

    @property
    def ranges(self) -> np.ndarray:
        """Where x_i does not saturate.  # (channels, 2)"""
        reach = np.ldexp(2.0 ** (self.bits - 1), self.shift.astype(int)) / np.maximum(self.multiplier, 1)
        offset = self.offset[:, None].astype(np.float64)
        raw = (offset + np.stack([-reach, reach], 1)).clip(self.low, self.high)
        if self.raw_scale is not None:
            return raw * self.raw_scale[:, None]
        gain = self.gain()[:, None]
        return raw if self.scale is None else np.divide(raw - offset, gain, out=np.zeros_like(raw), where=gain > 0)

    @property
    def takes_floats(self) -> bool:
        """Whether `from_floats`, and NAME_quantize in C, exist."""
        return self.raw_scale is not None or self.scale is not None

    @property
    def in_double(self) -> bool:
        return self.takes_floats and self.raw_scale is None

    def from_floats(self, x: np.ndarray) -> np.ndarray:
        """Raw samples of floats in the units of the training data, as NAME_quantize, not yet held to low..high."""
        if self.raw_scale is None:
            return self._from_network(x)
        x = self._float32(x)
        with np.errstate(over="ignore"):
            return self._rounded(x.astype(np.float64) / self.along(self.raw_scale), x)

    def from_network(self, x: np.ndarray) -> np.ndarray:
        """Raw samples of the x that the network itself sees, standardised where `raw_scale` says what came before."""
        if self.differences:
            raise SettingsError("raw samples cannot be told from differences; feed this program raw integers")
        return self._from_network(x)

    def _from_network(self, x: np.ndarray) -> np.ndarray:
        if self.scale is None:
            raise SettingsError("this program has no scale for floats; feed it raw integers")
        x = self._float32(x)
        with np.errstate(over="ignore", invalid="ignore"):  # gain 0 times infinity: NaN, the lowest in C too
            return self._rounded(x.astype(np.float64) * self.along(self.gain()) + self.along(self.offset), x)

    def _float32(self, x: np.ndarray) -> np.ndarray:
        """As a device has them; past the largest float32 they are infinite, and saturate."""
        x = np.asarray(x)
        if not np.isfinite(x).all() and not (self.hold and not np.isinf(x).any()):
            raise SettingsError("x holds NaN or infinity; fill or drop missing values first")
        with np.errstate(over="ignore"):
            return x.astype(np.float32)

    def _rounded(self, raw: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Clipped before the cast: 1e300 has no int64. Where missing ones are held, only NaN is one."""
        found = round_half_away(np.nan_to_num(raw, nan=-(2.0**31)).clip(-(2.0**31), 2.0**31))
        return np.where(np.isnan(x), MISSING, np.maximum(found, LEAST)) if self.hold else found

    def read(self, x: np.ndarray) -> np.ndarray:
        """x_i from step·x_i, which the network sees. With memory the raw samples cannot be reconstructed."""
        if not self.n_state:
            return Input.read(self, x)  # slots: super() knows another class
        top = 2 ** (self.bits - 1)
        return round_half_away(np.asarray(x, np.float64) * (top / self.alpha)).clip(-top, top - 1)

    def clip(self, raw: np.ndarray) -> np.ndarray:
        held = raw.clip(self.low, self.high)
        return np.where(raw == MISSING, raw, held) if self.hold else held

    def draw(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        """Extremes are common among them, and of differences small ones; INT16_MIN is missing where that is held."""
        free = rng.integers(self.low, self.high + 1, (steps, self.n_raw))
        if self.differences:
            before = np.roll(free.reshape(-1, self.channels), 1, 0).reshape(free.shape)
            near = before + (rng.integers(-(2**14), 2**14, free.shape) >> rng.integers(0, 15, free.shape))
            free = np.where(rng.random(free.shape) < 0.5, near, free).clip(self.low, self.high)
        ends = rng.choice([self.low, self.high, *INT16], free.shape)  # past the declared range, a step clamps
        return np.where(rng.random(free.shape) < 0.2, ends, free).astype(np.int16)

    def draw_floats(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        """On, near and halfway between raw samples, and far outside their range."""
        if not self.takes_floats:
            return np.zeros((0, self.n_raw), np.float32)
        shape = steps, self.n_raw
        raw = rng.integers(self.low - 2, self.high + 3, shape) + rng.choice([0, 0.5, -0.5, 0.4999], shape)
        gain = self.along(self.gain())
        if self.raw_scale is None:
            x = np.divide(raw - self.along(self.offset), gain, out=np.zeros_like(raw), where=gain > 0)
        else:
            x = raw * self.along(self.raw_scale)
        far = rng.choice([-LARGEST, LARGEST, -0.0], x.shape)
        x = np.where(rng.random(x.shape) < 0.1, far, x.clip(-LARGEST, LARGEST)).astype(np.float32)
        return np.where(rng.random(x.shape) < 0.1, np.float32(np.nan), x) if self.hold else x

    def fields(self, room: int) -> dict[str, Any]:
        found = {"n_i": self.n_raw, "room": room, "kind": "QORNN_SAMPLES", "bits": self.bits, "plain": int(self.plain)}
        found |= {"channels": self.channels, "low": self.low, "high": self.high}
        found |= {"differences": int(self.differences), "hold": int(self.hold)}
        if self.plain:
            return found
        found["narrow"] = int(self.narrow)
        return found | {"offset": self.offset, "multiplier": self.multiplier, "shift": self.shift}

    def layer_fields(self) -> dict[str, Any]:
        return {"input": "QORNN_SAMPLES"}
