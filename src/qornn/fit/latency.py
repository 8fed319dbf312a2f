"""Warm-up latency: how many samples a device must see before its answer is right, and stays so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from qornn.fit.problem import Problem
from qornn.integer.program import IntegerProgram
from qornn.tasks.arrays import Sequences

MOST = 200  # test sequences that are streamed
STEPS = 60_000  # of the network in all, about two seconds


@dataclass(frozen=True, slots=True, eq=False)
class Latency:
    """What was seen of streamed test sequences."""

    samples: np.ndarray  # (right,) of each sequence that ends right, those until its answer stays right
    sequences: int  # streamed

    def figures(self) -> dict[str, Any]:
        """For result.json; the median and the 90th percentile are of the sequences that end right."""
        some = len(self.samples) > 0
        median, p90 = (int(np.ceil(np.percentile(self.samples, p))) if some else None for p in (50, 90))
        return {"median": median, "p90": p90, "right": len(self.samples), "sequences": self.sequences}


def measured(program: IntegerProgram, problem: Problem, window: int) -> Latency:
    """By the integer program, step by step as on a device, on test sequences at equal distances."""
    test = problem.test
    number = min(len(test), MOST, max(STEPS * window // test.x.x.shape[1], 1))
    part = test.rows(np.linspace(0, len(test) - 1, number).astype(int))
    right = [
        answers == (problem.classes.index(label) if label in problem.classes else None)
        for answers, label in zip(_running(program, part.x.windows(window)), part.y.tolist(), strict=True)
    ]
    found = [steps * window for steps in map(until_it_stays, right) if steps is not None]
    return Latency(np.array(found, np.int64), number)


def _running(program: IntegerProgram, sequences: Sequences) -> Iterator[np.ndarray]:
    """For each sequence, the class answered after every step.  # (steps,)"""
    session, lengths = program.session(), sequences.lengths
    for row, x in enumerate(sequences.x):
        session.reset()
        x = x if lengths is None else x[: lengths[row]]
        raw = program.input.clip(program.input.from_floats(x[None])).astype(np.int16)[0]
        yield np.array([session.step(x_t).argmax() for x_t in raw])


def until_it_stays(right: np.ndarray) -> int | None:
    """Steps until all that follow are right; None where the last is wrong.

    >>> until_it_stays(np.array([True, False, True, True])), until_it_stays(np.array([True, False]))
    (3, None)
    """
    if not right[-1]:
        return None
    wrong = np.flatnonzero(~right)
    return 1 if not len(wrong) else int(wrong[-1]) + 2
