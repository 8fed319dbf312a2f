import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import matplotlib
import pytest
import torch
from matplotlib import pyplot

from qornn.errors import SettingsError, WriteError
from qornn.maps.starts import haar
from qornn.quant import Uniform
from qornn.reproduce import instability as module
from qornn.reproduce.instability import bounds, instability, power_errors

SMALL = {"n": 20, "matrices": 8, "n_h": 12, "T": 15, "progress": False}
PICTURES = ("instability-powers.png", "instability-singular-values.png", "instability-bounds.png", "gradient-norms.png")
KS = tuple(range(2, 9))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("instability") / "new" / "folder"


@pytest.fixture(scope="module")
def numbers(folder):
    return instability(folder, **SMALL)


@pytest.mark.slow
def test_the_json_holds_what_is_returned_and_nothing_is_left_behind(numbers, folder):
    assert json.loads((folder / "instability.json").read_text()) == numbers
    assert {path.name for path in folder.iterdir()} == {"instability.json", *PICTURES}


@pytest.mark.slow
def test_the_same_seed_writes_the_same_bytes_and_another_does_not(numbers, folder, tmp_path):
    instability(tmp_path / "same", **SMALL)
    other = instability(tmp_path / "other", **SMALL, seed=1)
    assert (tmp_path / "same" / "instability.json").read_bytes() == (folder / "instability.json").read_bytes()
    assert all(other[part] != numbers[part] for part in ("powers", "singular_values", "gradients"))


@pytest.mark.slow
def test_the_global_random_state_and_the_threads_are_left_alone(tmp_path):
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        instability(tmp_path, **SMALL)
        assert torch.get_num_threads() == 3
        with pytest.raises(SettingsError):
            instability(tmp_path, **SMALL, ks=[12])
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.get_rng_state(), before)


def test_more_bits_leave_a_smaller_error(numbers):
    for T in ("1", "10"):
        errors = [numbers["powers"][str(k)][T] for k in KS]
        assert errors == sorted(errors, reverse=True)
        assert len(set(errors)) == len(KS)


def test_the_error_grows_with_the_power(numbers):
    for k in KS:
        errors = numbers["powers"][str(k)]
        assert list(errors) == ["1", "10", "100", "200"]
        assert errors["1"] < errors["10"] < errors["100"]


