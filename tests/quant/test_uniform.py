import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import SettingsError
from qornn.quant import Uniform, make_quantizer, round_half_away


def test_grid_by_hand():
    # alpha = 1, k = 3: step 1/4, levels −4..3; 1.0 loses a step, 0.375 is a tie and goes away from zero.
    integers, alpha = Uniform(3).to_int(torch.tensor([[1.0, -1.0, 0.375, -0.375, 0.1]]))
    assert alpha.item() == 1.0
    assert integers.tolist() == [[3, -4, 2, -2, 0]]


@pytest.mark.parametrize("bits", range(2, 9))
def test_the_identity_shrinks(bits):
    W = torch.eye(4, dtype=torch.float64)
    assert torch.equal(Uniform(bits)(W), (1 - 2.0 ** (1 - bits)) * W)


def test_the_grid_is_asymmetric():
    W = torch.tensor([[1.0, 0.3]])
    assert not torch.equal(Uniform(4)(-W), -Uniform(4)(W))


@pytest.mark.parametrize("scale", ["tensor", "row"])
def test_zero_gives_zero_not_nan(scale):
    assert torch.equal(Uniform(4, scale=scale)(torch.zeros(3, 3)), torch.zeros(3, 3))
    tiny = torch.full((3, 3), 1e-45)  # the step underflows
    assert not Uniform(8, scale=scale)(tiny).isnan().any()


def test_rows_have_their_own_scale():
    W = torch.tensor([[1.0, -1.0], [0.01, -0.01]])
    assert Uniform(4, scale="row").to_int(W)[0].tolist() == [[7, -8], [7, -8]]
    assert Uniform(4).to_int(W)[0].tolist() == [[7, -8], [0, 0]]


def test_per_row_scales_tighten_the_singular_values():
    """At k = 4, n = 170 the mean range tightens from [0.80, 1.21] to [0.845, 1.148]."""
    from qornn.maps import start

    found = {}
    for scale in ("tensor", "row"):
        generator = torch.Generator().manual_seed(0)
        values = [
            torch.linalg.svdvals(Uniform(4, scale=scale)(start("haar", 170, generator=generator))) for _ in range(8)
        ]
        found[scale] = (
            sum(v[-1].item() for v in values) / len(values),
            sum(v[0].item() for v in values) / len(values),
        )
    assert found["tensor"] == pytest.approx((0.80, 1.21), abs=0.015)  # mean over 8 draws instead of many
    assert found["row"] == pytest.approx((0.845, 1.148), abs=0.015)


def test_nan_weights_stay_visible():
    W = torch.tensor([[1.0, math.nan]])
    assert Uniform(4)(W).isnan().any()


@given(st.floats(-1e6, 1e6, width=32))
def test_rounding_is_to_the_nearest_integer_with_ties_away_from_zero(x):
    got = round_half_away(torch.tensor(x, dtype=torch.float32)).item()
    assert got == math.copysign(math.floor(abs(x) + 0.5), x)  # exact in Python's float64


def test_rounding_just_below_a_half():
    assert round_half_away(torch.tensor([0.49999997, -0.49999997, 0.5, -0.5, 2.5])).tolist() == [0, 0, 1, -1, 3]


@pytest.mark.parametrize("bits", [1, 9, 12, 0, -3, 2.5, True])
def test_bits_out_of_range_are_refused_with_the_way_out(bits):
    with pytest.raises(SettingsError, match=r"bits must be in 2\.\.8, got .*activation_bits=(12|9)"):
        Uniform(bits)


def test_unknown_names_are_refused():
    with pytest.raises(SettingsError, match="Did you mean 'row'"):
        Uniform(4, scale="rows")
    with pytest.raises(SettingsError, match="Did you mean 'uniform'"):
        make_quantizer("unifrom", 4)
    with pytest.raises(SettingsError, match="empty matrix"):
        Uniform(4)(torch.zeros(0, 3))


def test_full_precision_has_no_quantizer_and_objects_pass_through():
    assert make_quantizer("uniform", None) is None
    mine = Uniform(3)
    assert make_quantizer(mine, None) is mine
