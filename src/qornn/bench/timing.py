"""How calls are timed against each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

import torch


def interleaved(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, taken in turns so that a busy moment of the machine falls on all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    flushed = torch.set_flush_denormal(True)  # for all alike: vanishing gradients would time denormals instead
    try:
        for turn in range(repeats + 1):
            for name, call in calls.items():
                began = time.perf_counter()
                call()
                if turn:  # the first warms up
                    seconds[name].append(time.perf_counter() - began)
    finally:
        if flushed:
            torch.set_flush_denormal(False)
    return {name: median(values) for name, values in seconds.items()}
