"""Running a job, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qornn.errors import QornnError
from qornn.reproduce.grid import Job


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a job: its record, or the reason why there is none."""

    job: Job
    record: dict[str, Any] | None
    error: str | None = None


def carry_out(jobs: list[Job]) -> list[Outcome]:
    """Jobs that share one run folder, in turn."""
    return [_one(job) for job in jobs]


def _one(job: Job) -> Outcome:
    from qornn.reproduce import cells

    try:
        return Outcome(job, cells.make(job))
    except QornnError as error:  # data that is not there, a folder in use: the others can go on
        return Outcome(job, None, str(error))
