"""Random structured matrices, and programs around any W, made apart from lowering/."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from single import changed, single

from qornn.integer.activations import Identity, ModReLU, ReLU
from qornn.integer.factors import make_multiplier, make_per_row, make_table, make_thresholds
from qornn.integer.inputs import Codes, Samples
from qornn.integer.matrices import Cycle, Delay, Dense, Hadamard, Matrix
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.state import State

KINDS = ("hadamard", "hadamard-block", "cycle", "delay")
FORMS = ("multiplier", "thresholds", "table", "per-row")


def signs(rng, n):
    return rng.choice([-1, 1], n)


def make_W(kind, rng, small=False):
    """A small W of that kind."""
    if kind == "hadamard":
        n = int(2 ** rng.integers(1, 4 if small else 7))
        return Hadamard(signs=signs(rng, n), block=n)
    if kind == "hadamard-block":
        block = int(2 ** rng.integers(1, 3 if small else 5))
        return Hadamard(signs=signs(rng, block * int(rng.integers(2, 4 if small else 7))), block=block)
    if kind == "cycle":
        return Cycle(units=int(rng.integers(2, 9 if small else 40)))
    lines = 4 if small or rng.random() < 0.5 else 16
    least = lines * (lines + 1) // 2
    return Delay(units=least + int(rng.integers(0, 3 if small else 30)), signs=signs(rng, lines))


@st.composite
def matrices(draw, kinds=KINDS):
    return make_W(draw(st.sampled_from(kinds)), np.random.default_rng(draw(st.integers(0, 2**32 - 1))))


def make_program(
    W,
    form="multiplier",
    activation="identity",
    *,
    seed=0,
    k_a=9,
    e=2,
    codes=False,
    bits_V=None,
    steps="last",
    mix=False,
    n_i=3,
):
    """A program of that W. With `bits_V` V are integers. `e` is how far the input's sum is shifted (scheme paper)."""
    rng = np.random.default_rng(seed)
    n_h, k_U, k_i = W.n_h, 4, 2 if codes else 6
    U = np.zeros((n_h, n_i), int)
    reached = np.arange(n_h) if W.driven is None else W.driven
    U[reached] = rng.integers(-8, 8, (len(reached), n_i))
    zero = np.zeros(n_i, int)
    samples = Samples(bits=k_i, alpha=1.5, low=-32, high=31, offset=zero, multiplier=zero + 1, shift=zero)
    inputs = Codes(size=n_i) if codes else samples
    alpha_U, m = 0.75, W.bits + k_a - k_U - k_i - e
    state = State(bits=k_a, alpha=2.0**m / float(W.alpha))
    s, bias = max(0, -e), np.zeros(n_h, int)
    if form == "per-row":
        rows = np.ones(n_h)
        c_U = inputs.alpha * alpha_U / (state.step * 2.0 ** (k_U + k_i - 2))
        b = np.zeros(n_h)
        b[reached] = rng.uniform(-0.2, 0.2, len(reached)) * state.top
        sums = np.stack([W.row_sums() * state.top, inputs.sum_bound(U)], 1)
        requant, bias, _ = make_per_row(
            rows * W.alpha / 2 ** (W.bits - 1), rows * c_U, b, sums, identity=False, top=state.top
        )
    else:
        c, shifts = Fraction(float(W.alpha)) / 2 ** (W.bits - 1 + s), {"shift_W": s, "shift_U": max(e, 0)}
        bias[reached] = rng.integers(-40, 40, len(reached)) << s
        make = {"thresholds": make_thresholds, "table": make_table}
        requant = make_multiplier(c, **shifts) if form == "multiplier" else make[form](c, state.top, **shifts)
    if bits_V is None:
        V, b_o = rng.normal(size=(3, n_h)), rng.normal(size=3)
        readout = FloatReadout(V=V, b_o=b_o, scale=0.01, relu=True, mix=mix)
    else:
        top = 2 ** (bits_V - 1)
        V = rng.integers(-top, top, (3, n_h))
        V[0, :2] = -top, top - 1
        b_o = rng.integers(-100, 100, 3)
        readout = IntReadout(V=V, bits=bits_V, bias=b_o, scale=0.01, relu=True, mix=mix)
    made = {
        "identity": Identity(),
        "biased": Identity(bias=bias),
        "modrelu": ModReLU(bias=bias),
        "relu": ReLU(),
    }
    return single(
        W=W,
        U=Matrix(integers=U, bits=k_U, alpha=alpha_U),
        state=state,
        input=inputs,
        activation=made[activation],
        requant=requant,
        readout=readout,
        steps=steps,
    )


@st.composite
def structured_programs(draw, kinds=KINDS, forms=FORMS):
    W = draw(matrices(kinds))
    steps = draw(st.sampled_from(["last", "all"]))
    return make_program(
        W,
        draw(st.sampled_from(forms)),
        draw(st.sampled_from(["identity", "biased", "modrelu", "relu"])),
        seed=draw(st.integers(0, 2**32 - 1)),
        k_a=draw(st.integers(4, 12)),
        e=draw(st.integers(-3, 5)),
        codes=draw(st.booleans()),
        bits_V=draw(st.none() | st.integers(2, 8)),
        steps=steps,
        mix=steps == "last" and W.n_h.bit_count() == 1 and draw(st.booleans()),
    )


def written_dense(program):
    """The same program around the stored matrix of W's entries, which must fit 8 bits: W_q is the same number."""
    integers = program.W.written_out()
    bits = 8 if np.abs(integers).max() > 1 else 2
    W = Dense(integers=integers, bits=bits, alpha=float(program.W.alpha) * 2 ** (bits - 1))
    return changed(program, W=W)
