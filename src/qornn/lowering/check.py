"""A finished program on calibration data: does it saturate, and does it round where exact factors would not?"""

from __future__ import annotations

from typing import Any

import numpy as np

from qornn.errors import SettingsError
from qornn.integer.parts import FloatReadout, Identity, ReLU
from qornn.integer.program import IntegerProgram
from qornn.integer.rounding import round_half_away
from qornn.integer.simulate import input_sums, step
from qornn.lowering.activations import bias_of
from qornn.lowering.calibrate import Calibration
from qornn.lowering.inputs import lengths_of, raw_input
from qornn.lowering.scales import factors
from qornn.model import OrthogonalRecurrence

FLOAT32 = float(np.finfo(np.float32).max)


def check_states(program: IntegerProgram, seen: Calibration, layer: OrthogonalRecurrence) -> dict[str, Any]:
    """Run the program on calibration data: how many states saturate, and how many are not those of exact factors."""
    states = saturated = wrong = 0
    exact = (*factors(program.W, program.U, program.input, program.state), bias_of(layer) / program.state.step)
    for part in seen.batches:
        raw, lengths, _ = program.accept(raw_input(program, part), lengths_of(part), saturate=True)
        drive = input_sums(program, raw)
        h = np.zeros((len(raw), program.n_h), np.int64)
        for t in range(raw.shape[1]):
            before, h = h, step(program, h, drive[:, t])
            running = t < lengths
            states += int(running.sum()) * program.n_h
            saturated += int((np.abs(h[running]) == program.state.top).sum())
            if program.scheme == "per-row":
                wrong += int((_exact(program, exact, before, drive[:, t])[running] != h[running]).sum())
    checked = sum(len(part.x) for part in seen.batches)
    found = {"checked_sequences": checked, "states": states, "saturation": saturated / states}
    return found | ({"differing": wrong} if program.scheme == "per-row" else {})


def check_outputs(program: IntegerProgram) -> None:
    """Outputs of floats must stay below infinity, whatever the states."""
    readout = program.readout
    if not isinstance(readout, FloatReadout):
        return
    top = program.state.top * (program.n_h if readout.mix else 1)
    sums = np.abs(readout.V.astype(np.float64)).sum(1) * top
    largest = max(sums.max(), (sums * readout.scale + np.abs(readout.b_o)).max())
    if largest > FLOAT32:
        raise SettingsError(
            f"sums of the readout can reach {largest:.3g}, past {FLOAT32:.3g}, the largest float32; divide the targets "
            "by a constant before training, and multiply the answers by it"
        )


def _exact(
    program: IntegerProgram, exact: tuple[np.ndarray, np.ndarray, np.ndarray], h: np.ndarray, drive: np.ndarray
) -> np.ndarray:
    """The next state with the real factors in place of their multipliers."""
    c_W, c_U, bias = exact
    z = c_W * program.W.product(h) + c_U * drive + (h if program.W.identity else 0)
    if isinstance(program.activation, ReLU):
        return np.minimum(round_half_away(np.maximum(z, 0)), program.state.top)
    if isinstance(program.activation, Identity):
        z, bias = z + bias, np.zeros_like(bias)
    size = round_half_away(np.maximum(np.abs(z) + bias, 0))
    return np.sign(z).astype(np.int64) * np.minimum(size, program.state.top)
