from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import round_exactly

from qornn.errors import ProgramError, SettingsError
from qornn.integer.factors import differing, make_multiplier, make_per_row, make_table, make_thresholds
from qornn.integer.requant import Multiplier, PerRow, Table, Thresholds

SHIFTS = {"shift_W": 0, "shift_U": 0}
# c = α_W/2^(k−1+s) with α_W a float32; any rational works.
factors = st.floats(2**-12, 1.5, width=32).map(Fraction) | st.fractions(Fraction(1, 4000), 2, max_denominator=10**6)
bits = st.integers(4, 8)


def exactly(a, c, top):
    return min(round_exactly(a * c), top)


@given(factors, bits)
def test_thresholds_and_table_are_exact_and_equal_on_all_values_up_to_saturation_and_beyond(c, k_a):
    top = 2 ** (k_a - 1) - 1
    thresholds, table = make_thresholds(c, top, **SHIFTS), make_table(c, top, **SHIFTS)
    last = int(thresholds.values[-1])
    a = np.append(np.arange(last + 50), [2 * last, 2**30, 2**31 - 2])
    assert thresholds.magnitude(a, top).tolist() == table.magnitude(a, top).tolist()
    few = a if last < 300 else np.concatenate([thresholds.values, thresholds.values - 1, a[-5:]])  # Fractions are slow
    assert thresholds.magnitude(few, top).tolist() == [exactly(int(v), c, top) for v in few]


@given(factors, st.integers(4, 6), st.integers(1, 12))
def test_the_differing_count_is_that_of_brute_force(c, k_a, shift):
    """With few bits in the multiplier many values differ, with all of them none or almost none."""
    top = 2 ** (k_a - 1) - 1
    coarse = Multiplier(multiplier=min(round_exactly(c * 2**shift), 2**31 - 1), shift=shift, **SHIFTS)
    last = -(-Fraction(2 * top - 1, 2) // c)  # the first a that saturates
    assume(last < 5000)
    for requant in (coarse, make_multiplier(c, **SHIFTS)):
        found = requant.magnitude(np.arange(last + 1), top).tolist()
        wrong = sum(got != exactly(a, c, top) for a, got in enumerate(found))
        assert differing(requant, c, top) == (wrong, last + 1)


def test_a_coarse_multiplier_differs_where_it_should():
    # 1/3 as 1/4: a = 2 is 2/3 -> 1 and 2/4 -> 1, a = 5 is 5/3 -> 2 and 5/4 -> 1; with top = 2 saturation is at a = 5.
    coarse = Multiplier(multiplier=1, shift=2, **SHIFTS)
    assert coarse.magnitude(np.arange(6), 2).tolist() == [0, 0, 1, 1, 1, 1]
    assert make_thresholds(Fraction(1, 3), 2, **SHIFTS).magnitude(np.arange(6), 2).tolist() == [0, 0, 1, 1, 1, 2]
    assert differing(coarse, Fraction(1, 3), 2) == (1, 6)


@given(factors, bits)
def test_thresholds_and_table_never_differ(c, k_a):
    top = 2 ** (k_a - 1) - 1
    for requant in (make_thresholds(c, top, **SHIFTS), make_table(c, top, **SHIFTS)):
        assert differing(requant, c, top)[0] == 0


@pytest.mark.slow
@given(factors)
def test_the_multiplier_has_as_many_bits_as_fit(c):
    got = make_multiplier(c, **SHIFTS)
    assert abs(got.multiplier - c * 2**got.shift) <= Fraction(1, 2)
    assert got.shift == 61 or round_exactly(c * 2 ** (got.shift + 1)) >= 2**31


def test_the_multiplier_does_not_overflow_at_its_largest():
    largest = Multiplier(multiplier=2**31 - 1, shift=61, **SHIFTS)
    assert largest.magnitude(np.array([2**31 - 1]), 100).tolist() == [((2**31 - 1) ** 2 + 2**60) >> 61] == [2]


def test_ties_go_up_in_every_form():
    c, top = Fraction(1, 4), 7
    a = np.array([1, 2, 5, 6, 25, 26, 29, 30, 1000])
    for make in (
        make_multiplier(c, **SHIFTS),
        make_thresholds(c, top, **SHIFTS),
        make_table(c, top, **SHIFTS),
    ):
        assert make.magnitude(a, top).tolist() == [0, 1, 1, 2, 6, 7, 7, 7, 7]


def test_thresholds_by_hand():
    # a/3 reaches i − 1/2 at a = 3i − 3/2: 1.5, 4.5, 7.5.
    assert make_thresholds(Fraction(1, 3), 3, **SHIFTS).values.tolist() == [2, 5, 8]
    assert make_table(Fraction(1, 3), 3, **SHIFTS).values.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3]


