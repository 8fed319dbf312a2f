"""Engines: what carries out a grid's jobs, here one after another or spread over a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from qornn.errors import SettingsError, unknown
from qornn.reproduce.grid import Job
from qornn.reproduce.jobs import Outcome, carry_out
from qornn.reproduce.ray_engine import spread


def run(jobs: Iterable[Job], *, engine: str = "local", workers: int = 1) -> Iterator[Outcome]:
    """Carry out the jobs, each outcome as it comes; a job that fails stops no other."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if workers < 1:
        raise SettingsError(f"--workers must be at least 1, got {workers}")
    groups = [list(same) for _, same in groupby(sorted(jobs, key=_first_seen(jobs)), key=lambda job: job.folder)]
    return ENGINES[engine](groups, workers)


def _first_seen(jobs: Iterable[Job]) -> Callable[[Job], int]:
    """Sorts jobs of one folder together without disturbing the order otherwise."""
    order: dict[Path, int] = {}
    for job in jobs:
        order.setdefault(job.folder, len(order))
    return lambda job: order[job.folder]


def _local(groups: list[list[Job]], workers: int) -> Iterator[Outcome]:
    if workers != 1:
        raise SettingsError("the local engine trains one cell at a time; --workers is for --engine ray")
    for group in groups:
        for job in group:
            yield from carry_out([job])


ENGINES: dict[str, Callable[[list[list[Job]], int], Iterator[Outcome]]] = {"local": _local, "ray": spread}
