"""A finished program on calibration data: how often it saturates, and where rounded factors change a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qornn.errors import SettingsError
from qornn.integer.layers import Recurrent
from qornn.integer.program import IntegerProgram
from qornn.integer.readout import FLOAT32
from qornn.integer.rounding import round_half_away
from qornn.integer.simulate import start
from qornn.lowering.calibrate import Calibration
from qornn.lowering.inputs import lengths_of

Factors = tuple[np.ndarray, np.ndarray, np.ndarray]  # c_W, c_U and the bias of every row, in states


@dataclass(slots=True)
class Counts:
    """Of one layer."""

    states: int = 0  # which are its outputs, also of a layer that keeps none
    saturated: int = 0
    wrong: int = 0  # not those of exact factors

    def report(self, exact: Factors | None) -> dict[str, Any]:
        found = {"states": self.states, "saturation": self.saturated / self.states}
        return found if exact is None else found | {"differing": self.wrong}


def check_states(program: IntegerProgram, seen: Calibration, exact: list[Factors | None]) -> list[Counts]:
    """Run the program on calibration data and count the states of each layer; None where no factor was rounded."""
    counts = [Counts() for _ in program.layers]
    for part in seen.batches:
        read, lengths = program.input.read(part.x.cpu().numpy()), lengths_of(part)
        _, *states = start(program, len(read))
        for t in range(read.shape[1]):
            x, skip, running = read[:, t], None, np.full(len(read), True) if lengths is None else t < lengths
            for i, layer in enumerate(program.layers):
                before = states[i]
                states[i], y = layer.step(before, x, skip)
                counts[i].states += int(running.sum()) * layer.output.n_i
                counts[i].saturated += int((np.abs(y[running]) == layer.output.top).sum())
                if (factors := exact[i]) is not None:
                    want = _exact(layer, factors, before, x)  # type: ignore[arg-type]  # a layer with factors
                    counts[i].wrong += int((want[running] != states[i][running]).sum())
                x, skip = y, x
    return counts


def check_outputs(program: IntegerProgram) -> None:
    """Outputs of floats must stay below infinity, whatever the states."""
    largest = program.readout.largest(program.layers[-1].output.top)
    if largest > FLOAT32:
        raise SettingsError(
            f"sums of the readout can reach {largest:.3g}, past {FLOAT32:.3g}, the largest float32; divide the targets "
            "by a constant before training, and multiply the answers by it"
        )


def _exact(layer: Recurrent, exact: Factors, h: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The next state with the real factors in place of their multipliers."""
    c_W, c_U, bias = exact
    z = c_W * layer.W.product(h) + c_U * layer.U.sums(x) + (h if layer.W.identity else 0)
    return layer.activation.next(z, lambda a: np.minimum(round_half_away(a), layer.top), bias)