def test_a_factor_so_small_that_no_32_bit_sum_saturates():
    c = Fraction(1, 2**29)
    thresholds = make_thresholds(c, 7, **SHIFTS)
    a = np.array([2**28 - 1, 2**28, 3 * 2**28, 2**31 - 2])
    assert thresholds.magnitude(a, 7).tolist() == [0, 1, 2, 4] == [exactly(int(v), c, 7) for v in a]


def test_a_table_too_large_names_the_other_forms():
    with pytest.raises(SettingsError, match=r'a direct table would have .* entries .*use requant="thresholds"'):
        make_table(Fraction(1, 2**20), 127, **SHIFTS)


def test_a_factor_past_the_multiplier_is_refused():
    with pytest.raises(ProgramError, match="too large for a 32-bit multiplier"):
        make_multiplier(Fraction(2**31), **SHIFTS)


def test_sizes():
    assert make_multiplier(Fraction(1, 3), **SHIFTS).stored_bytes == 5
    assert make_thresholds(Fraction(1, 3), 2047, **SHIFTS).stored_bytes == 4 * 2047  # 8 kB at 12 bits
    assert make_table(Fraction(1, 3), 3, **SHIFTS).stored_bytes == 2 * 9
    assert PerRow(M_W=[1, 2], M_U=[1, 1], shift=[1, 1]).stored_bytes == 2 * (4 + 4 + 1)
    assert PerRow(M_W=[1, 1], M_U=[1, 1], shift=[1, 1]).stored_bytes == 4 + 4 + 1  # once for all rows
    assert PerRow(M_W=[1], M_U=[1], M_I=[1], shift=[1]).stored_bytes == 13


positive = st.floats(1e-6, 8)


@given(st.lists(st.tuples(positive, positive, st.floats(-100, 100)), min_size=1, max_size=4), st.booleans(), st.data())
def test_multipliers_by_row_keep_their_bounds(rows, identity, data):
    c_W, c_U, c_b = (np.array(column) for column in zip(*rows, strict=True))
    top = 2 ** (data.draw(st.integers(4, 16)) - 1) - 1
    sums = np.array([[data.draw(st.integers(0, 2**31 - 1)) for _ in range(2)] for _ in rows])
    requant, B, errors = make_per_row(c_W, c_U, c_b, sums, identity=identity, top=top)
    for j in range(len(rows)):
        sum_W, sum_U, unit = int(sums[j, 0]), int(sums[j, 1]), 2 ** int(requant.shift[j])
        M = [int(requant.M_W[j]), int(requant.M_U[j])]
        size = M[0] * sum_W + M[1] * sum_U + (unit * top if identity else 0) + abs(int(B[j]))
        assert size < 2**62
        error = sum(
            abs(Fraction(m, unit) - Fraction(float(c))) * s
            for m, c, s in zip([*M, int(B[j])], [c_W[j], c_U[j], c_b[j]], [sum_W, sum_U, 1], strict=True)
        )
        assert error <= Fraction(float(errors[j])) * (1 + Fraction(1, 2**50))  # the bound itself is a rounded float
        if identity:
            assert requant.M_I[j] == unit  # the 1 on the diagonal is exact
        doubled = [round_exactly(Fraction(float(c)) * 2 * unit) for c in (c_W[j], c_U[j])] + [2 * unit] * identity
        exact = Fraction(float(c_W[j])) * sum_W + Fraction(float(c_U[j])) * sum_U + abs(Fraction(float(c_b[j])))
        spare = sum_W + sum_U + top + 1
        fits = (exact + top * identity) * 2 * unit + spare < 2**62
        assert unit == 2**61 or max(doubled) >= 2**31 or not fits  # no larger shift would do


