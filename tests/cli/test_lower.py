"""From the shell to integers: lower, eval and size of a program."""

import json
import math
import sys
from functools import partial

import pytest
from typer.testing import CliRunner

import qornn.lowering.lower  # noqa: F401
from qornn.cli import app
from qornn.errors import WriteError


@pytest.fixture(scope="module")
def made(qornn_command, tmp_path_factory):
    """A trained run and its program."""
    folder = tmp_path_factory.mktemp("lowered")
    qornn_command("train", "digits", "--bits", 4, "--set", "train.epochs=3", "--out", folder / "run")
    figures = qornn_command("lower", folder / "run", "-o", folder / "d.qornn", "--json")
    return folder, json.loads(figures.stdout)


@pytest.mark.slow
def test_lower_reports_calibration_and_exactness(made):
    folder, figures = made
    assert figures["sequences"] >= 1197 + 300  # training and validation, in whole batches
    assert figures["max_h"] > 0
    assert set(figures["percentiles"]) == {"99.0", "99.9", "99.99", "99.999"}
    assert 0 <= figures["saturation"] < 0.01
    assert figures["error_bound"] < 0.01
    assert figures["accumulator_bits"] <= 32
    assert figures["file_bytes"] == (folder / "d.qornn").stat().st_size


@pytest.mark.slow
def test_eval_of_a_run_gives_three_figures_side_by_side(made, qornn_command):
    folder, lowered = made
    plain = json.loads(qornn_command("eval", folder / "run", "--json").stdout)
    asked = json.loads(qornn_command("eval", folder / "run", "--activation-bits", 12, "--json").stdout)
    near = partial(pytest.approx, rel=1e-12)  # means over batches, whose order of adding is the machine's
    assert plain["value"] == near(plain["weights_quantized"])
    assert plain["value"] == near(asked["weights_quantized"])
    assert [asked["integer"], plain["integer"], lowered["value"]] == near([asked["value"]] * 3)
    assert (plain["activation_bits"], asked["activation_bits"]) == (None, 12)
    assert asked["float"] is not None


@pytest.mark.slow
def test_eval_of_a_program_repeats_what_it_recorded(made, qornn_command):
    folder, lowered = made
    figures = json.loads(qornn_command("eval", folder / "d.qornn", "--json").stdout)
    assert [figures["value"], figures["recorded"]] == pytest.approx([lowered["value"]] * 2, rel=1e-12)
    assert (figures["bits"], figures["activation_bits"], figures["task"]) == (4, 12, "digits")


def test_eval_measures_on_a_larger_test_set(qornn_command):
    def figures(*settings):
        words = [w for text in ("task.T0=20", *settings) for w in ("--set", text)]
        return json.loads(qornn_command("eval", "zoo:copy1000-hadamard", *words, "--json").stdout)

    few, many = figures(), figures("task.test_size=300")
    assert few["value"] != many["value"]  # other sequences
    assert few["baseline"] == many["baseline"] == pytest.approx(10 * math.log(8) / 40)
    assert few["paper"] is few["recorded"] is None  # both are of another test set


@pytest.mark.slow
def test_size_of_a_program_gives_true_bounds_and_scales(made, qornn_command):
    folder, lowered = made
    figures = json.loads(qornn_command("size", folder / "d.qornn", "--json").stdout)
    n_h = figures["n_h"]
    assert figures["paper_bytes"] == (n_h * n_h + n_h) * 4 / 8 + 4 * 10 * n_h
    assert figures["true_bytes"] == lowered["true_bytes"]
    assert figures["accumulator_bits"] == lowered["accumulator_bits"] <= figures["accumulator_bits_by_shape"]
    assert figures["alpha_W_alpha_h"] == figures["alpha_W"] * figures["alpha_h"]
    assert set(figures["operations"]) == {"full_precision", "quantized_weights", "fully_quantized"}
    assert "alpha_W_alpha_h" in qornn_command("size", folder / "d.qornn").stdout


