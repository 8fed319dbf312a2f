"""Signed shifts: a ring, and a network of delay lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor

from qornn import structure
from qornn.errors import SettingsError
from qornn.maps.structured import Structured, signs, sylvester, whole


@final
class Cycle(Structured):
    """h_i ← h_{i−1}, one n-cycle with one sign turned, so that a constant input cannot accumulate for ever."""

    biased = False  # without one, states stay on the grid of U and nothing is ever rounded
    shifts = True
    permutes = True

    def __init__(self, seed: int = 0, learn: bool = False) -> None:
        super().__init__(seed)
        refuse_learning("cycle", learn)

    def raw(self, n_h: int) -> Tensor:
        structure.check_cycle(n_h)
        u = torch.ones(n_h)
        u[0] = -1.0  # what comes round from the last unit
        return u

    def forward(self, W: Tensor) -> Tensor:
        return W[:, None] * torch.eye(len(W), dtype=W.dtype, device=W.device).roll(1, 0)

    def product(self, W: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda h: W * h.roll(1, 1)

    def singular_values(self, W: Tensor) -> Tensor:
        return W.abs()

    def made_of(self, W: Tensor) -> tuple[str, dict[str, Any]]:
        return "cycle", {"units": len(W)}


@final
class Delay(Structured):
    """A feedback delay network: lines of different lengths, their outputs mixed by ±S_m/√m into their inputs.

    Inputs reach the heads of the lines alone.
    """

    biased = False
    shifts = True

    def __init__(self, seed: int = 0, lines: int = 16, learn: bool = False) -> None:
        super().__init__(seed)
        refuse_learning("delay", learn)
        structure.check_power(lines, 4, "the number of lines of map='delay'")
        self.lines = lines

    def raw(self, n_h: int) -> Tensor:
        structure.check_lines(n_h, self.lines)
        return signs(n_h, self.seed)  # of which those at the heads are used

    def driven(self, n_h: int) -> Tensor:
        return self._edges(n_h)[:-1]

    def forward(self, W: Tensor) -> Tensor:
        heads, ends, mixing = self._mixing(W)
        shifted = torch.eye(len(W), dtype=W.dtype, device=W.device).roll(1, 0)  # along a line, h_i ← h_{i−1}
        shifted[heads] = 0
        shifted[heads[:, None], ends] = mixing
        return shifted

    def product(self, W: Tensor) -> Callable[[Tensor], Tensor]:
        heads, ends, mixing = self._mixing(W)
        return lambda h: h.roll(1, 1).index_copy_(1, heads, h[:, ends] @ mixing.mT)

    def _mixing(self, W: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """First and last unit of every line, and what leads from the last ones to the first.  # (m,) (m,) (m, m)"""
        edges = self._edges(len(W)).to(W.device)
        heads = edges[:-1]
        return heads, edges[1:] - 1, W[heads, None] * sylvester(self.lines, W) / math.sqrt(self.lines)

    def singular_values(self, W: Tensor) -> Tensor:
        heads = self.driven(len(W)).to(W.device)  # the only units whose signs are used
        return torch.ones_like(W).index_copy(0, heads, W[heads].abs())

    def made_of(self, W: Tensor) -> tuple[str, dict[str, Any]]:
        return "delay", {"units": len(W), "signs": whole(W[self.driven(len(W))])}

    def _edges(self, n_h: int) -> Tensor:
        return torch.from_numpy(structure.line_starts(n_h, self.lines))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, lines={self.lines}"


def refuse_learning(name: str, learn: bool) -> None:
    """These maps have no signs worth learning: a sign along a shift can be moved into U and V."""
    if learn:
        raise SettingsError(f"map={name!r} has no signs to learn; map='hadamard' has")
