"""torch's own RNN, LSTM and GRU, their matrices through our quantizer."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from qornn.baselines.base import Baseline, through
from qornn.errors import SettingsError

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


@final
class Torch(Baseline):
    """One layer of torch.nn.RNN, LSTM or GRU."""

    def __init__(self, n_i: int, n_h: int, n_o: int, *, cell: str, **options: Any) -> None:
        generator = options.get("generator")
        super().__init__(n_i, n_h, n_o, **options)
        if self.activation_bits is not None:
            raise SettingsError(f"activation_bits are for fastrnn and fastgrnn, not for {cell}")
        self.cell = CELLS[cell](n_i, n_h, batch_first=True, device="meta").to_empty(device="cpu")
        for parameter in self.cell.parameters():  # torch's own distribution, drawn from our generator
            nn.init.uniform_(parameter, -(n_h**-0.5), n_h**-0.5, generator=generator)

    def states(self, x: Tensor) -> Tensor:
        weights = dict(self.cell.named_parameters())
        if self.q_W is not None:
            weights["weight_ih_l0"] = through(self.q_U, weights["weight_ih_l0"])
            weights["weight_hh_l0"] = through(self.q_W, weights["weight_hh_l0"])
            return torch.func.functional_call(self.cell, weights, (x,))[0]
        return self.cell(x)[0]
