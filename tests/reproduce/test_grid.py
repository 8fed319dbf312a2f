"""Which networks stand behind which table, and a tiny grid from end to end: killed, out of time, adopted, diverged."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import qornn
from forking import Forked
from qornn import recipe as recipes
from qornn._io.folders import alone
from qornn.cli.reproduce import parse_time
from qornn.errors import SettingsError
from qornn.lowering.score import score
from qornn.reproduce import cells, engine, grid, records
from qornn.tasks.copy import Copy
from qornn.train import Interrupted
from qornn.train import run as runs


@pytest.fixture
def make(tiny, tmp_path):
    """Jobs of the copy task made small, all in one folder."""

    def jobs(filter="copy-bjorck-k8", *, settings=(), **options):
        options = {"variant": "tiny", "fraction": 0.1, "quiet": True, "runs": tmp_path / "runs"} | options
        chosen = filter if isinstance(filter, list) else grid.select("performance", filter)
        return grid.make_jobs(chosen, results=tmp_path / "results", settings=[*tiny, *settings], **options)

    return jobs


def test_every_cell_of_the_recipes_is_in_the_grid_under_one_name():
    held = [id(cell.facts) for entry in grid.entries() for cell in entry.cells if "seeds" not in cell.facts]
    total = sum("seeds" not in cell.facts for task in recipes.names() for cell in recipes.cells(task))
    assert len(held) == len(set(held)) == total
    ids = [entry.id for entry in grid.entries()]
    assert len(ids) == len(set(ids))


def test_names_say_what_a_cell_changes():
    ids = {entry.id for entry in grid.entries()}
    assert {"copy-bjorck-k8", "copy-bjorck-k8-nh190", "copy-bjorck-k8-T2000", "adding-projunn-fp-nh400"} <= ids
    assert {"ptb-bjorck-k5-lr1e-4", "ptb-bjorck-k5-b64", "pmnist-fastgrnn-fp-nh128", "copy-fastgrnn-k8-a16"} <= ids


def test_one_network_serves_every_table_that_prints_it():
    by_id = {entry.id: entry for entry in grid.entries()}
    assert {"performance", "ablation", "sizes", "alphas"} <= set(by_id["pmnist-bjorck-k8"].tables)
    assert {"performance", "hyper"} <= set(by_id["ptb-bjorck-k5"].tables)
    assert {by_id[f"pmnist-ptq-k{k}"].run for k in (4, 6, 8)} == {"pmnist-ptq-fp"}


def test_the_hyperparameters_include_five_seeds():
    seeds = {e.recipe.train.seed for e in grid.of("hyper") if any("seeds" in c.facts for c in e.cells)}
    assert seeds == {0, 1, 2, 3, 4}


def test_a_filter_is_an_id_or_a_part_of_one_and_gives_the_order():
    assert [e.id for e in grid.select("performance", "pmnist-fastgrnn-fp")] == ["pmnist-fastgrnn-fp"]
    both = grid.select("performance", "copy-projunn-k5, copy-bjorck-k")
    assert [e.id for e in both] == ["copy-projunn-k5", *(f"copy-bjorck-k{k}" for k in (8, 6, 5, 4))]


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(SettingsError, match="Did you mean 'performance'"):
        grid.of("preformance")
    with pytest.raises(SettingsError, match="Did you mean 'copy-bjorck-k8'"):
        grid.select("performance", "copy-bjork-k8")
    with pytest.raises(SettingsError, match="Did you mean 'ray'"):
        engine.run([], engine="rai")


def test_a_changed_setting_needs_a_name(make):
    with pytest.raises(SettingsError, match=r"model\.n_h.*--variant"):
        make(variant=None)
    with pytest.raises(SettingsError, match="short name"):
        make(variant="a--b")


def test_what_changes_no_result_needs_no_name(tmp_path):
    options = {"runs": tmp_path, "results": tmp_path, "settings": ["train.eval_every=200"]}
    (job,) = grid.make_jobs(grid.select("performance", "copy-bjorck-k8"), seed=3, **options)
    assert (job.id, job.recipe.train.seed, job.folder.name) == ("copy-bjorck-k8-s3", 3, "copy-bjorck-k8-s3")


@pytest.mark.slow
def test_a_fraction_compresses_the_schedule_and_the_record_says_so(make):
    (outcome,) = engine.run(make())
    record = outcome.record
    assert record == records.read("copy-bjorck-k8--tiny", outcome.job.results)
    assert (record["status"], record["schedule"], record["fraction"]) == ("done", "compressed", 0.1)
    assert record["steps"] == 32  # a tenth of 10 epochs of 256/8 steps
    assert record["value"] == json.loads((outcome.job.folder / "result.json").read_text())["value"]
    assert record["integer"]["value"] == pytest.approx(record["value"], rel=0.05)  # 12-bit states follow floats closely
    assert record["integer"]["refit"]["steps"] == 300
    assert record["integer"]["refit"]["value"] < record["integer"]["value"]  # of so short a training
    assert (record["paper"], record["variant"], record["cell"]) == (1.6e-5, "tiny", "copy-bjorck-k8")
    assert str(outcome.job.folder.parent) not in json.dumps(record)
    kept = qornn.load(outcome.job.results / record["program"])
    assert score(kept, runs.load(outcome.job.folder).task(), quiet=True) == record["integer"]["value"]


@pytest.mark.slow
def test_a_stack_is_measured_with_the_states_it_was_trained_with(tmp_path):
    sizes = {"task.T": 20, "task.train_size": 640, "task.validation_size": 50, "task.test_size": 50}
    small = [f"{key}={value}" for key, value in {**sizes, "model.width": 4, "model.pairs": 4}.items()]
    chosen = grid.select("structured", "adding-stack-k4")
    options = {"runs": tmp_path / "runs", "results": tmp_path / "results", "fraction": 0.1, "quiet": True}
    (outcome,) = engine.run(grid.make_jobs(chosen, settings=small, variant="tiny", **options))
    record = outcome.record
    assert record is not None, outcome.error
    assert record["integer"]["activation_bits"] == 12
    assert record["integer"]["value"] == pytest.approx(record["value"], rel=1e-5)  # sums of float32 in another order
    assert record["program"] == f"programs/{record['id']}.qornn"


def test_a_large_program_is_not_kept(tmp_path, monkeypatch):
    program = qornn.load("zoo:digits-k4")
    assert records.keep(program, "small", tmp_path) == "programs/small.qornn"
    monkeypatch.setattr(records, "MOST_BYTES", 1000)
    assert records.keep(program, "large", tmp_path) is None
    assert [p.name for p in (tmp_path / "programs").iterdir()] == ["small.qornn"]


@pytest.mark.slow
def test_a_readout_trained_as_integers_is_not_refitted(make):
    (outcome,) = engine.run(make(settings=["model.bits_V=8"]))
    assert outcome.record["integer"]["value"] > 0
    assert "refit" not in outcome.record["integer"]


@pytest.mark.slow
def test_a_finished_cell_is_never_run_again(make):
    (job,) = make()
    list(engine.run([job]))
    files = [records.path_of(job.id, job.results), job.folder / "model.safetensors", job.folder / "metrics.jsonl"]
    before = [file.stat().st_mtime_ns for file in files]
    assert cells.state(job) == "done"
    list(engine.run(make(fraction=None)))
    assert [file.stat().st_mtime_ns for file in files] == before


@pytest.mark.slow
def test_a_run_made_by_hand_is_adopted(make):
    (job,) = make()
    runs.start(job.recipe.override(["train.eval_every=3"]), job.folder, quiet=True)
    before = (job.folder / "model.safetensors").stat().st_mtime_ns
    assert cells.state(job) == "trained"
    record = cells.make(job)
    assert record["status"] == "done"
    assert (job.folder / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.slow
def test_another_run_in_the_folder_is_not(make):
    (job,) = make()
    runs.start(job.recipe.override(["train.lr=0.02"]), job.folder, quiet=True)
    (outcome,) = engine.run([job])
    assert outcome.record is None
    assert "train.lr is 0.02 there and 0.01 here" in outcome.error


@pytest.mark.slow
def test_a_run_that_starts_from_a_relative_folder_is_adopted(tiny, make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs.start(recipes.resolve("copy", bits=8, settings=[*tiny, "train.steps=2"]), tmp_path / "wide", quiet=True)
    (job,) = make(settings=["train.start=wide"])
    runs.start(job.recipe, job.folder, quiet=True)  # its folder holds the absolute path
    assert cells.make(job)["settings"]["train"]["start"] == "wide"


@pytest.mark.slow
@pytest.mark.parametrize("timer", [True, False], ids=["timer", "no timer"])
def test_a_budget_stops_a_cell_which_then_goes_on(make, monkeypatch, timer):
    if not timer:
        monkeypatch.delattr(signal, "setitimer", raising=False)  # as on Windows
    long = ["task.train_size=65536", "train.log_every=50", "train.eval_every=5000"]  # 80 000 steps: minutes
    (job,) = make(settings=long, fraction=None, budget=0.5)
    record = cells.make(job)
    assert (record["status"], record["schedule"]) == ("partial", "cut")
    assert 0 < record["steps"] < 80_000
    assert record["fraction"] == pytest.approx(record["steps"] / 81_920, abs=1e-6)
    assert record["value"] is not None
    assert record["seconds"] < 5
    assert cells.make(job)["steps"] == record["steps"]  # the budget is spent
    more = cells.make(replace(job, budget=record["seconds"] + 0.5))
    assert more["steps"] > record["steps"]


@pytest.mark.slow
def test_a_budget_that_ends_while_a_trained_cell_is_evaluated_leaves_it_done(make, monkeypatch):
    original, rung = Copy.batch, []

    def batch(self, split, index, size, **options):
        if split == "test" and not rung:
            rung.append(index)
            os.kill(os.getpid(), signal.SIGALRM)  # the budget's clock
        return original(self, split, index, size, **options)

    (job,) = make(budget=1000.0)
    monkeypatch.setattr(Copy, "batch", batch)
    record = cells.make(job)
    assert rung
    assert (record["status"], record["schedule"]) == ("done", "compressed")


@pytest.mark.slow
def test_divergence_is_a_result_and_stops_no_other_cell(make):
    first, second = make("copy-bjorck-k8,copy-bjorck-fp", settings=["train.lr=1e8"])
    second = replace(second, recipe=second.recipe.override(["train.lr=0.01"]))
    outcomes = list(engine.run([first, second]))
    record = outcomes[0].record
    assert (record["status"], record["value"], record["converged"]) == ("diverged", None, False)
    assert record["note"].startswith("diverged at step")
    assert "checkpoint" not in record["note"]
    assert outcomes[1].record["status"] == "done"


@pytest.mark.slow
def test_quantizing_afterwards_shares_one_run(make):
    (base,) = grid.select("performance", "copy-bjorck-fp")
    post = []
    for k in (8, 2):
        cell = replace(base.cells[0], bits=k, facts={"post": True}, paper=1.0)
        post.append(replace(base, id=f"copy-ptq-k{k}", run="copy-ptq-fp", cells=(cell,)))
    jobs = make(post)
    assert len({job.folder for job in jobs}) == 1
    eight, two = (outcome.record for outcome in engine.run(jobs))
    assert [path.name for path in jobs[0].folder.parent.iterdir() if path.is_dir()] == ["copy-ptq-fp--tiny"]
    assert eight["full_precision"] == two["full_precision"]
    assert eight["orthogonality"] < two["orthogonality"]
    assert eight["value"] == pytest.approx(eight["full_precision"], rel=0.02)  # 8 bits change little
    assert (eight["steps"], two["steps"]) == (32, 32)


def test_two_processes_do_not_share_a_folder(make):
    (job,) = make()
    with alone(job.folder, "train"), ThreadPoolExecutor(1) as another:
        (outcome,) = another.submit(lambda: list(engine.run([job]))).result()
    assert "another process" in outcome.error


def test_ctrl_c_stops_the_grid_and_keeps_the_run(make, monkeypatch):
    jobs = make("copy-bjorck-k8,copy-bjorck-fp")

    def interrupted(*_, **__):
        raise Interrupted("interrupted")

    monkeypatch.setattr(cells.runs, "start", interrupted)
    with pytest.raises(Interrupted):
        list(engine.run(jobs))
    assert not (jobs[0].results / "cells").exists()


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400)])
def test_times(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["30", "m", "half an hour", "30m!"])
def test_a_bad_time_is_refused(text):
    with pytest.raises(SettingsError, match="30m"):
        parse_time(text)


def first_lines(folder):
    return (folder / "metrics.jsonl").read_text().splitlines()[:20]


@pytest.mark.slow
def test_a_killed_grid_goes_on_to_the_same_figures(tiny, make, tmp_path):
    both = "copy-bjorck-k8,copy-bjorck-fp"
    often = ["train.checkpoint_every=5"]
    folder = tmp_path / "killed"
    words = ["reproduce", "performance", "--cells", both, "--variant", "tiny", "--fraction", "0.5"]
    words += [word for setting in (*tiny, *often) for word in ("--set", setting)]
    victim = Forked(*words, "--runs", folder, "--results", folder)
    first = folder / "copy-bjorck-k8--tiny"
    while not list(first.glob("checkpoint/step-000000[2-9]*")):
        assert victim.poll() is None
        time.sleep(0.01)
    victim.kill()
    victim.wait()
    done = first_lines(first)
    killed = [replace(job, results=folder) for job in make(both, settings=often, fraction=0.5, runs=folder)]
    assert [cells.state(job) for job in killed] == ["partial", "not run"]
    went_on = {outcome.job.id: outcome.record["value"] for outcome in engine.run(killed)}
    whole = {outcome.job.id: outcome.record["value"] for outcome in engine.run(make(both, fraction=0.5))}
    assert went_on == whole
    assert first_lines(first) == done  # with the seconds they took: not trained a second time


def test_a_record_that_cannot_be_written_is_told_before_the_training(make, monkeypatch):
    monkeypatch.setattr(cells.runs, "start", lambda *_, **__: pytest.fail("it was trained first"))
    (job,) = make()
    (outcome,) = engine.run([replace(job, results=Path("/proc/none"))])
    assert "could not write /proc/none" in outcome.error
    assert not job.folder.exists()
