"""One cell: its run is started, continued or, if finished, loaded; then it is measured and recorded."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from qornn import __version__
from qornn._io.files import check_file, write_atomically
from qornn._io.foreign import read_text, reason
from qornn.errors import CheckpointError, DivergenceError, SettingsError
from qornn.recipe import read_run
from qornn.reproduce import records
from qornn.reproduce.grid import Job, differences
from qornn.reproduce.measure import DIAGNOSTICS, PROGRAM, measure
from qornn.train import Interrupted
from qornn.train import checkpoint as checkpoints
from qornn.train import run as runs
from qornn.train.log import read_metrics
from qornn.train.place import keep

SPENT = "budget"  # in a run folder: the seconds after which it was stopped
PAUSE = 0.2  # seconds between two rings of the budget's clock


def make(job: Job) -> dict[str, Any]:
    """The job's record: the one there is when it is finished, else what training up to the budget gives."""
    threads = torch.get_num_threads()
    try:
        with keep(job.folder):
            found = records.read(job.id, job.results)
            if found is not None and found["status"] in records.FINISHED:
                return found
            check_file(records.path_of(job.id, job.results))
            return _train_and_record(job)
    finally:
        torch.set_num_threads(threads)  # a resumed run takes those of its checkpoint


def state(job: Job) -> str:
    """done, diverged, partial, trained (all but its record) or not run."""
    found = records.read(job.id, job.results)
    if found is not None:
        return str(found["status"])
    if (job.folder / runs.MODEL_FILE).exists():
        return "trained"
    return "partial" if (job.folder / "recipe.toml").exists() else "not run"


def seconds_left(job: Job, probed: dict[tuple[Any, ...], float | None]) -> float | None:
    """Estimated seconds of training that are left; `probed` keeps the seconds per step of networks tried before."""
    if state(job) in (*records.FINISHED, "trained"):
        return 0.0
    used, step, _ = _progress(job.folder)
    m, t = job.recipe.model, job.recipe.train
    shape = (job.recipe.task["name"], job.recipe.task.get("T0"), m.kind, m.map, m.n_h, t.batch, t.optimizer)
    if shape not in probed:
        try:
            trial = runs.dry_run(job.recipe, device=job.device)
            probed[shape] = float(trial["seconds_per_step"])
        except DivergenceError:  # the run will say so itself
            probed[shape] = None
    each = probed[shape]
    if each is None:
        return None
    left = each * max(_planned_steps(job) - step, 0)
    return left if job.budget is None else min(left, max(job.budget - used, 0.0))


def _train_and_record(job: Job) -> dict[str, Any]:
    finished = (job.folder / runs.MODEL_FILE).exists()
    _check_same_network(job)
    if not finished and not _out_of_time(job):
        try:
            _train(job)
        except DivergenceError as error:
            return _record(job, status="diverged", **_divergence(error, job.folder))
    run = runs.load(job.folder)
    _, step, _ = _progress(job.folder)
    previous = records.read(job.id, job.results)
    if not run.finished and previous is not None and previous.get("steps") == step:
        return previous  # nothing new to measure
    return _record(job, status="done" if run.finished else "partial", **measure(job, run))


def _out_of_time(job: Job) -> bool:
    """Whether the budget is spent; the stopped run says for how much, so that cells that share it agree."""
    if job.budget is None:
        return False
    note = job.folder / SPENT
    try:
        spent = float(read_text(note)) if note.exists() else 0.0
    except ValueError as error:
        raise CheckpointError(f"cannot read {note}: {reason(error)}; delete it to continue the training") from error
    return max(spent, _progress(job.folder)[0]) >= job.budget


def _train(job: Job) -> None:
    """Start or continue the run. Running out of time is not an error."""
    seconds = None if job.budget is None else job.budget - _progress(job.folder)[0]
    resumed = (job.folder / "recipe.toml").exists()
    moved = [f"task.data_dir={json.dumps(job.recipe.task['data_dir'])}"] if "data_dir" in job.recipe.task else []
    with _deadline(seconds) as rung:
        try:
            if resumed:
                runs.resume(job.folder, settings=moved, quiet=job.quiet)
            else:
                runs.start(job.recipe, job.folder, device=job.device, quiet=job.quiet)
        except Interrupted:
            if not rung:
                raise
            if _progress(job.folder)[1] < _planned_steps(job):
                write_atomically(job.folder / SPENT, f"{job.budget}\n")
                return
    if not (job.folder / runs.MODEL_FILE).exists():  # trained, and out of time only while it was evaluated
        runs.resume(job.folder, settings=moved, quiet=job.quiet)


