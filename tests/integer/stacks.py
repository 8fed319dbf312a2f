"""Random stacks of rotations and mixes, with every kind of part around them; made apart from model/ and lowering/."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from qornn.integer.inputs import Codes, Samples
from qornn.integer.layers import Mix, Rotations
from qornn.integer.matrices import Matrix
from qornn.integer.mean import most_steps
from qornn.integer.program import IntegerProgram
from qornn.integer.readout import FloatReadout, IntReadout


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a stack is made of. `bits` are those of U, C and S, `steps_max` at most that of the readout."""

    stem: bool = True
    layers: int = 2
    width: int = 4
    pairs: int = 3
    skip: bool = False
    codes: bool = False
    channels: int = 2
    window: int = 1
    input_bits: int = 8
    narrow: bool = True
    differences: bool = False
    hold: bool = False
    bits: int = 4
    state_bits: int = 8
    lambda_bits: int = 8
    steps: str = "mean"
    steps_max: int = 2**20
    floats: bool = False  # a float readout
    bits_V: int = 4
    n_o: int = 3
    relu: bool = False


def whole(rng, bits, shape):
    """Integers of so many bits; the ends of the range are common, and so is zero."""
    top = 2 ** (bits - 1)
    return np.where(rng.random(shape) < 0.2, rng.choice([-top, 0, top - 1], shape), rng.integers(-top, top, shape))


def make_turns(rng, pairs, lambda_bits):
    """Anything in the unit disc; λ = 1, i and slow rotations are common."""
    one = 2 ** (lambda_bits - 1)
    radius, angle = np.sqrt(rng.random(pairs)), rng.uniform(-np.pi, np.pi, pairs)
    slow = rng.random(pairs) < 0.5
    radius, angle = np.where(slow, 1 - 0.02 * rng.random(pairs), radius), np.where(slow, angle / 8, angle)
    turns = np.trunc(np.stack([radius * np.cos(angle), radius * np.sin(angle)]) * one).astype(int)
    turns[0], turns[1] = turns[0].clip(1 - one, one), turns[1].clip(-one, one - 1)
    for j in np.flatnonzero(rng.random(pairs) < 0.2):
        turns[:, j] = [(one, 0), (0, -one), (one - 1, 0), (0, 0)][rng.integers(4)]
    return turns


def make_input(rng, shape):
    if shape.codes:
        return Codes(size=shape.channels * shape.window)
    top, n = 2 ** (shape.input_bits - 1), shape.channels
    if rng.random() < 0.3:
        zero = np.zeros(n, int)
        given = {"low": -top, "high": top - 1, "offset": zero, "multiplier": zero + 1, "shift": zero}
    else:
        low, high = sorted(rng.integers(-(2**15), 2**15, 2).tolist())
        bits = 14 if shape.narrow else 30
        given = {
            "low": low,
            "high": high,
            "offset": rng.integers(-1000, 1000, n),
            "multiplier": rng.integers(0, 2**bits, n),
            "shift": rng.integers(bits - 6, bits + 1, n),
        }
    if shape.differences or shape.hold:
        given |= {"low": max(given["low"], -(2**15) + 1), "differences": shape.differences, "hold": shape.hold}
    return Samples(bits=shape.input_bits, alpha=1.0, window=shape.window, **given)


def matrix(rng, rows, columns, bits):
    return Matrix(integers=whole(rng, bits, (rows, columns)), bits=bits, alpha=np.exp2(rng.integers(-6, 3, rows)))


def halved(make, source):
    """The layer that `make` gives of the largest shift that no sum of it is too large for."""
    for reach in (6, 4, 2, 1, 0):
        layer = make(reach)
        if max(int(bound.max()) for bound in layer.bounds(source)) < 2**31:
            return layer
    raise AssertionError("sums pass 32 bits without any shift")


def make_rotations(rng, source, shape):
    p, seed = shape.pairs, rng.integers(2**32)

    def make(reach):
        rng = np.random.default_rng(seed)
        return Rotations(
            turns=make_turns(rng, p, shape.lambda_bits),
            U=matrix(rng, 2 * p, source.n_i, shape.bits),
            shift=rng.integers(-reach, reach + 1, 2 * p),
            bits=shape.state_bits,
            lambda_bits=shape.lambda_bits,
        )

    return halved(make, source)


