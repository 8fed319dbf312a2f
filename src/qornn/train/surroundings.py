"""torch with its default settings, whatever the caller has set: a seed gives the same network everywhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

_dtype = threading.RLock()  # the default is the whole process's


@contextmanager
def own_torch() -> Iterator[None]:
    """Inside the context the caller's modes (no_grad, inference_mode, autocast, a default device) are off."""
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for kind in ("cpu", "cuda", "mps"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        yield


@contextmanager
def float32() -> Iterator[None]:
    """Inside the context new parameters are float32. One thread at a time: torch has one default for all threads."""
    with _dtype:
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(before)
