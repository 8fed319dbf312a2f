"""Cells over two local Ray workers, one of them killed in the middle of a cell."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from qornn._io.folders import LOCK
from qornn.errors import SettingsError
from qornn.reproduce import engine, grid, records

BOTH = "copy-bjorck-k8,copy-bjorck-fp"


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingsError, match=r"qornn\[ray\]"):
        list(engine.run([], engine="ray", workers=2))


def writer(folder):
    """The process that is, or was when it was killed, in a run's folder."""
    try:
        return int((folder / LOCK).read_text().split()[0])
    except (OSError, IndexError):
        return None


@pytest.mark.slow
def test_a_killed_worker_costs_only_time(tiny, tmp_path):
    pytest.importorskip("ray")
    settings = [*tiny, "train.checkpoint_every=5"]
    words = ["reproduce", "performance", "--cells", BOTH, "--variant", "tiny", "--engine", "ray", "--workers", "2"]
    words += ["--fraction", "0.5", *(word for setting in settings for word in ("--set", setting)), "--json"]
    folder = tmp_path / "ray"
    foreign = tmp_path / "downloads"  # a module in the working folder is nobody's to import
    foreign.mkdir()
    (foreign / "safetensors.py").write_text(f"open({str(foreign / 'ran')!r}, 'w')\n")
    driver = subprocess.Popen(
        [sys.executable, "-m", "qornn", *words, "--runs", folder, "--results", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=foreign,
    )
    victim = folder / "copy-bjorck-k8--tiny"
    while not list(victim.glob("checkpoint/step-000000[2-9]*")):
        assert driver.poll() is None, driver.stderr.read()
        time.sleep(0.01)
    # The lock holds the process that trains in the folder: one of Ray's workers.
    killed = writer(victim)
    assert killed not in (None, driver.pid)
    os.kill(killed, signal.SIGKILL)
    assert not (victim / "model.safetensors").exists()
    done = (victim / "metrics.jsonl").read_text().splitlines()[:20]
    while (again := writer(victim)) in (None, killed):
        assert driver.poll() is None, driver.stderr.read()
        time.sleep(0.01)
    assert again != driver.pid
    out, err = driver.communicate(timeout=120)
    assert driver.returncode == 0, err
    assert json.loads(out)["failed"] == {}
    assert not (foreign / "ran").exists()
    # With the seconds they took: the steps up to the checkpoint were not trained a second time.
    assert (victim / "metrics.jsonl").read_text().splitlines()[:20] == done
    chosen = grid.select("performance", BOTH)
    local = tmp_path / "local"
    jobs = grid.make_jobs(chosen, runs=local, results=local, settings=tiny, variant="tiny", fraction=0.5, quiet=True)
    whole = {outcome.job.id: outcome.record["value"] for outcome in engine.run(jobs)}
    assert {record["id"]: record["value"] for record in records.read_all(folder)} == whole