def test_power_errors_equal_a_plain_loop():
    W = haar(6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    W_q = Uniform(4)(W)
    left, right = W @ W @ W, W_q @ W_q @ W_q
    expected = float(((left - right) ** 2).sum().sqrt() / 6**0.5)  # an orthogonal 6 x 6 matrix has norm sqrt(6)
    assert power_errors(W, [4], [3])["4"]["3"] == pytest.approx(expected, rel=1e-12)  # float64 round-off


def test_ratios_lie_between_0_and_1_and_rise_with_the_bits(numbers):
    medians = []
    for k in KS:
        ratio = torch.tensor(numbers["singular_values"][str(k)]["ratio"])
        assert len(ratio) == SMALL["matrices"]
        assert ((ratio > 0) & (ratio <= 1)).all()
        medians.append(float(ratio.median()))
    assert medians == sorted(medians)
    assert medians[-1] > 0.97


def test_singular_values_are_those_of_the_quantized_matrices(numbers):
    generator = torch.Generator().manual_seed(0)
    haar(SMALL["n"], generator=generator, dtype=torch.float64)  # the matrix of the powers comes first
    W = [haar(SMALL["n"], generator=generator, dtype=torch.float64) for _ in range(SMALL["matrices"])]
    for k in (2, 5):
        got = numbers["singular_values"][str(k)]
        W_q = [Uniform(k)(each) for each in W]
        # 1e-5: the file keeps six digits.
        assert got["ratio"] == pytest.approx([1 / float(torch.linalg.cond(each)) for each in W_q], rel=1e-5)
        gaps = [float((each @ each.mT - torch.eye(SMALL["n"])).norm()) for each in W_q]
        assert got["measured"]["discrepancy"]["min"] == pytest.approx(min(gaps), rel=1e-5)
        assert got["measured"]["discrepancy"]["max"] == pytest.approx(max(gaps), rel=1e-5)


@pytest.mark.parametrize("k", KS)
def test_the_bounds_of_the_paper_hold(numbers, k):
    measured, bound = (numbers["singular_values"][str(k)][part] for part in ("measured", "bound"))
    assert measured["discrepancy"]["max"] <= bound["discrepancy"]
    assert bound["sigma_min"] <= measured["sigma_min"]["min"] <= measured["sigma_min"]["max"]
    assert measured["sigma_max"]["min"] <= measured["sigma_max"]["max"] <= bound["sigma_max"]


def test_the_bounds_are_those_of_the_paper_and_vacuous_at_its_size():  # equations borneWq1 and borneWq2
    assert bounds(200, 8) == {"discrepancy": 2 * 1.5625 + 1.5625**2, "sigma_min": -0.5625, "sigma_max": 2.5625}
    assert bounds(4, 8)["sigma_min"] == 1 - 4 / 128


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_drawn(numbers, folder, name):
    content = (folder / name).read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    assert width >= 800
    assert height >= 500
    pixels = zlib.decompress(_chunks(content))
    assert len(set(pixels)) > 50  # more than a blank page


@pytest.mark.slow
def test_ks_and_powers_may_be_chosen(tmp_path):
    numbers = instability(tmp_path, **SMALL, ks=[8], powers=[3])
    assert {k: list(row) for k, row in numbers["powers"].items()} == {"8": ["3"]}
    assert list(numbers["singular_values"]) == ["8"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 1}, "n must be at least 2"),
        ({"matrices": 0}, "got n=20, matrices=0"),
        ({"powers": []}, "powers=[]"),
        ({"powers": [0]}, "powers=[0]"),
        ({"ks": []}, "ks=[]"),
        ({"ks": [12]}, "bits must be in 2..8, got 12"),
        ({"powers": [10_000]}, "choose smaller powers"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(tmp_path, change, message):
    with pytest.raises(SettingsError) as caught:
        instability(tmp_path, **(SMALL | change))
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="choose another folder"):
        instability(tmp_path / "file" / "below", **SMALL)


@pytest.mark.slow
def test_progress_goes_to_stderr_alone(tmp_path, capsys):
    instability(tmp_path, **(SMALL | {"progress": True}))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "instability" in shown.err


@pytest.mark.slow
def test_importing_the_room_loads_neither_torch_nor_matplotlib():
    code = "import sys, qornn.reproduce; sys.exit(bool({'torch', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    code = "import sys, qornn.reproduce.instability; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_drawing_leaves_matplotlib_as_it_was(tmp_path):
    figures, settings = pyplot.get_fignums(), dict(matplotlib.rcParams)
    instability(tmp_path, **SMALL)
    assert pyplot.get_fignums() == figures
    assert dict(matplotlib.rcParams) == settings


def _chunks(png):
    """The image data of a PNG file."""
    data, at = b"", 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    return data


@pytest.mark.parametrize("text", ["my figures", "[1]", '{"settings": 1}', "[" * 100_000])
def test_figures_of_somebody_else_are_not_replaced(text, tmp_path):
    (tmp_path / "instability.json").write_text(text)
    with pytest.raises(SettingsError, match="holds other data than these figures"):
        instability(tmp_path, **SMALL)
    assert (tmp_path / "instability.json").read_text() == text


def test_a_place_that_cannot_be_written_is_told_before_the_work(monkeypatch):
    monkeypatch.setattr(module, "haar", lambda *_, **__: pytest.fail("it worked first"))
    with pytest.raises(WriteError, match="could not write"):
        instability(Path("/proc/none"), **SMALL)
