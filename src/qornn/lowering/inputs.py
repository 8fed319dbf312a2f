"""The input part of a program, and what a device is fed."""

from __future__ import annotations

import math

import numpy as np

from qornn.errors import SettingsError
from qornn.integer.inputs import Codes, Input, make_samples
from qornn.integer.program import IntegerProgram
from qornn.lowering.calibrate import Calibration
from qornn.lowering.source import Network
from qornn.model.entry import Entry
from qornn.tasks import Batch, Task
from qornn.tasks.base import RawInput

ROUNDED = 1e-12  # 1/(1/49) is not 49


def input_of(model: Network, task: Task | None, seen: Calibration, bits: int | None, alpha: float | None) -> Input:
    """What raw samples are: codes, the task's own samples, or 16 bits over the range that calibration saw."""
    n_i = model.layers[0].n_i
    if seen.batches[0].x.ndim == 2:
        return Codes(size=n_i)
    raw = None if task is None else task.raw_input
    if model.entry is not None:
        return _as_trained(model.entry, raw, n_i, bits, alpha)
    if raw is not None:
        if raw.bits is not None and (bits not in (None, raw.bits) or alpha is not None):
            raise SettingsError(
                f"the network was trained on inputs of {raw.bits} bits (task.input_bits); lower it without input_bits "
                "and input_alpha, or train it on others"
            )
        return make_samples(*raw[:4], channels=n_i, bits=raw.bits if bits is None else bits, alpha=alpha)
    top = 2**15 - 1
    return make_samples(-top, top, max(seen.max_x, 1e-30) / top, channels=n_i, bits=bits, alpha=alpha)


def _as_trained(entry: Entry, raw: RawInput | None, n_i: int, bits: int | None, alpha: float | None) -> Input:
    """The integers that the network was trained on: the task's raw samples, or x_i themselves."""
    entry.demand()
    if bits not in (None, entry.bits) or alpha is not None:
        raise SettingsError(
            f"the network was trained on inputs of {entry.bits} bits; lower it without input_bits and input_alpha, or "
            "train it on others"
        )
    top, scale = 2 ** (entry.bits - 1), 1 / float(entry.gain)
    if raw is not None and math.isclose(raw.scale, scale, rel_tol=ROUNDED):
        return make_samples(raw.low, raw.high, raw.scale, raw.offset, channels=n_i, bits=entry.bits)
    return make_samples(-top, top - 1, scale, channels=n_i, bits=entry.bits)


def check_trained(inputs: Input, entry: Entry | None) -> None:
    """Refuse an input part of other integers than the network was trained on."""
    if entry is None:
        return
    if not inputs.multiplied:
        if entry.started:
            raise SettingsError("the network was trained on samples (B, T, n_i), and these are codes (B, T)")
        return
    entry.demand()
    steps = 2 ** int(entry.drop) / float(entry.gain), inputs.alpha / 2 ** (inputs.bits - 1)
    if inputs.bits != entry.bits or not math.isclose(*steps, rel_tol=ROUNDED):
        raise SettingsError(
            f"the network was trained on inputs of {entry.bits} bits in steps of {steps[0]:g}; the input part has "
            f"{inputs.bits} bits in steps of {steps[1]:g}"
        )


def raw_input(program: IntegerProgram, part: Batch) -> np.ndarray:
    """The raw integers that a device would read for this batch, clipped to the range of the sensor."""
    return program.input.clip(program.input.from_network(part.x.cpu().numpy()))


def lengths_of(part: Batch) -> np.ndarray | None:
    """The true lengths of a batch's sequences, if they differ.  # (B,)"""
    return None if part.lengths is None else part.lengths.cpu().numpy()
