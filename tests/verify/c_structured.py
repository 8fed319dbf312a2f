"""Small programs whose W is not stored, of every kind."""

import math
from fractions import Fraction

import numpy as np
from single import single

from qornn.integer.activations import Identity, ModReLU, ReLU
from qornn.integer.factors import make_multiplier, make_table, make_thresholds
from qornn.integer.inputs import Codes, Samples
from qornn.integer.matrices import Cycle, Delay, Hadamard, Matrix
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.requant import PerRow
from qornn.integer.state import State

KINDS = ("hadamard", "hadamard-block", "cycle", "delay")
SIZES = {"hadamard": 32, "hadamard-block": 24, "cycle": 21, "delay": 26}
FORMS = ("multiplier", "shift", "thresholds", "per-row", "per-row~")
# Every form of every kind, with each activation, input, width of U and V, and readout several times.
CASES = [
    (kind, form, {"seed": 7 * k + f, **parts})
    for k, kind in enumerate(KINDS)
    for f, (form, parts) in enumerate(
        zip(
            ("multiplier", "shift", "thresholds", "thresholds", "per-row", "per-row~"),
            (
                {"k_U": 4, "n_i": 3, "bits_V": 8},
                {"k_U": 4, "bits_V": 4},
                {"k_U": 2, "activation": "modrelu", "bits_V": 3},
                {"k_U": 5, "n_i": 6, "codes": True, "bias": False, "relu": False, "k_a": 6},
                {"k_U": 8, "n_i": 2, "activation": "relu", "integer": False, "plain": False},
                {"k_U": 8, "codes": True, "n_i": 4, "bits_V": 2},
            ),
            strict=True,
        )
    )
]
ODD = [  # the smallest, sizes past a byte of signs, buffers past the stack, lines that do not just move
    ("hadamard", "shift", {"n_h": 2}),
    ("hadamard", "shift", {"n_h": 4, "k_U": 2}),
    ("hadamard", "multiplier", {"n_h": 8, "n_i": 2, "k_U": 8}),
    ("hadamard", "shift", {"n_h": 16, "shifts": (0, 3), "gain": 4.0}),
    ("hadamard-block", "shift", {"n_h": 6, "block": 2}),
    ("hadamard-block", "multiplier", {"n_h": 256, "block": 128}),
    ("cycle", "shift", {"n_h": 2}),
    ("cycle", "shift", {"n_h": 8, "k_U": 2, "shifts": (0, 0)}),
    ("cycle", "multiplier", {"n_h": 15, "n_i": 5, "k_U": 3}),
    ("delay", "shift", {"n_h": 10, "lines": 4}),
    ("delay", "shift", {"n_h": 139, "lines": 16, "n_i": 2}),
    ("delay", "shift", {"n_h": 40, "gain": 0.5}),
    ("delay", "per-row", {"n_h": 40, "gain": 0.9, "activation": "modrelu", "codes": True, "n_i": 3}),
    ("delay", "shift", {"n_h": 256 * 257 // 2, "lines": 256, "k_a": 8}),
]

MIXED = [  # every form of V, states of 16 and of 32 bits, the smallest sizes, with relu and without
    ("cycle", "shift", {"n_h": 2, "mix": True}),
    ("cycle", "shift", {"n_h": 4, "mix": True, "integer": False}),
    ("cycle", "shift", {"n_h": 64, "mix": True, "seed": 1}),
    ("cycle", "per-row", {"n_h": 32, "mix": True, "bits_V": 3, "relu": False, "seed": 3}),
    ("cycle", "thresholds", {"n_h": 256, "mix": True, "bits_V": 8, "k_a": 8}),
    ("hadamard", "shift", {"n_h": 2, "mix": True, "integer": False, "seed": 3}),
    ("hadamard", "multiplier", {"n_h": 128, "mix": True, "bits_V": 7, "n_o": 1}),
    ("hadamard-block", "shift", {"n_h": 32, "mix": True, "integer": False, "relu": False}),
    ("hadamard", "multiplier", {"n_h": 16, "mix": True, "bits_V": 2, "seed": 3}),
    ("hadamard", "multiplier", {"n_h": 64, "mix": True, "integer": False}),
]


def recurrent(kind, n_h, rng, *, block=8, lines=4):
    """A W of that kind."""

    def signs(n):
        return rng.choice([-1, 1], n).astype(np.int8)

    if kind == "cycle":
        return Cycle(units=n_h)
    if kind == "delay":
        return Delay(units=n_h, signs=signs(lines))
    return Hadamard(signs=signs(n_h), block=n_h if kind == "hadamard" else block)


def structured(
    kind,
    form="shift",
    activation="identity",
    *,
    bias=True,
    codes=False,
    integer=True,
    relu=True,
    mix=False,
    bits_V=4,
    seed=0,
    n_i=1,
    n_h=None,
    n_o=3,
    k_U=4,
    k_a=9,
    k_i=5,
    plain=True,
    gain=1.0,
    shifts=(2, 1),
    **parts,
):
    """A program; `form` as in requant, or shift where the factor is a power of two, per-row~ for rows that differ.

    States live through a step about as large as they were, times `gain`, and some saturate.
    """
    rng = np.random.default_rng(seed)
    n_h = n_h or SIZES[kind]
    W = recurrent(kind, n_h, rng, **parts)
    top_U = 2 ** (k_U - 1)
    U = rng.integers(-top_U, top_U, (n_h, n_i))
    if W.driven is not None:
        U[np.delete(np.arange(n_h), W.driven)] = 0
    state = State(bits=k_a, alpha=1.0)
    c = Fraction(float(W.alpha) * gain)
    shift_W, shift_U = shifts
    if form == "shift":
        c = Fraction(2) ** round(math.log2(c))
    if kind == "delay" and gain == 1 and form != "per-row~":
        c = Fraction(1, math.isqrt(len(W.signs)))  # exactly, so that lines move
    return single(
        W=W,
        U=Matrix(integers=U, bits=k_U, alpha=1.0),
        state=state,
        input=_input(codes, n_i, k_i, plain, rng),
        activation=_activation(activation, bias, form, W, n_h, rng),
        requant=_requant(form, c, state.top, n_h, rng, {"shift_W": shift_W, "shift_U": shift_U}),
        readout=_readout(integer, {"relu": relu, "mix": mix}, bits_V, n_o, n_h, rng),
    )


def _input(codes, n_i, k_i, plain, rng):
    if codes:
        return Codes(size=n_i)
    top, zero = 2 ** (k_i - 1), np.zeros(n_i, int)
    scaled = {"offset": zero, "multiplier": zero + 1, "shift": zero, "low": -top, "high": top - 1}
    if not plain:
        scaled |= {"offset": rng.integers(-50, 50, n_i), "multiplier": zero + 3, "shift": zero + 2}
    return Samples(bits=k_i, alpha=1.0, **scaled)


def _activation(activation, bias, form, W, n_h, rng):
    if activation == "relu":
        return ReLU()
    if activation == "identity" and not bias:
        return Identity()
    values = rng.integers(-60, 60, n_h)
    if form.startswith("per-row"):
        values = values * 2**20
    if W.driven is not None:
        values[np.delete(np.arange(n_h), W.driven)] = 0
    return Identity(bias=values) if activation == "identity" else ModReLU(bias=values)


def _requant(form, c, top, n_h, rng, shifts):
    if form.startswith("per-row"):
        s = 24
        rows = np.ones(n_h, np.int64)
        M_W = rows * round(c * 2**s)
        if form == "per-row~":
            M_W = M_W - rng.integers(0, 2**12, n_h)
        return PerRow(M_W=M_W, M_U=rows * 2 ** (s - 2), shift=rows * s)
    c = c / 2 ** shifts["shift_W"]
    if form == "thresholds":
        return make_thresholds(c, top, **shifts)
    if form == "table":
        return make_table(c, top, **shifts)
    return make_multiplier(c, **shifts)


def _readout(integer, seen, bits_V, n_o, n_h, rng):
    if not integer:
        V = rng.normal(size=(n_o, n_h)).astype(np.float32)
        return FloatReadout(V=V, b_o=rng.normal(size=n_o).astype(np.float32), scale=0.01, **seen)
    top = 2 ** (bits_V - 1)
    V = rng.integers(-top, top, (n_o, n_h))
    return IntReadout(V=V, bias=rng.integers(-1000, 1000, n_o), scale=0.01, bits=bits_V, **seen)
