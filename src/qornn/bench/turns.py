"""Short calls timed in turns, each for a while: for inference, where a call may take microseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SLOT = 0.02  # seconds
SETTLE = 0.02  # seconds: the threads of onnxruntime and OpenMP spin for a while after a call, at the next one's cost


def interleaved(calls: dict[tuple[str, int], Callable[[], Any]], turns: int) -> dict[tuple[str, int], list[float]]:
    """Seconds of each, taken in turns so that a busy moment of the machine falls on all of them alike.

    Every turn lasts at least SLOT: a call too short to be interrupted would look better than it is beside a long one.
    """
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    for turn in range(turns + 1):
        for key, call in calls.items():
            began, done, spent = time.perf_counter(), 0, 0.0
            while spent < SLOT:
                call()
                done, spent = done + 1, time.perf_counter() - began
            if turn:  # the first warms up
                seconds[key].append(spent / done)
            if key[1] > 1:
                time.sleep(SETTLE)
    return seconds
