"""The paper's network: one orthogonal layer of `n_hidden` units, whose states are rounded when it is lowered."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from qornn.bits import parse_bits
from qornn.errors import SettingsError
from qornn.estimators.design import Design
from qornn.estimators.network import Network, as_batch, chunks
from qornn.estimators.raw import Seen, raw_samples
from qornn.estimators.runner import SingleRunner
from qornn.estimators.settings import STACK
from qornn.estimators.standard import Standard
from qornn.estimators.threads import threads
from qornn.estimators.training import rate_of, train
from qornn.estimators.windows import window_of
from qornn.integer.program import IntegerProgram
from qornn.lowering.calibrate import calibrate
from qornn.lowering.lower import lower
from qornn.maps import is_structured
from qornn.model import OrthogonalRNN
from qornn.tasks.arrays import Arrays, Sequences
from qornn.tasks.base import check_count
from qornn.train.surroundings import float32

SCALE = "row"  # of the quantizer; tools/defaults.py compares
BATCH = (16, 64)  # what batch_size="auto" lies between; a quarter of small data
DEFAULTS: Final[dict[str, Any]] = {
    "n_hidden": 64,
    "max_epochs": 100,
    "activation_bits": 12,
    "lr": 5e-3,
    "noise": 0.1,
    "validation_fraction": 0.1,
}  # where None was given


class SingleLayer(Design):
    """h_t = σ(W_q h_{t−1} + U_q x_t), read out at the last step."""

    def check(self) -> None:
        self.refuse("is only for map='rotations'; this map has one layer of n_hidden units", **STACK)
        check_count("n_hidden", self.n_hidden)

    @property
    def n_hidden(self) -> int:
        return DEFAULTS["n_hidden"] if self.asked.n_hidden is None else self.asked.n_hidden

    @property
    def held_fraction(self) -> float:
        given = self.asked.validation_fraction
        return DEFAULTS["validation_fraction"] if given is None else float(given)

    @property
    def noise(self) -> float:
        return float(DEFAULTS["noise"] if self.asked.noise is None else self.asked.noise)

    @property
    def shape(self) -> dict[str, Any]:
        return {"layers": 1, "width": int(self.n_hidden), "pairs": None, "skip": False}

    def window(self, sequences: Sequences) -> int:
        return window_of(self.asked.window, sequences, int(self.n_hidden))

    def network(self, sequences: Sequences, standard: Standard, n_o: int, seed: int) -> SingleNetwork:
        asked = self.asked
        with float32(), threads(0):
            model = OrthogonalRNN(
                sequences.x.shape[2],
                int(self.n_hidden),
                n_o,
                map=asked.map,
                bits=parse_bits(int(asked.bits) if isinstance(asked.bits, np.integer) else asked.bits),
                scale="tensor" if is_structured(asked.map) else SCALE,
                activation=asked.activation,
                generator=torch.Generator().manual_seed(seed),
            )
        return SingleNetwork(model, standard)

    def train(self, network: Network, task: Arrays, seed: int) -> list[dict[str, float]]:
        asked = self.asked
        return train(
            network.model,
            task,
            lr=rate_of(float(DEFAULTS["lr"] if asked.lr is None else asked.lr), int(self.n_hidden)),
            max_epochs=DEFAULTS["max_epochs"] if asked.max_epochs is None else int(asked.max_epochs),
            batch_size=self.batch(task.size("train")),
            patience=int(asked.patience),
            seed=seed,
            device=asked.device,
            verbose=bool(asked.verbose),
        )

    def batch(self, n: int) -> int:
        if isinstance(self.asked.batch_size, str):
            return min(n, max(BATCH[0], min(BATCH[1], n // 4)))
        return min(n, int(self.asked.batch_size))


@dataclass(slots=True, eq=False)
class SingleNetwork(Network):
    """It reads standardised samples; in floating point it runs in float64."""

    model: OrthogonalRNN

    def inputs(self, sequences: Sequences) -> Sequences:
        return self.standard.apply(sequences)

    def runner(self, *, stream: bool = False) -> SingleRunner:
        return SingleRunner(self.model, self.scale, self.shift)

    def activation_bits(self, asked: int | None) -> int:
        return DEFAULTS["activation_bits"] if asked is None else asked

    def look(self, sequences: Sequences) -> Seen | None:
        x = self.inputs(sequences)
        if self.model.recurrence.bits is None or not np.any(x.samples().astype(np.float32)):
            return None
        seen = calibrate(self.model, map(as_batch, chunks(x)), sequences=None, quiet=True)
        samples = np.abs(sequences.samples().astype(np.float64)).max(0)
        return Seen(samples, float(np.abs(x.samples()).max()), seen)

    def lower(self, seen: Seen | None, *, activation_bits: int, **facts: Any) -> IntegerProgram:
        if seen is None:
            raise SettingsError(
                "every state was zero in training; call to_program(calibration=X) with data that varies"
            )
        self.check_targets()
        inputs, raw_scale = raw_samples(self.standard, seen, self.model.recurrence.bits or 8)
        model = copy.deepcopy(self.model)
        with torch.no_grad():  # a device answers in the units of the targets
            model.V.mul_(self.scale)
            model.b_o.mul_(self.scale).add_(self.shift)
        # The class is the largest output, whatever its unit; values have the units of the targets.
        readout: Any = None if (self.scale, self.shift) == (1, 0) else "float"
        program = lower(
            model,
            calibration=seen.calibration,
            input=inputs,
            activation_bits=activation_bits,
            readout=readout,
            quiet=True,
        )
        normalised = {"mean": self.standard.mean.tolist(), "std": self.standard.std.tolist()}
        return program.with_provenance(input={"raw_scale": raw_scale.tolist(), **normalised}, **facts)
