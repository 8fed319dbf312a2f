"""What qornn is compared with: LSTM, GRU, vanilla RNN, FastRNN and FastGRNN, behind the same tasks and recipes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from qornn.baselines.base import Baseline
from qornn.baselines.fast import FastGRNN, FastRNN
from qornn.baselines.gated import Torch

BASELINES: dict[str, Callable[..., Baseline]] = {
    "rnn": partial(Torch, cell="rnn"),
    "lstm": partial(Torch, cell="lstm"),
    "gru": partial(Torch, cell="gru"),
    "fastrnn": FastRNN,
    "fastgrnn": FastGRNN,
}

__all__ = ["BASELINES", "Baseline"]
