"""What a training changes in its process, and puts back: how signals and the smallest numbers are treated."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Vanishing gradients become denormals, which are many times slower than other numbers; here they become 0."""
    for number in (np.half, np.single, np.double):  # numpy measures denormals once, and warns where there are none
        np.finfo(number)
    already = not bool(torch.tensor(1e-38, dtype=torch.float32, device="cpu") / 100 > 0)
    changed = not already and torch.set_flush_denormal(True)
    try:
        yield
    finally:
        if changed:
            torch.set_flush_denormal(False)


@contextmanager
def stop_politely() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that the step in hand is finished and saved; a second Ctrl-C stops at once."""
    asked: list[int] = []

    def note(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: signals are somebody else's
        yield asked
        return
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
