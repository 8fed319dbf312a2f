"""Stacks on the command line: train, eval, lower and size say the same of one network."""

import json

import pytest
from typer.testing import CliRunner

from qornn.cli import app
from qornn.errors import QornnError
from qornn.zoo.opening import load_program

TASKS = {
    "digits": ["train.lr=2e-2"],
    "adding": ["task.T=12", "task.train_size=256", "task.validation_size=16", "task.test_size=64"],
    "copy": ["task.T0=5", "task.train_size=256", "task.validation_size=16", "task.test_size=16"],
}
SHAPES = [
    ["model.skip=true"],
    ["model.skip=false", "model.pairs=7", "model.layers=1", "model.lambda_bits=10", "model.bits_V=6"],
]


def call(*words):
    result = CliRunner().invoke(app, [str(w) for w in words])
    if isinstance(result.exception, QornnError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def words_of(settings):
    return [word for setting in settings for word in ("--set", setting)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=["skip", "pairs"])
@pytest.mark.parametrize("task", TASKS)
def test_eval_lower_and_size_agree(task, shape, qornn_command, tmp_path):
    run, file = tmp_path / "run", tmp_path / "net.qornn"
    settings = words_of([*TASKS[task], "model.width=6", "train.batch=8", *shape])
    words = [task, "--model", "stack", "--bits", 3, *settings]
    sized = json.loads(call("size", *words, "--json"))
    trained = json.loads(
        qornn_command("train", *words, "--activation-bits", 7, "--steps", 60, "--out", run, "--json").stdout
    )
    assert (trained["bits"], trained["activation_bits"]) == (6 if "model.bits_V=6" in shape else 3, 7)
    seen = json.loads(qornn_command("eval", run, "--json").stdout)
    assert seen["value"] == seen["weights_quantized"] == seen["integer"]  # to the last digit
    assert seen["value"] == pytest.approx(trained["value"], rel=1e-6)
    assert seen["float"] != seen["value"]
    assert (seen["activation_bits"], seen["integer_activation_bits"], seen["bits"]) == (7, 7, trained["bits"])
    lowered = json.loads(qornn_command("lower", run, "-o", file, "--json").stdout)
    assert lowered["value"] == pytest.approx(seen["value"], rel=1e-5)  # in other batches
    assert (lowered["activation_bits"], lowered["bits"]) == (7, trained["bits"])
    program = load_program(str(file))
    assert sized["true_bytes"] == program.true_bytes == lowered["true_bytes"]
    assert (sized["parameters"], sized["paper_bytes"], sized["bits"]) == (program.parameters, None, trained["bits"])
    assert sized["accumulator_bits"] >= program.accumulator_bits
    assert json.loads(call("size", run, "--json"))["true_bytes"] == program.true_bytes
    again = json.loads(qornn_command("eval", file, "--json").stdout)
    assert again["value"] == pytest.approx(seen["value"], rel=1e-5)
    assert "rotations" in qornn_command("lower", run, "-o", file).stdout


@pytest.mark.slow
def test_other_state_bits_than_the_trained_are_refused_in_one_line(qornn_command, tmp_path):
    run = tmp_path / "run"
    words = words_of(["task.limit=64", "model.width=6", "train.batch=8"])
    qornn_command("train", "digits", "--model", "stack", "--steps", 3, *words, "--out", run)
    for command in (["eval", run], ["lower", run, "-o", tmp_path / "net.qornn"]):
        done = qornn_command(*command, "--activation-bits", 12, check=False)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert "rounded to 8 bits in training" in done.stderr
        assert "leave it out, or train with activation_bits=12" in done.stderr
        assert qornn_command(*command, "--activation-bits", 8).returncode == 0
    full = tmp_path / "full"
    qornn_command("train", "digits", "--model", "stack", "--bits", "fp", "--steps", 3, *words, "--out", full)
    seen = json.loads(qornn_command("eval", full, "--json").stdout)
    assert seen["value"] == seen["float"]
    assert [seen[key] for key in ("bits", "activation_bits", "weights_quantized", "integer")] == [None] * 4
    done = qornn_command("lower", full, "-o", tmp_path / "net.qornn", check=False)
    assert "at full precision" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["train", "digits", "--activation-bits", "8"],
            "activation_bits is a training setting only of --model stack",
        ),
        (
            ["train", "digits", "--model", "lstm", "--activation-bits", "8"],
            "activation_bits are for fastrnn and fastgrnn",
        ),
        (["train", "digits", "--model", "stack", "--activation-bits", "3"], r"must be in 4\.\.16"),
        (["train", "digits", "--model", "stak"], "Did you mean 'stack'"),
        (["size", "digits", "--model", "stack", "--set", "model.lambda_bits=13"], r"lambda_bits must be in 8\.\.12"),
        (["size", "digits", "--model", "stack", "--bits", "9"], r"bits must be in 2\.\.8"),
    ],
)
def test_bad_options_are_refused(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QornnError, match=message):
        call(*words)
    assert not list(tmp_path.iterdir())


def test_size_of_a_stack_at_full_precision():
    figures = json.loads(call("size", "digits", "--model", "stack", "--bits", "fp", "--json"))
    assert figures["accumulator_bits"] is None
    biases = 3 * 24 + 10
    assert figures["true_bytes"] == 4 * (figures["parameters"] + biases)
    assert "24" in call("size", "digits", "--model", "stack")


def test_the_recipes_name_stacks():
    assert "stack" in call("list")
    assert "adamw" in call("show", "digits")
