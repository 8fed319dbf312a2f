"""The programs that come with the package are what their records say, on data they were not recorded on too."""

import json

import numpy as np
import pytest
import torch

import qornn
from qornn import zoo
from qornn.errors import QornnError, SettingsError
from qornn.integer.storage import save
from qornn.lowering.inputs import raw_input
from qornn.lowering.score import score
from qornn.recipe import from_tables
from qornn.train.build import build_task

NAMES = zoo.names()


def task_of(name):
    return build_task(from_tables(zoo.record(name)["recipe"]))


def of_task(*tasks):
    """Programs that were trained on one of these."""
    return [name for name in NAMES if zoo.record(name)["task"] in tasks]


def test_the_zoo_is_not_empty():
    assert "digits-k4" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_small_and_says_where_it_comes_from(name):
    program, record = qornn.load(f"zoo:{name}"), zoo.record(name)
    assert zoo.file(name).stat().st_size == record["file_bytes"] < 400_000
    assert program.provenance["metric"]["value"] == record["value"]
    bits = program.bits if len(program.layers) > 1 else program.W.bits  # of a single layer, those of W
    assert (bits, program.activation_bits) == (record["bits"], record["activation_bits"])
    assert program.true_bytes == record["true_bytes"]
    assert "data_dir" not in json.dumps(record)


@pytest.mark.slow
@pytest.mark.parametrize("name", of_task("copy", "digits"))
def test_it_gives_the_recorded_figure(name):
    """The same engine, the same integers: the same figure, to the last bit of a float32 mean."""
    assert score(qornn.load(f"zoo:{name}"), task_of(name), quiet=True) == pytest.approx(
        zoo.record(name)["value"], rel=1e-6
    )


@pytest.mark.parametrize("name", of_task("copy"))
def test_fresh_sequences_are_recalled_as_well(name):
    task, program, record = task_of(name), qornn.load(f"zoo:{name}"), zoo.record(name)
    part = task.batch("test", 0, 100, seed=12345)
    y = program.readout.values(program.run(raw_input(program, part)))
    # 1000 symbols: a mean of so few differs from the recorded one by chance, by far less than to the naive baseline.
    assert task.metric(torch.from_numpy(y), part) < 0.5 * (record["value"] + record["baseline"])
    recalled = y[:, -10:].argmax(-1) == part.target[:, -10:].numpy()
    guessed = np.mean(recalled)
    assert guessed > 0.5  # an eighth would be chance


def test_an_unknown_name_lists_the_zoo():
    with pytest.raises(SettingsError, match=r"digits-k4.*Did you mean 'digits-k4'"):
        qornn.load("zoo:digit-k4")


def test_the_command_line_knows_the_zoo(qornn_command):
    figures = json.loads(qornn_command("eval", "zoo:digits-k4", "--json").stdout)
    assert figures["value"] == figures["recorded"]
    assert json.loads(qornn_command("size", "zoo:digits-k4", "--json").stdout)["bits"] == 4


def test_a_folder_of_fit_opens_as_its_program(tmp_path):
    made = qornn.load("zoo:digits-k4")
    save(made, tmp_path / "model.qornn")
    assert qornn.load(tmp_path).provenance == made.provenance
    (tmp_path / "recipe.toml").write_text("", encoding="utf-8")  # a run that holds such a file stays a run
    with pytest.raises(QornnError):
        qornn.load(tmp_path)
