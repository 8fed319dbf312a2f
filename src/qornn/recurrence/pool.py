"""Memory for states that is used again: a fresh tensor of 100 MB would be met page by page at every step."""

from __future__ import annotations

import math
import mmap
import sys

import numpy as np
import torch
from torch import Tensor

SMALLEST = 1 << 22  # bytes; below, torch's own allocator does as well
KEPT = 2  # blocks at least: a network in training needs one, two layers need two
KEPT_BYTES = 1 << 27  # up to here more of them: a stack needs several for each layer

_blocks: list[mmap.mmap] = []


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """An uninitialised tensor on the CPU; its memory comes back here when nothing refers to it any more."""
    size = dtype.itemsize * math.prod(shape)
    if size < SMALLEST or not hasattr(mmap, "MAP_ANONYMOUS"):
        return torch.empty(shape, dtype=dtype, device="cpu")  # whatever torch's defaults are
    return torch.from_numpy(np.frombuffer(_block(size), np.uint8)).view(dtype).view(shape)


def _block(size: int) -> mmap.mmap:
    for i in range(len(_blocks)):
        if len(_blocks[i]) == size and _is_free(i):
            return _blocks[i]
    for i in reversed(range(len(_blocks))):
        if not _has_room(size) and _is_free(i):
            del _blocks[i]
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        block.madvise(mmap.MADV_HUGEPAGE)
    if _has_room(size):
        _blocks.append(block)
    return block


def _has_room(size: int) -> bool:
    return len(_blocks) < KEPT or sum(len(block) for block in _blocks) + size <= KEPT_BYTES


def _is_free(i: int) -> bool:
    """Whether the list alone refers to the block: arrays and tensors on it count as references."""
    return sys.getrefcount(_blocks[i]) == 2  # the list's and that of the call itself
