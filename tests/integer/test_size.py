import doctest
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import SettingsError
from qornn.integer import size as module
from qornn.integer.size import Product, Step, accumulator_bits, complexity, size

COPY, MNIST, PTB = (10, 256, 9), (1, 170, 10), (50, 1024, 50)  # n_i, n_h, n_o

# Table "Model sizes" (tab:modelsize_all), kilobytes as printed.
TABLE = [
    (COPY, {None: "275", 8: "75.5", 6: "58.9", 5: "50.6"}),
    (MNIST, {None: "120.2", 8: "35.0", 6: "27.9", 5: "24.4", 4: "20.8"}),
    (PTB, {None: "4496", 8: "1274", 6: "1005.5", 5: "871.2", 4: "737.0"}),
]
CELLS = [(shape, bits, printed) for shape, row in TABLE for bits, printed in row.items()]

dims = st.integers(1, 2000)
bits_or_none = st.one_of(st.none(), st.integers(2, 8))
scales = st.sampled_from(["tensor", "row"])
activations = st.sampled_from(["relu", "modrelu", "identity"])


@pytest.mark.parametrize(("shape", "bits", "printed"), CELLS)
def test_the_paper_size_prints_as_in_the_table(shape, bits, printed):
    decimals = len(printed.partition(".")[2])
    # Half a unit of the last printed place: PTB k=5 is 871.25, which the paper prints 871.2.
    assert abs(size(*shape, bits=bits).paper_kB - float(printed)) <= 0.5 * 10**-decimals


@pytest.mark.parametrize(("shape", "kP"), [(COPY, 70.4), (MNIST, 30.8), (PTB, 1151.0)])  # tab:modelsize_all
def test_parameters_print_as_in_the_table(shape, kP):
    assert round(size(*shape, bits=5).parameters / 1000, 1) == kP


def test_pmnist_with_360_units_on_3_bits_takes_62_kB():  # text below tab:pmnist360
    assert round(size(1, 360, 10, bits=3).paper_kB) == 62


def test_the_copy_network_on_5_bits_byte_by_byte():
    W, U, V, b_o, b = 256 * 256 * 5 // 8, 256 * 10 * 5 // 8, 4 * 9 * 256, 4 * 9, 4 * 256
    got = size(*COPY, bits=5, activation="modrelu")
    assert got.paper_bytes == W + U + V == 51776
    assert got.true_bytes == W + U + V + b_o + b + 2 * 4  # two alphas
    assert size(*COPY, bits=5, activation="modrelu", scale="row").true_bytes == W + U + V + b_o + b + 2 * 4 * 256
    assert size(*COPY, bits=5).true_bytes == W + U + V + b_o + 2 * 4


def test_W_and_U_are_each_rounded_up_to_whole_bytes():
    # 9 weights of 3 bits are 27 bits, 3 of them 9 bits: 4 + 2 bytes, against 36 / 8 = 4.5 by the formula.
    got = size(1, 3, 1, bits=3)
    assert got.paper_bytes == 4.5 + 4 * 3
    assert got.true_bytes == 4 + 2 + 4 * 3 + 4 + 2 * 4


def test_full_precision_stores_no_alpha_and_has_no_accumulator():
    got = size(*MNIST, bits=None, scale="row")
    assert got.true_bytes == got.paper_bytes + 4 * 10
    assert got.accumulator_bits is None


def test_accumulator_of_the_widest_network_of_the_paper():
    assert accumulator_bits(1024, 8, 12) == 29
    assert accumulator_bits(1025, 8, 12) == 30
    assert size(*PTB, bits=8).accumulator_bits == 29


@given(dims, dims, dims, bits_or_none, scales, activations)
def test_the_truth_is_never_below_the_paper(n_i, n_h, n_o, bits, scale, activation):
    got = size(n_i, n_h, n_o, bits=bits, scale=scale, activation=activation)
    assert got.true_bytes > got.paper_bytes
    overhead = 2 + 4 * (n_o + 3 * n_h + 2)  # two roundings, b_o, b, two alphas per row
    assert got.true_bytes <= got.paper_bytes + overhead


