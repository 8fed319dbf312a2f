"""Records can be measured again: three of the programs they keep, others at every commit."""

import hashlib
import os
from dataclasses import fields
from pathlib import Path

import pytest

import qornn
from qornn.lowering.score import score
from qornn.recipe import from_tables
from qornn.reproduce import records
from qornn.tasks import TASKS
from qornn.train.run import build_task

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
KEPT = [r for r in records.read_all(RESULTS) if r.get("program")]
COMMIT = records.commit() or ""
CHOSEN = sorted(KEPT, key=lambda r: hashlib.sha256(f"{COMMIT} {r['id']}".encode()).hexdigest())[:3]


@pytest.mark.parametrize("record", CHOSEN, ids=[r["id"] for r in CHOSEN])
@pytest.mark.slow
def test_a_kept_program_has_the_figure_of_its_record(record):
    if any(f.name == "data_dir" for f in fields(TASKS[record["task"]])) and not os.environ.get("QORNN_DATA"):
        pytest.skip(f"the data of {record['task']} are not in $QORNN_DATA")
    recipe = from_tables(record["settings"])
    program = qornn.load(RESULTS / record["program"])
    assert program.true_bytes == record["integer"]["bytes"]
    assert score(program, build_task(recipe), quiet=True) == pytest.approx(record["integer"]["value"], rel=1e-6)


def test_every_kept_program_belongs_to_a_record():
    there = {f"programs/{p.name}" for p in (RESULTS / "programs").glob("*")}
    assert there == {r["program"] for r in KEPT}
