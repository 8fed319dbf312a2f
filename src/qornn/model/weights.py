"""U and V before training."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from qornn.errors import unknown

INITS = {"xavier-normal": nn.init.xavier_normal_, "kaiming-normal": nn.init.kaiming_normal_}


def initial(name: str, rows: int, columns: int, *, generator: torch.Generator | None) -> Tensor:
    """A matrix drawn by the initialisation of that name.  # (rows, columns)"""
    if name not in INITS:
        raise unknown("initialisation", name, INITS)
    return INITS[name](torch.empty(rows, columns), generator=generator)  # type: ignore[operator]
