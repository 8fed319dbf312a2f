"""Where layers take random numbers while training: from the run itself, never from torch's global generator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import torch

_Streams = tuple[tuple[int, ...], dict[torch.device, torch.Generator]]  # their key, and those in use
_streams: ContextVar[_Streams | None] = ContextVar("streams", default=None)


@contextmanager
def drawing(*key: int) -> Iterator[None]:
    """Inside the context, random numbers of layers depend only on the key, such as (seed, step, process)."""
    token = _streams.set((key, {}))
    try:
        yield
    finally:
        _streams.reset(token)


def generator(device: torch.device) -> torch.Generator | None:
    """The `generator=` of every draw in a layer; None, torch's own, outside of a training."""
    streams = _streams.get()
    if streams is None:
        return None
    key, made = streams
    if device not in made:
        seed = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])
        made[device] = torch.Generator(device).manual_seed(seed)
    return made[device]
