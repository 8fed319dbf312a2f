import copy
import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from single import changed, single
from strategies import programs, random_input, random_net
from structured_programs import structured_programs

import qornn
from qornn.errors import ProgramError
from qornn.integer.activations import Identity, ModReLU, ReLU
from qornn.integer.factors import make_table, make_thresholds
from qornn.integer.inputs import Codes, Samples
from qornn.integer.matrices import Dense, Matrix
from qornn.integer.program import IntegerProgram
from qornn.integer.readout import FloatReadout, IntReadout
from qornn.integer.requant import Multiplier, PerRow, Table, Thresholds
from qornn.integer.simulate import simulate
from qornn.integer.state import State


def parts(**changes):
    """Two units, two inputs, one output; states end at 7."""
    zero = np.zeros(2, int)
    given_parts = {
        "W": Dense(integers=[[1, 0], [0, 1]], bits=2, alpha=1.0),
        "U": Matrix(integers=[[1, 0], [0, 1]], bits=2, alpha=1.0),
        "state": State(bits=4, alpha=1.0),
        "input": Samples(bits=4, alpha=1.0, low=-8, high=7, offset=zero, multiplier=zero + 1, shift=zero),
        "activation": ReLU(),
        "requant": Multiplier(multiplier=1, shift=1, shift_W=0, shift_U=0),
        "readout": FloatReadout(V=[[1.0, 1.0]], b_o=[0.0], scale=1.0),
    }
    return {**given_parts, **changes}


def rows(n=2, **changes):
    one = np.ones(n, int)
    return PerRow(**{"M_W": one, "M_U": one, "shift": one, **changes})


WITH_IDENTITY = Dense(integers=[[1, 0], [0, 1]], bits=2, alpha=1.0, identity=True)
SHIFTS = {"shift_W": 0, "shift_U": 0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"W": np.eye(2)}, "W cannot be a ndarray"),
        ({"U": WITH_IDENTITY}, "U cannot be a Dense"),
        ({"activation": "relu"}, "activation cannot be a str"),
        ({"readout": None}, "readout cannot be a NoneType"),
        ({"provenance": "recipe"}, "provenance cannot be a str"),
        ({"steps": "first"}, "steps read out are 'last', 'all' or 'mean', got 'first'"),
        ({"U": Matrix(integers=[[1, 0]], bits=2, alpha=1.0)}, r"U must be \(n_h, n_i\) = \(2, 2\), got \(1, 2\)"),
        ({"input": Codes(size=3)}, r"U must be \(n_h, n_i\) = \(2, 3\), got \(2, 2\)"),
        ({"readout": FloatReadout(V=[[1.0]], b_o=[0.0], scale=1.0)}, r"a column for each of the 2 units, got \(1, 1\)"),
        ({"activation": ModReLU(bias=[1, 2, 3])}, r"the bias must be \(2,\), got \(3,\)"),
        ({"requant": rows(3)}, r"multipliers and shifts must be \(2,\), got \(3,\)"),
        ({"requant": Thresholds(values=np.arange(8), **SHIFTS)}, "4-bit states take 7 thresholds, got 8"),
        ({"requant": Table(values=[0, 8], **SHIFTS)}, "the table holds states above the largest, 7"),
        ({"requant": Table(values=[0, 32767, 7], **SHIFTS)}, "the table holds states above the largest, 7"),
        ({"W": WITH_IDENTITY}, 'the identity offset needs the multipliers M_I; lower with scheme="per-row"'),
        ({"W": WITH_IDENTITY, "requant": rows()}, "the identity offset needs the multipliers M_I"),
        ({"requant": rows(M_I=[1, 1])}, "M_I multiplies the identity offset, which this W does not have"),
    ],
)
def test_a_bad_program_is_refused_in_words(changes, message):
    with pytest.raises(ProgramError, match=message):
        single(**parts(**changes))


def test_the_good_program_is_good():
    program = single(**parts())
    assert (program.n_i, program.n_h, program.n_o, program.scheme) == (2, 2, 1, "paper")
    assert program.accumulator_bound == 7 + 8
    assert single(**parts(W=WITH_IDENTITY, requant=rows(M_I=[1, 1]))).scheme == "per-row"


def wide(n, **changes):
    """n units on 8 bits with all weights −128, one code; 16-bit states."""
    return parts(
        W=Dense(integers=np.full((n, n), -128), bits=8, alpha=1.0),
        U=Matrix(integers=np.zeros((n, 1), int), bits=2, alpha=1.0),
        state=State(bits=16, alpha=1.0),
        input=Codes(size=1),
        readout=FloatReadout(V=np.zeros((1, n)), b_o=[0.0], scale=1.0),
        **changes,
    )


