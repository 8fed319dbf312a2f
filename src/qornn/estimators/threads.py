"""Threads only where they pay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL = 5e8  # multiplications at once: below, threads wait for each other longer than they work


@contextmanager
def threads(work: float) -> Iterator[None]:
    """As many as torch has, or one for little work: faster there, and a child forked afterwards does not hang."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if work < SMALL else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
