import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import ProgramError
from qornn.integer.matrices import Dense, Matrix, exact_product, packed_bytes


@given(st.integers(0, 2**32 - 1), st.sampled_from([15, 31, 45, 50]))
def test_products_are_exact_also_past_float64(seed, size):
    rng = np.random.default_rng(seed)
    A, x = rng.integers(-128, 128, (3, 7)).astype(np.int8), rng.integers(-(2**size), 2**size, (2, 7))
    want = [[sum(int(a) * int(b) for a, b in zip(row, state, strict=True)) for row in A] for state in x]
    got = exact_product(A, x)
    assert got.dtype == np.int64
    assert got.tolist() == want


def test_the_float_product_is_left_before_it_rounds():
    # 128·64·2^46 + 1 = 2^59 + 1, which is no float64.
    x = np.array([[2**46] * 128 + [1]])
    assert exact_product(np.array([[64] * 128 + [1]], np.int8), x).tolist() == [[2**59 + 1]]


def test_row_sums_of_the_smallest_integer_do_not_wrap():
    W = Dense(integers=np.full((3, 3), -128), bits=8, alpha=1.0)
    assert W.row_sums().tolist() == [384, 384, 384]


@pytest.mark.parametrize(("count", "bits", "want"), [(9, 3, 4), (8, 3, 3), (1, 2, 1), (28900, 4, 14450), (5, 8, 5)])
def test_packed_integers_take_whole_bytes(count, bits, want):
    assert packed_bytes(count, bits) == want


def test_the_bytes_of_a_matrix_are_its_packed_ones():
    assert Dense(integers=np.zeros((3, 3), int), bits=3, alpha=1.0).stored_bytes == 4
    assert Matrix(integers=np.zeros((3, 1), int), bits=3, alpha=1.0).stored_bytes == 2


@pytest.mark.parametrize("bits", range(2, 9))
def test_entries_must_fit_their_bits(bits):
    top = 2 ** (bits - 1)
    ends = Dense(integers=np.array([[-top, 0], [0, top - 1]]), bits=bits, alpha=1.0).integers
    assert ends.dtype == np.int8
    assert ends.tolist() == [[-top, 0], [0, top - 1]]
    for bad in (top, -top - 1):
        with pytest.raises(ProgramError, match=rf"W must lie in -{top}\.\.{top - 1}, got "):
            Dense(integers=np.array([[0, bad], [0, 0]]), bits=bits, alpha=1.0)
        with pytest.raises(ProgramError, match=rf"U must lie in -{top}\.\.{top - 1}, got "):
            Matrix(integers=np.array([[0, bad]]), bits=bits, alpha=1.0)


EYE = np.eye(2, dtype=int)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"integers": EYE * 1.0}, "W must hold integers, got float64"),
        ({"integers": EYE == 1}, "W must hold integers, got bool"),
        ({"integers": EYE.ravel()}, r"W must have shape \(any, any\), got \(4,\)"),
        ({"integers": np.zeros((0, 0), int)}, r"W must have shape \(any, any\), got \(0, 0\)"),
        ({"integers": EYE[:1]}, r"W must be square, got shape \(1, 2\)"),
        ({"bits": 1}, r"bits of W must be a whole number in 2\.\.8, got 1"),
        ({"bits": 9}, r"bits of W must be a whole number in 2\.\.8, got 9"),
        ({"bits": 4.0}, r"bits of W must be a whole number in 2\.\.8, got 4.0"),
        ({"bits": True}, r"bits of W must be a whole number in 2\.\.8, got True"),
        ({"alpha": 0.0}, "alpha of W must be positive and finite"),
        ({"alpha": -1.0}, "alpha of W must be positive and finite"),
        ({"alpha": np.nan}, "alpha of W must be positive and finite"),
        ({"alpha": np.inf}, "alpha of W must be positive and finite"),
        ({"alpha": [1.0, -1.0]}, "alpha of W must be positive and finite"),
        ({"alpha": [0.0, 0.0]}, "alpha of W must be positive and finite"),
        ({"alpha": [1.0, 1.0, 1.0]}, r"one for each of the 2 rows, got shape \(3,\)"),
        ({"identity": 1}, "the identity of W must be True or False, got 1"),
    ],
)
def test_a_bad_W_is_refused_in_words(settings, message):
    with pytest.raises(ProgramError, match=message):
        Dense(**{"integers": EYE, "bits": 4, "alpha": 1.0, **settings})


def test_a_row_of_zeros_may_have_the_scale_zero():
    assert Dense(integers=np.diag([0, 1]), bits=2, alpha=[0.0, 1.0]).alpha.tolist() == [0.0, 1.0]


def test_arrays_are_copies_closed_to_writing():
    given_W, given_alpha = np.eye(2, dtype=np.int8), np.ones(2)
    W = Dense(integers=given_W, bits=2, alpha=given_alpha)
    given_W[0, 0], given_alpha[0] = -1, 5.0
    assert W.integers[0, 0] == 1
    assert W.alpha[0] == 1.0
    for array in (W.integers, W.alpha, Matrix(integers=EYE, bits=2, alpha=1.0).alpha):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