def test_an_accumulator_that_could_overflow_is_refused_with_the_numbers_and_the_way_out():
    # n·128·32767 < 2^31 up to n = 512: 512·128·32767 = 2147418112.
    at_the_edge = single(**wide(512))
    assert at_the_edge.accumulator_bound == 2147418112
    assert at_the_edge.accumulator_bits == 32
    message = (
        r"can reach 2151612288, but the 32-bit accumulator holds at most 2147483647 \(n_h=513, weights 8 bits, "
        r"states 16 bits, inputs 2 bits\); use fewer activation bits, weight bits or input bits"
    )
    with pytest.raises(ProgramError, match=message):
        single(**wide(513))
    with pytest.raises(ProgramError, match="the 32-bit accumulator holds at most"):
        single(**wide(513, requant=rows(513)))


@pytest.mark.parametrize("shift", [20, 30])
def test_the_proof_does_not_overflow_itself(shift):
    """4096 inputs of 16 bits times 8-bit weights, shifted by 30, are 2^64: zero in 64 bits."""
    n_i = 4096
    zero = np.zeros(n_i, int)
    samples = Samples(bits=16, alpha=1.0, low=-(2**15), high=0, offset=zero, multiplier=zero + 1, shift=zero)
    changes = {
        "W": Dense(integers=[[0]], bits=2, alpha=1.0),
        "U": Matrix(integers=np.full((1, n_i), -128), bits=8, alpha=1.0),
        "input": samples,
        "readout": FloatReadout(V=[[1.0]], b_o=[0.0], scale=1.0),
        "requant": Multiplier(multiplier=1, shift=1, shift_W=0, shift_U=shift),
    }
    with pytest.raises(ProgramError, match=f"can reach {2 ** (34 + shift)}, but the 32-bit"):
        single(**parts(**changes))


def test_the_bias_counts_in_the_accumulator():
    limit = 2**31 - 1 - 15
    assert single(**parts(activation=ModReLU(bias=[limit, 0]))).accumulator_bound == 2**31 - 1
    for bias in ([limit + 1, 0], [0, -limit - 1], [2**62, 0], [-(2**62), 2**62]):
        with pytest.raises(ProgramError, match="the 32-bit accumulator holds at most"):
            single(**parts(activation=ModReLU(bias=bias)))


def test_the_value_that_means_never_is_never_reached():
    """A threshold past 31 bits is stored as 2^31 − 1; a sum of just that would reach it."""
    thresholds = make_thresholds(Fraction(1, 2**29), 7, **SHIFTS)
    limit = 2**31 - 2 - 15
    single(**parts(activation=ModReLU(bias=[limit, 0]), requant=thresholds))
    with pytest.raises(ProgramError, match="can reach 2147483647"):
        single(**parts(activation=ModReLU(bias=[limit + 1, 0]), requant=thresholds))


def test_an_integer_readout_that_could_overflow_is_refused():
    # 2·127·7 = 1778, and the bias.
    edge = IntReadout(V=[[127, 127]], bias=[2**31 - 1 - 1778], scale=1.0)
    assert single(**parts(readout=edge)).accumulator_bound == 2**31 - 1
    for bias in (2**31 - 1777, -(2**31) + 1778):
        with pytest.raises(ProgramError, match="the 32-bit accumulator holds at most"):
            single(**parts(readout=IntReadout(V=[[127, 127]], bias=[bias], scale=1.0)))


def test_a_64_bit_sum_that_could_overflow_is_refused():
    big = 2**31 - 1
    fits = single(**parts(requant=rows(M_W=[big, big], M_U=[big, big])))
    assert fits.accumulator_bound == 8  # the two sums are kept apart
    bias = 2**62 - big * 15
    single(**parts(requant=fits.requant, activation=ModReLU(bias=[bias - 1, 0])))
    with pytest.raises(ProgramError, match=r"row 0: its 64-bit sum can reach 4.61e\+18, past 2\^62; use smaller"):
        single(**parts(requant=fits.requant, activation=ModReLU(bias=[bias, 0])))
    with pytest.raises(ProgramError, match="row 1: "):
        single(**parts(requant=fits.requant, activation=ModReLU(bias=[0, -bias])))
    own = rows(M_W=[big, big], M_U=[big, big], M_I=[big, big])
    bias -= 7 * big
    single(**parts(W=WITH_IDENTITY, requant=own, activation=ModReLU(bias=[bias - 1, 0])))
    with pytest.raises(ProgramError, match="row 0: "):
        single(**parts(W=WITH_IDENTITY, requant=own, activation=ModReLU(bias=[bias, 0])))


@pytest.mark.parametrize("alpha", [5e-324, 1e-310])
def test_a_unit_of_the_input_too_small_to_divide_by_is_refused(alpha):
    whole = {"bits": 12, "low": -5, "high": 5, "offset": [0], "multiplier": [1], "shift": [0]}
    assert not Samples(**whole, alpha=alpha).takes_floats
    with pytest.raises(ProgramError, match=r"alpha_i .* is too small"):
        Samples(**whole, alpha=alpha, scale=1.0)