@given(dims, dims, dims, st.integers(2, 7))
def test_every_bit_costs_memory(n_i, n_h, n_o, bits):
    less, more = size(n_i, n_h, n_o, bits=bits), size(n_i, n_h, n_o, bits=bits + 1)
    assert less.paper_bytes < more.paper_bytes < size(n_i, n_h, n_o, bits=None).paper_bytes
    assert less.true_bytes <= more.true_bytes
    assert less.parameters == more.parameters


@given(st.integers(1, 10_000), st.integers(2, 8), st.integers(2, 16))
def test_the_accumulator_holds_the_worst_sum(n_h, bits, activation_bits):
    worst = n_h * 2 ** (bits - 1) * (2 ** (activation_bits - 1) - 1)  # states reach 2^(k_a-1) - 1 at most
    assert worst < 2 ** (accumulator_bits(n_h, bits, activation_bits) - 1)


def test_operations_are_those_of_the_table():  # tab:computation_complexity-fm
    got = complexity(3, 170, bits=5, activation_bits=12, input_bits=9)
    assert got == {
        "full_precision": Step(Product(510, 510, "FP"), Product(28900, 28900, "FP")),
        "quantized_weights": Step(Product(170, 5 * 510, "FP"), Product(170, 5 * 28900, "FP")),
        "fully_quantized": Step(Product(510, 510, "5x9 bits"), Product(28900, 28900, "5x12 bits")),
    }


def test_one_hot_inputs_are_counted_as_the_paper_states_and_as_a_column_read():
    # Below tab:computation_complexity-fm: n_h multiplications and (k_i - 1)(n_i - 1) n_h additions.
    got = complexity(10, 256, bits=5, input_bits=3, one_hot=True)
    assert got["full_precision"].input == Product(2560, 2560, "FP")
    assert got["quantized_weights"].input == Product(256, 2 * 9 * 256, "FP")
    assert got["fully_quantized"].input == Product(256, 2 * 9 * 256, "5x3 bits")
    assert got["column_read"].input == Product(0, 256, "none")
    assert {name: step.recurrent for name, step in got.items() if name != "column_read"} == {
        name: step.recurrent for name, step in complexity(10, 256, bits=5).items()
    }
    assert got["column_read"].recurrent == got["fully_quantized"].recurrent


def test_full_precision_has_one_column():
    assert list(complexity(10, 256, bits=None, one_hot=True)) == ["full_precision"]


@pytest.mark.parametrize("bits", [12, 1, 32, "fp", True])
def test_bits_out_of_range_name_the_way_out(bits):
    for call in (
        lambda: size(*MNIST, bits=bits),
        lambda: accumulator_bits(170, bits, 12),
        lambda: complexity(1, 170, bits=bits),
    ):
        with pytest.raises(SettingsError, match=rf"bits must be in 2\.\.8, got {bits!r}; .*full precision is None"):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: size(0, 170, 10, bits=4), "n_i must be a whole number of at least 1, got 0"),
        (lambda: size(1, 170.0, 10, bits=4), "n_h must be a whole number of at least 1, got 170.0"),
        (lambda: size(1, 170, -1, bits=4), "n_o must be a whole number of at least 1, got -1"),
        (lambda: accumulator_bits(0, 8, 12), "n_h must be a whole number"),
        (lambda: size(*MNIST, bits=4, activation_bits=17), "activation_bits must be in 2..16, got 17"),
        (lambda: complexity(1, 170, bits=4, input_bits=1), "input_bits must be in 2..16, got 1"),
        (lambda: size(*MNIST, bits=4, scale="rows"), "Did you mean 'row'?"),
        (lambda: size(*MNIST, bits=4, activation="mod-relu"), "Did you mean 'modrelu'?"),
    ],
)
def test_bad_settings_are_refused_in_words(call, message):
    with pytest.raises(SettingsError) as caught:
        call()
    assert message in str(caught.value)


def test_the_docstring_example_runs():
    assert doctest.testmod(module).attempted == 3
    assert doctest.testmod(module).failed == 0


def test_sizes_need_no_torch():
    code = "import sys, qornn.integer.size; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
