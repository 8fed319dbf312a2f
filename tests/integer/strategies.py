"""Random valid programs, made from alphas by the paper's scheme, without lowering/, which does the same from torch."""

from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from single import changed, single

from qornn.integer.activations import Identity, ModReLU, ReLU
from qornn.integer.factors import make_multiplier, make_per_row, make_table, make_thresholds
from qornn.integer.inputs import Codes, Samples
from qornn.integer.matrices import Dense, Matrix
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.state import State

BOUND = 2**29  # times a 24-bit c, float64 holds every product: the float reference is exact


@dataclass(frozen=True, kw_only=True)
class Net:
    """A quantized network and its scales; W, U and x in integers. The alphas are float32 numbers."""

    W: np.ndarray
    U: np.ndarray
    V: np.ndarray
    b_o: np.ndarray
    b: np.ndarray  # of modReLU, in the network's own units
    k: int
    k_U: int
    k_a: int
    k_i: int
    alpha_W: float
    alpha_U: float
    alpha_i: float
    m: int  # α_W α_h = 2^m, scheme paper
    activation: str
    codes: bool

    @property
    def e(self):
        return self.k + self.k_a - self.k_U - self.k_i - self.m

    @property
    def s(self):
        return max(0, -self.e)

    @property
    def top(self):
        return 2 ** (self.k_a - 1) - 1

    @property
    def alpha_h(self):
        return 2.0**self.m / self.alpha_W

    @property
    def c(self):
        return Fraction(self.alpha_W) / 2 ** (self.k - 1 + self.s)

    @property
    def b_acc(self):
        exact = [Fraction(float(b)) / Fraction(self.alpha_i) / Fraction(self.alpha_U) for b in self.b]
        return np.array([round_exactly(b * Fraction(2) ** (self.k + self.k_a - 2 - self.m + self.s)) for b in exact])

    @property
    def largest(self):
        """The bound of the accumulator, without the bias."""
        x = 2 ** (self.k_i - 1) if not self.codes else 1
        n_i = 1 if self.codes else self.U.shape[1]
        sum_W = self.W.shape[0] * 2 ** (self.k - 1) * self.top
        return (sum_W << self.s) + (n_i * 2 ** (self.k_U - 1) * x << max(self.e, 0))

    def dense(self, identity=False):
        return Dense(integers=self.W, bits=self.k, alpha=self.alpha_W, identity=identity)

    def matrix(self):
        return Matrix(integers=self.U, bits=self.k_U, alpha=self.alpha_U)

    def input(self):
        n_i = self.U.shape[1]
        if self.codes:
            return Codes(size=n_i)
        top = 2 ** (self.k_i - 1)
        zero = np.zeros(n_i, int)
        plain = {"offset": zero, "multiplier": zero + 1, "shift": zero}
        raw_scale = np.exp2(np.arange(n_i) % 9 - 6) if n_i % 3 == 2 else None  # some read floats
        return Samples(bits=self.k_i, alpha=self.alpha_i, low=-top, high=top - 1, raw_scale=raw_scale, **plain)

    def act(self, bias):
        return {"relu": ReLU(), "identity": Identity(), "modrelu": ModReLU(bias=bias)}[self.activation]


def round_exactly(x):
    """Nearest integer of a Fraction, ties away from zero."""
    whole = int(2 * abs(x) + 1) // 2
    return whole if x >= 0 else -whole


def paper(net, form="thresholds", readout=None, steps="last"):
    """The program of scheme paper."""
    shifts = {"shift_W": net.s, "shift_U": max(net.e, 0)}
    make = {
        "multiplier": lambda: make_multiplier(net.c, **shifts),
        "thresholds": lambda: make_thresholds(net.c, net.top, **shifts),
        "table": lambda: make_table(net.c, net.top, **shifts),
    }
    unit = net.alpha_i * net.alpha_U * net.alpha_h / 2 ** (net.k_a - 1)
    return single(
        W=net.dense(),
        U=net.matrix(),
        state=State(bits=net.k_a, alpha=net.alpha_h),
        input=net.input(),
        activation=net.act(net.b_acc),
        requant=make[form](),
        readout=FloatReadout(V=net.V, b_o=net.b_o, scale=unit) if readout is None else readout,
        steps=steps,
    )


def per_row_factors(net):
    """c_W, c_U and c_b of every row."""
    rows = np.ones(len(net.W))
    c_U = net.alpha_U * net.alpha_i * 2.0 ** (net.k_a - 1) / (net.alpha_h * 2.0 ** (net.k_U + net.k_i - 2))
    c_b = net.b * 2.0 ** (net.k_a - 1) / net.alpha_h if net.activation == "modrelu" else 0 * rows
    return rows * net.alpha_W / 2 ** (net.k - 1), rows * c_U, c_b


def per_row(net, identity=False, readout=None, steps="last"):
    """The program of scheme per-row and the error bound of each row."""
    W, x_max = net.dense(identity), 1 if net.codes else 2 ** (net.k_i - 1)
    size_W, size_U = np.abs(net.W.astype(int)), np.abs(net.U.astype(int))
    sums = np.stack([size_W.sum(1) * net.top, (size_U.max(1) if net.codes else size_U.sum(1)) * x_max], 1)
    requant, B, errors = make_per_row(*per_row_factors(net), sums, identity=identity, top=net.top)
    unit = net.alpha_h / 2 ** (net.k_a - 1)
    program = single(
        W=W,
        U=net.matrix(),
        state=State(bits=net.k_a, alpha=net.alpha_h),
        input=net.input(),
        activation=net.act(B),
        requant=requant,
        readout=FloatReadout(V=net.V, b_o=net.b_o, scale=unit) if readout is None else readout,
        steps=steps,
    )
    return program, errors


