"""What older versions could do and this one cannot: refused in one line that says the way out."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import qornn
from qornn.cli import app
from qornn.errors import ProgramError, SettingsError

FILES = Path(__file__).parent / "integer" / "files"


def refusal(*arguments):
    """What a command says when it refuses: one line."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    said = result.stderr if isinstance(result.exception, SystemExit) else str(result.exception)
    assert result.exit_code != 0
    assert len(said.strip().splitlines()) == 1
    return said


def test_a_program_of_quaternions_is_opened_with_0_1():
    path = FILES / "retired-quaternion.qornn"
    with pytest.raises(ProgramError) as refused:
        qornn.load(path)
    assert str(refused.value).startswith(f"{path} was made by qornn 0.1; open it with 0.1")


def test_the_map_of_quaternions_is_refused_with_those_that_exist(tmp_path):
    said = refusal("train", "digits", "--map", "quaternion", "--out", tmp_path / "run")
    for word in ("the map 'quaternion' is retired", "0.1", "'cycle'", "hadamard-block"):
        assert word in said
    for options in ({"map": "quaternion"}, {"settings": ['model.map="quaternion"']}):
        with pytest.raises(SettingsError, match=r"the map 'quaternion' is retired: its runs open with qornn 0\.1"):
            qornn.train("digits", **options)
    with pytest.raises(SettingsError, match=r"is retired.*choose from bjorck, cycle, delay"):
        qornn.OrthogonalRNN(1, 16, 2, map="quaternion")


def test_a_run_of_quaternions_is_opened_with_0_1(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.toml").write_text('[task]\nname = "digits"\n[model]\nmap = "quaternion"\nn_h = 64\n')
    for command in ("eval", "resume"):
        assert "its runs open with qornn 0.1" in refusal(command, run)


def test_a_folder_with_a_byte_per_weight_is_exported_again(tmp_path):
    program, out = FILES / "dense-multiplier-relu-codes.qornn", tmp_path / "net_c"
    export = ["export", program, "--to", "c", "-o", out, "--name", "net"]
    said = refusal(*export, "--layout", "bytes")
    assert "the layout 'bytes' is retired" in said
    assert said.strip().endswith("choose from packed")
    assert CliRunner().invoke(app, [str(word) for word in export]).exit_code == 0
    vectors = out / "test/net_vectors.h"
    of_0_1, count = re.subn(r"net_FORMAT \d+\n", "net_FORMAT 2\n", vectors.read_text())
    vectors.write_text(of_0_1)
    assert count == 1
    assert "export again: `qornn export" in refusal("verify", out)


@pytest.mark.parametrize("target", ["c", "onnx"])
def test_a_table_is_for_numpy_alone(target, tmp_path):
    path = FILES / "dense-table-identity-samples.qornn"
    said = refusal(
        "export", path, "--to", target, "-o", tmp_path / "out", *(["--name", "net"] if target == "c" else [])
    )
    assert "requantization by a table" in said
    assert 'requant="thresholds" or "multiplier"' in said
    assert not (tmp_path / "out").exists()
