"""How many samples the network reads in one step."""

from __future__ import annotations

import numpy as np

from qornn.errors import SettingsError
from qornn.tasks.arrays import Sequences
from qornn.tasks.base import check_count

STEPS = 32  # that window="auto" leaves at least, with 64 units or more


def window_of(window: int | str, sequences: Sequences, n_hidden: int) -> int:
    """Samples per step; "auto": as many as leave STEPS steps of the shortest sequence, and divide the common length.

    A number that passes ReLU takes two units, one per sign. With fewer than 64 units n_hidden/2 steps are left.
    """
    shortest = sequences.x.shape[1] if sequences.lengths is None else int(sequences.lengths.min())
    if window != "auto":
        check_count("window", window)
        check_long_enough(sequences, int(window))
        return int(window)
    most = max(shortest // max(min(STEPS, n_hidden // 2), 1), 1)
    whole = [w for w in range(1, most + 1) if shortest % w == 0]
    return most if sequences.lengths is not None else whole[-1]


def check_long_enough(sequences: Sequences, window: int) -> None:
    """Every sequence must fill one window."""
    lengths = np.array([sequences.x.shape[1]]) if sequences.lengths is None else sequences.lengths
    if lengths.min() < window:
        raise SettingsError(
            f"sequence {int(lengths.argmin())} has {lengths.min()} samples, less than one step of window={window}; "
            "drop it, or fit with a smaller window"
        )
