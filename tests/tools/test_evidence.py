"""The list of trainings beside the records: every entry can be run as it stands."""

import tomllib
from itertools import pairwise

import evidence
import pytest

from qornn.reproduce import grid, records

RUNS = tomllib.loads(evidence.LIST.read_text(encoding="utf-8"))["run"]


@pytest.mark.parametrize("run", RUNS, ids=[run["cell"] for run in RUNS])
def test_an_entry_is_a_cell_and_its_record_was_made_this_way(run, tmp_path):
    words = next(evidence.commands([run], [run["cell"]]))
    settings = [word for before, word in pairwise(words) if before == "--set"]
    (entry,) = [e for e in grid.of(run.get("table", "performance")) if e.id == run["cell"]]
    options = {"variant": run.get("variant"), "fraction": run.get("fraction"), "runs": tmp_path}
    (job,) = grid.make_jobs([entry], settings=settings, results=evidence.ROOT / "results", **options)
    there = records.read(job.id, job.results)
    if there is not None:
        made = job.recipe.portable_tables()
        assert {key: there["settings"][key] for key in ("model", "train")} == {k: made[k] for k in ("model", "train")}


def test_parts_of_names_choose_and_every_seed_is_a_call():
    assert len(list(evidence.commands(RUNS, ["smnist-stack"]))) == 3
    assert not list(evidence.commands(RUNS, ["no such cell"]))
    assert list(evidence.commands([{"cell": "a", "set": {"x": True, "y": "z"}}], [""])) == [
        ["reproduce", "performance", "--cells", "a", "--set", "x=true", "--set", "y=z"]
    ]