def _record(job: Job, *, status: str, **figures: Any) -> dict[str, Any]:
    recipe = read_run(job.folder)
    entry, task = job.entry, runs.build_task(recipe)
    _, _, extra = _progress(job.folder)
    whole = task.steps_per_epoch(recipe.train.batch) * entry.recipe.train.epochs
    program = figures.pop(PROGRAM, None)
    measured = {"value": None, "converged": False, "steps": 0, "seconds": None, "version": __version__, **figures}
    for name in (*DIAGNOSTICS, "integer"):
        measured.setdefault(name, None)
    record = {
        "id": job.id,
        "cell": entry.id,
        "task": entry.task,
        "strategy": entry.strategy,
        "bits": entry.bits,
        "n_h": recipe.model.n_h,
        "table": entry.tables,
        "variant": job.variant,
        "settings": recipe.portable_tables(),
        "metric": task.metric_name,
        "baseline": task.naive_baseline,
        "paper": entry.paper,
        "difference": records.difference(measured["value"], entry.paper),
        "status": status,
        "fraction": round(measured["steps"] / whole, 6),
        "schedule": _schedule(recipe.train.fraction, measured["steps"], whole),
        "seed": recipe.train.seed,
        "machine": records.machine(extra.get("threads", torch.get_num_threads()), extra.get("device", "cpu")),
        "commit": records.commit(),
        "facts": task.facts(),
        **measured,
        PROGRAM: None if program is None else records.keep(program, job.id, job.results),
        "curve": records.curve(read_metrics(job.folder / "metrics.jsonl")),
    }
    records.write(record, job.results)
    return record


def _schedule(fraction: float, steps: int, whole: int) -> str:
    """How the learning rate went: as in the paper, all of it in fewer steps, or only its beginning."""
    if fraction < 1:
        return "compressed"
    return "whole" if steps >= whole else "cut"


def _divergence(error: DivergenceError, folder: Path) -> dict[str, Any]:
    """The step and the reason, without the advice and the path that follow; the states as they were last seen."""
    reason = str(error).partition(". Likely cause")[0]
    step = re.search(r"at step (\d+)", reason)
    used, _, _ = _progress(folder)
    seen = [m for m in read_metrics(folder / "metrics.jsonl") if "max_h" in m]
    last = {key: seen[-1].get(key) for key in DIAGNOSTICS} if seen else {}
    return {"steps": int(step[1]) if step else 0, "seconds": round(used, 3) or None, **last, "note": reason}


def _check_same_network(job: Job) -> None:
    """Use an existing folder only if it holds the same network with the same training settings."""
    if not (job.folder / "recipe.toml").exists():
        return
    wrong = differences(read_run(job.folder), job.recipe)
    if wrong:
        listed = ", ".join(f"{key} is {theirs!r} there and {mine!r} here" for key, (theirs, mine) in wrong.items())
        raise SettingsError(
            f"{job.folder} holds a different run, not {job.id}: {listed}. Give the same with --set and --variant NAME, "
            "or choose another --runs"
        )


def _planned_steps(job: Job) -> int:
    from qornn.train.optim import total_steps

    there = job.folder / "recipe.toml"
    train = (read_run(job.folder) if there.exists() else job.recipe).train
    return train.steps or total_steps(runs.build_task(job.recipe).steps_per_epoch(train.batch), train)


def _progress(folder: Path) -> tuple[float, int, dict[str, Any]]:
    """Seconds, steps and other facts of the newest checkpoint."""
    saved = checkpoints.files(folder / "checkpoint")
    if not saved:
        return 0.0, 0, {}
    state = checkpoints.load(saved[-1])
    return float(state.extra.get("seconds", 0.0)), state.step, state.extra


@contextmanager
def _deadline(seconds: float | None) -> Iterator[list[int]]:
    """After that time the trainer gets SIGTERM and stops. The list then holds the signal."""
    rung: list[int] = []
    if seconds is None:
        yield rung
        return
    outside = signal.getsignal(signal.SIGTERM)

    def ring(number: int, frame: Any) -> None:
        # Only the trainer's own handler: before and after training a SIGTERM would end the whole grid.
        handler = signal.getsignal(signal.SIGTERM)
        if not rung and callable(handler) and handler is not outside:
            rung.append(number)
            handler(signal.SIGTERM, frame)

    with _clock(max(seconds, 1e-3), ring):
        yield rung


@contextmanager
def _clock(seconds: float, ring: Callable[[int, Any], None]) -> Iterator[None]:
    """Call it after that time, and then again and again: it may ring too early."""
    if not hasattr(signal, "setitimer"):  # Windows; the trainer's handler takes a note, which any thread may do
        over = threading.Event()

        def wait() -> None:
            pause = seconds
            while not over.wait(pause):
                ring(signal.SIGTERM, None)
                pause = PAUSE

        watch = threading.Thread(target=wait, daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, PAUSE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
