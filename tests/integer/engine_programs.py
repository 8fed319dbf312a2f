"""Programs of one layer for the native engine, and the comparison with the law."""

from fractions import Fraction

import numpy as np
import pytest
from single import single

from qornn.integer.activations import Identity, ModReLU, ReLU
from qornn.integer.engine import run
from qornn.integer.engine.library import library
from qornn.integer.factors import make_multiplier, make_per_row, make_table, make_thresholds
from qornn.integer.inputs import Codes, Samples
from qornn.integer.matrices import Dense, Matrix
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.simulate import simulate
from qornn.integer.state import State

SIZES = (1, 2, 3, 5, 17, 64, 65, 170)
WIDTHS = (1, 2, 3, 4, 5, 8, 17, 48)  # n_i
REQUANTS = ("multiplier", "thresholds", "per-row")
native = pytest.mark.skipif(library() is None, reason="installed without the native integer engine")


def build(
    seed=0, *, n_h=17, n_i=2, n_o=3, bits=4, bits_U=None, activation_bits=12, codes=False, plain=True, bits_x=9,
    requant="per-row", activation="relu", identity=False, readout="float", relu=False, steps="last",
):  # fmt: skip
    """A random program whose states neither die nor all saturate."""
    rng = np.random.default_rng(seed)
    bits_U = bits_U or bits
    alpha = 1.0 if n_h < 4 else 2.0 / np.sqrt(n_h)
    W = Dense(integers=random_matrix(rng, bits, (n_h, n_h)), bits=bits, alpha=alpha, identity=identity)
    U = Matrix(integers=random_matrix(rng, bits_U, (n_h, n_i)), bits=bits_U, alpha=1.0)
    state = State(bits=activation_bits, alpha=1.0)
    if codes:
        inputs = Codes(size=n_i)
    elif plain:
        zero = np.zeros(n_i, np.int32)
        top = 2 ** (bits_x - 1)
        inputs = Samples(bits=bits_x, alpha=1.0, low=-top, high=top - 1, offset=zero, multiplier=zero + 1, shift=zero)
    else:
        inputs = Samples(
            bits=9, alpha=1.0, low=-(2**15), high=2**15 - 1, offset=rng.integers(-9000, 9000, n_i),
            multiplier=rng.integers(0, 2**24, n_i), shift=rng.choice([0, 1, 25, 31], n_i),
        )  # fmt: skip
    sums = np.stack([W.row_sums() * state.top, inputs.sum_bound(U.integers)], 1)
    reach = state.top / max(1, np.median(sums[:, 1]))  # the input alone drives a unit to about its top
    if requant == "per-row":
        c_W, c_U = rng.uniform(0.5, 1.5, (2, n_h)) * np.array([[alpha / 2 ** (bits - 1)], [reach]])
        bias = rng.uniform(-0.2, 0.2, n_h) * state.top
        made, wide_bias, _ = make_per_row(c_W, c_U, bias, sums, identity=identity, top=state.top)
    else:
        c = Fraction(alpha / 2 ** (bits - 1))
        shifts = {"shift_W": 0, "shift_U": max(0, min(6, int(np.log2(max(reach / float(c), 1)))))}
        limit = (2**31 - 1) // 2 // max(1, int((sums[:, 0] + (sums[:, 1] << shifts["shift_U"])).max()))
        shifts["shift_W"] = min(2, max(0, limit.bit_length() - 1))
        c /= 2 ** shifts["shift_W"]
        make = {"multiplier": make_multiplier, "thresholds": make_thresholds, "table": make_table}[requant]
        made = make(c, **shifts) if requant == "multiplier" else make(c, state.top, **shifts)
        wide_bias = rng.integers(-(2**9), 2**9, n_h)
    kinds = {"relu": ReLU, "identity": Identity, "modrelu": lambda: ModReLU(bias=wide_bias)}
    if readout == "float":
        V = rng.normal(size=(n_o, n_h)).astype(np.float32)
        out = FloatReadout(V=V, b_o=rng.normal(size=n_o).astype(np.float32), scale=0.01, relu=relu)
    else:
        V = rng.integers(-128, 128, (n_o, n_h))
        out = IntReadout(V=V, bias=rng.integers(-(2**20), 2**20, n_o), scale=0.01, relu=relu)
    return single(
        W=W, U=U, state=state, input=inputs, activation=kinds[activation](), requant=made, readout=out, steps=steps
    )


def random_matrix(rng, bits, shape):
    top = 2 ** (bits - 1)
    return rng.integers(-top, top, shape)


def data(program, B=3, T=9, seed=1):
    rng = np.random.default_rng(seed)
    if isinstance(program.input, Codes):
        return rng.integers(0, program.n_i, (B, T))
    x = rng.integers(program.input.low, program.input.high + 1, (B, T, program.n_i))
    x[rng.random(x.shape) < 0.2] = program.input.high  # the ends, where a clamp or a sign goes wrong
    x[rng.random(x.shape) < 0.2] = program.input.low
    return x


def assert_equal(program, lengths=None):
    x = data(program)
    states, y = simulate(program, x, lengths)
    for how in layout_kernels(program):
        np.testing.assert_array_equal(run.states(program, x, lengths, **how), states, err_msg=str(how))
        got = run.run(program, x, lengths, **how)
        assert got.dtype == y.dtype
        np.testing.assert_array_equal(got, y, err_msg=str(how))
    return states


def layout_kernels(program):
    return [{"layout": kind, "kernel": k} for kind in ("bytes", "packed") for k in run.available(program, kind)]