def random_net(seed, *, n_i, n_h, n_o, k, k_U, k_a, e, m, alphas, activation, codes):
    """A network of those bits; k_i follows from m and e, and gives way where it must, then m follows from k_i and e."""
    rng = np.random.default_rng(seed)
    k_i = 2 if codes else int(np.clip(k + k_a - k_U - m - e, 2, 16))

    def whole(bits, *shape):  # the ends of the range are common, and so is zero
        top = 2 ** (bits - 1)
        free = rng.integers(-top, top, shape)
        return np.where(rng.random(shape) < 0.2, rng.choice([-top, 0, top - 1], shape), free)

    alpha_W, alpha_U, alpha_i = alphas
    net = Net(
        W=whole(k, n_h, n_h),
        U=whole(k_U, n_h, n_i),
        V=rng.normal(size=(n_o, n_h)).astype(np.float32),
        b_o=rng.normal(size=n_o).astype(np.float32),
        b=np.zeros(n_h),
        k=k,
        k_U=k_U,
        k_a=k_a,
        k_i=k_i,
        alpha_W=alpha_W,
        alpha_U=alpha_U,
        alpha_i=2.0 if codes else alpha_i,
        m=k + k_a - k_U - k_i - e,
        activation=activation,
        codes=codes,
    )
    while net.largest >= BOUND // 2:  # the factors meet sooner
        net = replace(net, m=net.m + int(np.sign(net.e)))
    # A bias of a few states, of either sign: |b_acc| stays below BOUND // 4.
    reach = min(0.3, BOUND / 4 / 2 ** (k + k_a - 2 + net.s))
    return replace(net, b=rng.uniform(-reach, reach, n_h) * net.alpha_h / 2 * net.alpha_W * alpha_U * net.alpha_i)


@st.composite
def nets(draw, activation=None, largest=5, **fixed):
    """Networks whose accumulators stay below BOUND; e takes both signs."""
    scale = st.floats(0.0625, 2, width=32, exclude_min=True)
    settings = {
        "n_i": draw(st.integers(1, largest)),
        "n_h": draw(st.integers(1, largest)),
        "n_o": draw(st.integers(1, 3)),
        "k": draw(st.integers(2, 8)),
        "k_U": draw(st.integers(2, 8)),
        "k_a": draw(st.integers(4, 16)),
        "e": draw(st.integers(-6, 8)),
        "m": draw(st.integers(-3, 3)),
        "alphas": (draw(scale), draw(scale), draw(scale)),
        "activation": activation or draw(st.sampled_from(["relu", "modrelu", "identity"])),
        "codes": draw(st.booleans()),
    }
    return random_net(draw(st.integers(0, 2**32 - 1)), **{**settings, **fixed})


def random_readout(rng, n_h, relu):
    V = rng.integers(-128, 128, (3, n_h))
    return IntReadout(V=V, bias=rng.integers(-1000, 1000, 3), scale=float(rng.uniform(0.001, 1)), relu=relu)


finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def programs(draw, tables=True):
    """Programs with every kind of part: alphas by row, identity offset, normalised inputs, either readout."""
    net = draw(nets(k_a=draw(st.integers(4, 10))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_h, n_i = net.U.shape
    readout = random_readout(rng, n_h, draw(st.booleans())) if draw(st.booleans()) else None
    steps = draw(st.sampled_from(["last", "all"]))
    forms = ["multiplier", "thresholds", "per-row", "per-row+I"]
    if tables and Fraction(net.top) / net.c < 2**16:
        forms.append("table")
    form = draw(st.sampled_from(forms))
    if form.startswith("per-row"):
        program, _ = per_row(net, form.endswith("I"), readout, steps)
        if draw(st.booleans()):
            W = replace(program.W, alpha=rng.uniform(0.1, 1, n_h))
            program = changed(program, W=W, U=replace(program.U, alpha=rng.uniform(0.1, 1, n_h)))
    else:
        program = paper(net, form, readout, steps)
    if isinstance(program.input, Samples) and draw(st.booleans()):
        low, high = sorted(rng.integers(-(2**15), 2**15, 2).tolist())
        window = draw(st.sampled_from([w for w in range(1, n_i + 1) if n_i % w == 0]))
        channels, bits = n_i // window, draw(st.sampled_from([14, 31]))  # of 14 bits, products have 32
        raw_scale = program.input.raw_scale
        normalised = replace(
            program.input,
            low=low,
            high=high,
            offset=rng.integers(-1000, 1000, channels),
            multiplier=rng.integers(0, 2**bits, channels),
            shift=rng.integers(20, 45, channels) if bits > 14 else rng.integers(0, 31, channels),
            scale=draw(st.none() | st.floats(1e-3, 1e3)),
            raw_scale=None if raw_scale is None else raw_scale[:channels],
            window=window,
        )
        program = changed(program, input=normalised)
    return program.with_provenance(**draw(st.dictionaries(st.text(), json_values, max_size=3)))


def random_input(program, seed, B=3, T=6):
    """Raw samples, or codes, of the declared range."""
    rng = np.random.default_rng(seed)
    if isinstance(program.input, Codes):
        return rng.integers(0, program.n_i, (B, T))
    low, high = program.input.low, program.input.high
    raw = rng.integers(low, high + 1, (B, T, program.input.n_raw))
    raw = np.where(rng.random(raw.shape) < 0.2, rng.choice([low, high], raw.shape), raw)
    return np.where(rng.random(raw.shape) < 0.2, -(2**15), raw) if program.input.hold else raw


def same(a, b):
    """Whether two programs, or parts of one, agree in every field, types of arrays included."""
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b