def test_a_scale_too_coarse_by_row_names_the_way_out():
    with pytest.raises(ProgramError, match=r"row 1: .*use more input bits, fewer activation bits or a larger alpha_h"):
        make_per_row(np.ones(2), np.array([1.0, 2.0**40]), np.zeros(2), np.ones((2, 2), int), identity=False, top=7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Thresholds(values=[1, 3, 2], **SHIFTS), "thresholds must not decrease"),
        (lambda: Thresholds(values=[0.5, 1.5], **SHIFTS), "thresholds must hold integers, got float64"),
        (lambda: Thresholds(values=[-1, 2], **SHIFTS), r"thresholds must lie in 0\.\.2147483647, got -1\.\.2"),
        (lambda: Thresholds(values=[1, 2**31], **SHIFTS), r"thresholds must lie in 0\.\.2147483647"),
        (lambda: Thresholds(values=np.zeros(0, int), **SHIFTS), "thresholds must have shape"),
        (lambda: Table(values=[0, 2**15], **SHIFTS), r"table must lie in 0\.\.32767"),
        (lambda: Table(values=[[0, 1]], **SHIFTS), "table must have shape"),
        (lambda: Multiplier(multiplier=-1, shift=3, **SHIFTS), "multiplier must be a whole number"),
        (lambda: Multiplier(multiplier=2**31, shift=3, **SHIFTS), "multiplier must be a whole number"),
        (lambda: Multiplier(multiplier=1.0, shift=3, **SHIFTS), "multiplier must be a whole number"),
        (lambda: Multiplier(multiplier=1, shift=0, **SHIFTS), r"shift must be a whole number in 1\.\.61, got 0"),
        (lambda: Multiplier(multiplier=1, shift=62, **SHIFTS), r"shift must be a whole number in 1\.\.61, got 62"),
        (lambda: Multiplier(multiplier=1, shift=3, shift_W=-1, shift_U=0), "shift of the recurrent sum"),
        (lambda: Multiplier(multiplier=1, shift=3, shift_W=0, shift_U=31), "shift of the input sum"),
        (lambda: PerRow(M_W=[1, 2], M_U=[1], shift=[1, 1]), r"M_U must have shape \(2\), got \(1,\)"),
        (lambda: PerRow(M_W=[1], M_U=[-1], shift=[1]), r"M_U must lie in 0\.\.2147483647, got -1\.\.-1"),
        (lambda: PerRow(M_W=[1.0], M_U=[1], shift=[1]), "M_W must hold integers"),
        (lambda: PerRow(M_W=[1], M_U=[1], M_I=[1, 1], shift=[1]), "M_I must have shape"),
        (lambda: PerRow(M_W=[1], M_U=[1], shift=[0]), r"shifts must lie in 1\.\.61, got 0\.\.0"),
    ],
)
def test_bad_requantizations_are_refused_in_words(make, message):
    with pytest.raises(ProgramError, match=message):
        make()


def test_numpy_numbers_become_plain_ones():
    got = Multiplier(multiplier=np.int32(3), shift=np.uint8(40), shift_W=np.uint8(1), shift_U=np.int64(2))
    assert all(type(n) is int for n in (got.multiplier, got.shift, got.shift_W, got.shift_U))
    assert got.magnitude(np.array([2**40]), 7).tolist() == [3]  # 1 << 39 is no uint8


def test_arrays_are_closed_to_writing():
    row = PerRow(M_W=[1], M_U=[1], M_I=[1], shift=[1])
    arrays = [make_thresholds(Fraction(1, 3), 3, **SHIFTS).values, make_table(Fraction(1, 3), 3, **SHIFTS).values]
    for array in [*arrays, row.M_W, row.M_U, row.M_I, row.shift]:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