@pytest.mark.slow
def test_the_paper_s_scheme_gives_a_power_of_two(made, qornn_command):
    folder, _ = made
    qornn_command("lower", folder / "run", "-o", folder / "p.qornn", "--scheme", "paper", "--requant", "table")
    figures = json.loads(qornn_command("size", folder / "p.qornn", "--json").stdout)
    product = figures["alpha_W_alpha_h"]
    assert product == pytest.approx(2.0 ** round(math.log2(product)), rel=1e-15)  # alpha_h is rounded to a float


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["eval", "{d}/none"], "no run folder and no program file"),
        (["eval", "{d}/d.qornn", "--bits", "4"], "finished program"),
        (["eval", "{d}/d.qornn", "--set", "model.n_h=4"], "--set takes only task.NAME=VALUE here"),
        (["eval", "{d}/run", "--set", "task.name=copy"], "the task that it was trained on"),
        (["eval", "{d}/run", "--set", "task.colour=red"], "unknown setting of task 'digits'"),
        (["size", "{d}/d.qornn", "--bits", "4"], "finished program"),
        (["size", "{d}/run/recipe.toml"], "recipe.toml"),
        (["eval", "{d}/run/model.safetensors"], "model.safetensors"),
        (["lower", "{d}/run", "-o", "{d}/x.qornn", "--activation-bits", "20"], "4..16"),
        (["lower", "{d}/none", "-o", "{d}/x.qornn"], "not a run folder"),
        (["lower", "{d}/run", "-o", "{d}/x.qornn", "--scheme", "papers"], "Did you mean"),
    ],
)
def test_bad_input_gets_one_paragraph_and_leaves_no_file(made, words, message, qornn_command):
    folder, _ = made
    done = qornn_command(*(w.format(d=folder) for w in words), check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "x.qornn").exists()


@pytest.mark.slow
def test_post_training_quantization_reaches_integers(tmp_path, qornn_command):
    qornn_command("train", "digits", "--bits", "fp", "--set", "train.epochs=1", "--out", tmp_path / "run")
    done = qornn_command("eval", tmp_path / "run", "--activation-bits", 12, check=False)
    assert "add --bits" in done.stderr
    figures = json.loads(qornn_command("eval", tmp_path / "run", "--bits", 8, "--json").stdout)
    assert figures["integer"] is not None
    qornn_command("lower", tmp_path / "run", "--bits", 8, "-o", tmp_path / "p.qornn")
    assert json.loads(qornn_command("size", tmp_path / "p.qornn", "--json").stdout)["bits"] == 8


def test_a_network_that_cannot_be_lowered_is_an_error_only_where_integers_were_asked_for(monkeypatch):
    from qornn.cli import eval as command
    from qornn.errors import SettingsError

    def refuse(*args, **options):
        raise SettingsError("every state is zero")

    monkeypatch.setattr(sys.modules["qornn.lowering.lower"], "lower", refuse)
    assert command._in_integers(None, None, None) == (None, None, "every state is zero")
    with pytest.raises(SettingsError, match="every state"):
        command._in_integers(None, None, 12)


@pytest.mark.slow
def test_zero_activation_bits_are_not_the_default(made, qornn_command):
    folder, _ = made
    assert "4..16" in qornn_command("eval", folder / "run", "--activation-bits", 0, check=False).stderr


def test_size_tells_the_bits_of_u_and_of_the_task_s_inputs(qornn_command):
    words = ["size", "digits", "--bits", 4, "--set", "model.bits_U=8", "--json"]
    operations = json.loads(qornn_command(*words).stdout)["operations"]
    assert operations["fully_quantized"]["input"]["operands"] == "8x6 bits"
    assert operations["fully_quantized"]["recurrent"]["operands"] == "4x12 bits"


def test_a_place_that_cannot_be_written_is_told_before_the_work(tmp_path):
    for out in ("/proc/none/p.qornn", tmp_path / "x" / ("n" * 300)):
        result = CliRunner().invoke(app, ["lower", str(tmp_path / "no run"), "-o", str(out)])
        assert isinstance(result.exception, WriteError)
        assert str(out) in str(result.exception)
    assert not list(tmp_path.iterdir())
