"""Cells over a Ray cluster (extra [ray]): a worker that dies costs what it did since its last checkpoint.

Run folders and records must lie where every worker sees them: on one machine anywhere, on a cluster on a shared disk.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from typing import Any

from qornn.errors import SettingsError
from qornn.reproduce.grid import Job
from qornn.reproduce.jobs import Outcome, carry_out

RETRIES = 5  # of a cell whose worker died


def spread(groups: list[list[Job]], workers: int) -> Iterator[Outcome]:
    """As many groups at a time as there are workers, each on a process of its own; retried when that dies."""
    with redirect_stdout(sys.stderr):  # Ray tells of dead workers there; ours is for the one JSON object
        yield from _spread(_started(workers), groups, workers)


def _spread(ray: Any, groups: list[list[Job]], workers: int) -> Iterator[Outcome]:
    # A fresh process for each: the number of threads and what a diverged run left must not reach the next one.
    task = ray.remote(num_cpus=1, max_retries=RETRIES, max_calls=1)(carry_out)
    waiting, running = list(reversed(groups)), dict[Any, list[Job]]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                group = waiting.pop()
                running[task.remote(group)] = group
            (done,), _ = ray.wait(list(running), num_returns=1)
            yield from _outcomes(ray, done, running.pop(done))
    finally:
        for left in running:  # Ctrl-C: the trainers hear of it as of an interrupt, and save
            ray.cancel(left)
        if running:
            ray.wait(list(running), num_returns=len(running), timeout=60)
        ray.shutdown()


def _outcomes(ray: Any, done: Any, group: list[Job]) -> list[Outcome]:
    try:
        return list(ray.get(done))
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[-1]
        return [Outcome(job, None, f"its worker failed {RETRIES + 1} times: {reason}") for job in group]


def _started(workers: int) -> Any:
    """Ray, on the cluster that RAY_ADDRESS names or else on this machine."""
    try:
        import ray
    except ImportError as error:
        raise SettingsError("--engine ray needs Ray: pip install 'qornn[ray]'") from error
    where: dict[str, Any] = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers, "include_dashboard": False}
    with chdir(sys.prefix):  # where Ray starts comes first on its workers' path; folders of jobs are absolute
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **where)
    return ray