def make_mix(rng, source, shape, skip):
    d, seed = shape.width, rng.integers(2**32)

    def make(reach):
        rng = np.random.default_rng(seed)
        beside = {}
        if skip:
            S = matrix(rng, d, source.skip.n_i, shape.bits)
            beside = {"S": S, "apart": rng.integers(-reach, reach + 1, d)}
        C = matrix(rng, d, source.n_i, shape.bits)
        size = int(source.sum_bound(C.integers).max() // 4) + 1
        bias = rng.integers(-size, size + 1, d) * rng.choice([1, 1, 1, 8])
        # So that outputs use their range: a sum of this size becomes about 127.
        t = max(size.bit_length() - 6, 0) + rng.integers(-1, 2, d)
        return Mix(C=C, bias=bias, shift=t.clip(-reach, 31), **beside)

    return halved(make, source)


def make_readout(rng, source, shape):
    n, bits = source.n_i, shape.bits_V
    if shape.floats:
        V, b_o = rng.normal(size=(shape.n_o, n)), rng.normal(size=shape.n_o)
        return FloatReadout(V=V, b_o=b_o, scale=2.0**-6, relu=shape.relu, steps=shape.steps)
    V, bias = whole(rng, bits, (shape.n_o, n)), rng.integers(-500, 500, shape.n_o)
    most = min(most_steps(V, bias, source.top), shape.steps_max) if shape.steps == "mean" else None
    kept = {"steps": shape.steps, "steps_max": most, "relu": shape.relu}
    return IntReadout(V=V, bits=bits, bias=bias, scale=float(np.exp2(rng.integers(-9, 0))), **kept)


def make_stack(seed=0, **changes):
    """A random stack of that shape."""
    shape, rng = Shape(**changes), np.random.default_rng(seed)
    input = make_input(rng, shape)
    layers, source = [], input

    def append(layer):
        nonlocal source
        layers.append(layer)
        *_, source = sources_of(input, layers)

    if shape.stem:
        append(make_mix(rng, source, shape, skip=False))
    for _ in range(shape.layers):
        append(make_rotations(rng, source, shape))
        append(make_mix(rng, source, shape, shape.skip))
    return IntegerProgram(input=input, layers=layers, readout=make_readout(rng, source, shape))


def sources_of(input, layers):
    """What each layer reads, and what is read of the last."""
    from qornn.integer.layers import sources

    return list(sources(input, (*layers, layers[-1])))


@st.composite
def stacks(draw, **fixed):
    """Small stacks of every kind."""
    steps, differences = draw(st.sampled_from(["mean", "last", "all"])), draw(st.booleans())
    shape = {
        "stem": draw(st.booleans()),
        "layers": draw(st.integers(1, 2)),
        "width": draw(st.integers(1, 5)),
        "pairs": draw(st.integers(1, 4)),
        "skip": draw(st.booleans()),
        "codes": draw(st.booleans()),
        "channels": draw(st.integers(1, 3)),
        "window": draw(st.integers(1, 3)),
        "differences": differences,
        "hold": draw(st.booleans()),
        "input_bits": draw(st.integers(8 if differences else 2, 12)),
        "narrow": draw(st.booleans()),
        "bits": draw(st.integers(2, 8)),
        "state_bits": draw(st.integers(4, 16)),
        "lambda_bits": draw(st.integers(8, 12)),
        "steps": steps,
        "steps_max": 2 * draw(st.integers(1, 8)),
        "floats": steps != "mean" and draw(st.booleans()),
        "bits_V": draw(st.integers(2, 8)),
        "n_o": draw(st.integers(1, 3)),
        "relu": draw(st.booleans()),
    }
    return make_stack(draw(st.integers(0, 2**32 - 1)), **{**shape, **fixed})


def samples(n, bits=8):
    top, zero = 2 ** (bits - 1), np.zeros(n, int)
    return Samples(bits=bits, alpha=1.0, low=-top, high=top - 1, offset=zero, multiplier=zero + 1, shift=zero)
