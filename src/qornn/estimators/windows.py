"""How many samples the network reads in one step."""

from __future__ import annotations

import numpy as np

from qornn.errors import SettingsError
from qornn.tasks.arrays import Sequences
from qornn.tasks.base import check_count

STEPS = 32  # that window="auto" leaves a single layer at least, with 64 units or more
COARSE, FINE = (30, 60), (100, 250)  # fewest and most that it leaves a stack of rotations
INPUTS = 192  # of a step of a stack, at most: each has a weight for every unit


def window_of(window: int | str, sequences: Sequences, n_hidden: int) -> int:
    """Samples per step of a single layer; "auto": as many as leave STEPS steps of the shortest sequence, and divide
    the common length.

    A number that passes ReLU takes two units, one per sign. With fewer than 64 units n_hidden/2 steps are left.
    """
    if window != "auto":
        return _asked(window, sequences)
    shortest = int(_lengths(sequences).min())
    most = max(shortest // max(min(STEPS, n_hidden // 2), 1), 1)
    whole = [w for w in range(1, most + 1) if shortest % w == 0]
    return most if sequences.lengths is not None else whole[-1]


def windows_of_stack(window: int | str, sequences: Sequences) -> list[int]:
    """Samples per step of a stack of rotations: what was asked for, or with "auto" a coarse window and a fine one.

    Each is the fewest samples that leave at most so many steps. A common length is divided without a rest if some
    number does that leaves at least the fewest. Where lengths differ, the median counts, and the shortest sequence
    fills a step. A step never reads more than INPUTS numbers, if a sample has fewer.
    """
    if window != "auto":
        return [_asked(window, sequences)]
    lengths = _lengths(sequences)
    length = int(np.median(lengths))
    found, largest = [], max(INPUTS // sequences.x.shape[2], 1)
    for fewest, most in (COARSE, FINE):
        least = -(-length // most)
        whole = [w for w in range(least, length // fewest + 1) if length % w == 0]
        found.append(min(whole[0] if whole and sequences.lengths is None else least, int(lengths.min()), largest))
    return list(dict.fromkeys(found))


def check_long_enough(sequences: Sequences, window: int) -> None:
    """Every sequence must fill one window."""
    lengths = _lengths(sequences)
    if lengths.min() < window:
        raise SettingsError(
            f"sequence {int(lengths.argmin())} has {lengths.min()} samples, less than one step of window={window}; "
            "drop it, or fit with a smaller window"
        )


def shortest_of(sequences: Sequences) -> int:
    """Samples of the shortest sequence."""
    return int(_lengths(sequences).min())


def _asked(window: int | str, sequences: Sequences) -> int:
    check_count("window", window)
    check_long_enough(sequences, int(window))
    return int(window)


def _lengths(sequences: Sequences) -> np.ndarray:
    return np.array([sequences.x.shape[1]]) if sequences.lengths is None else sequences.lengths