@given(programs())
def test_the_true_size_is_what_is_stored(program):
    n_h, n_i, n_o = program.n_h, program.n_i, program.n_o
    size = -(-n_h * n_h * program.W.bits // 8) + -(-n_h * n_i * program.U.bits // 8)
    size += n_o * (n_h * 4 + 4) + 4 if isinstance(program.readout, FloatReadout) else n_o * (n_h + 4)
    if isinstance(program.activation, ModReLU):
        size += n_h * (8 if program.scheme == "per-row" else 4)
    if isinstance(program.input, Samples) and not program.input.plain:
        size += len(program.input.offset) * 9
    assert program.true_bytes == size + program.requant.stored_bytes


@given(programs())
def test_every_array_of_a_program_is_closed_to_writing(program):
    found = dict(arrays_of(program))
    assert "layers.0.W.integers" in found
    assert not {path for path, array in found.items() if array.flags.writeable}
    with pytest.raises(FrozenInstanceError):
        program.layers = ()


COPIES = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "old pickle": lambda thing: pickle.loads(pickle.dumps(thing, protocol=2)),
    "replace": replace,
    "session": lambda thing: copy.deepcopy(thing.session()).program if isinstance(thing, IntegerProgram) else thing,
}


def arrays_of(part):
    """Every array below, by its path."""
    for field in fields(part):
        value = getattr(part, field.name)
        several = value if isinstance(value, tuple) else (value,)
        for i, one in enumerate(several):
            name = f"{field.name}.{i}" if isinstance(value, tuple) else field.name
            if is_dataclass(one):
                yield from ((f"{name}.{path}", array) for path, array in arrays_of(one))
            elif isinstance(one, np.ndarray):
                yield name, one


@pytest.mark.slow
@pytest.mark.parametrize("way", COPIES)
@settings(deadline=None, max_examples=10)
@given(program=st.one_of(programs(), structured_programs()))
def test_a_copy_is_closed_to_writing_as_well(way, program):
    program = program.with_provenance(seed=1)
    for part in (
        program,
        *(getattr(program, name) for name in ("W", "U", "input", "activation", "requant", "readout")),
    ):
        other = COPIES[way](part)
        assert type(other) is type(part)
        assert repr(other) == repr(part)
        found = dict(arrays_of(other))
        assert not {path for path, array in found.items() if array.flags.writeable}
        for path, array in arrays_of(part):
            assert found[path].dtype == array.dtype
            np.testing.assert_array_equal(found[path], array)


def test_a_pickle_is_checked_like_any_other_program():
    part = State(bits=4, alpha=1.0)
    data = pickle.dumps(part, protocol=0)
    with pytest.raises(ProgramError, match=r"activation_bits must be a whole number in 4..16, got 99"):
        pickle.loads(data.replace(b"I4\n", b"I99\n"))


def test_a_program_says_more_of_where_it_comes_from():
    program = single(**parts(provenance={"seed": 1}))
    more = program.with_provenance(metric=0.5)
    assert more.provenance == {"seed": 1, "metric": 0.5}
    assert program.provenance == {"seed": 1}


def test_identity_is_modrelu_without_bias():
    x = np.array([[[7, -8], [3, 2], [-1, 0]]])
    table = make_table(Fraction(1, 2), 7, **SHIFTS)
    ours = simulate(single(**parts(activation=Identity(), requant=table)), x)[0]
    modrelu = single(**parts(activation=ModReLU(bias=[0, 0]), requant=table))
    assert ours.tolist() == simulate(modrelu, x)[0].tolist()
    assert ours[0, 0].tolist() == [4, -4]


@given(programs(), st.integers(0, 99))
def test_all_steps_read_out_end_with_the_last(program, seed):
    x = random_input(program, seed)
    last, every = (simulate(changed(program, steps=steps), x)[1] for steps in ("last", "all"))
    assert last.tolist() == every[:, -1].tolist()


def test_a_network_of_the_paper_fits_32_bits():
    shape = {"n_i": 1, "n_h": 170, "n_o": 10, "k": 8, "k_U": 8, "k_a": 12}
    from strategies import paper

    net = random_net(0, e=3, m=0, alphas=(0.5, 0.5, 256 / 255), activation="modrelu", codes=False, **shape)
    assert paper(net, "multiplier").accumulator_bits <= 31


def test_a_program_is_shown_in_one_line():
    assert repr(qornn.load("zoo:digits-k4")) == (
        "IntegerProgram(1 channel; weights of 4 bits (packed), states of 12 bits; 10 outputs; 8549 bytes)"
    )
