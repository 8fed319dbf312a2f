"""A stack of rotations, rounded in training to the very integers that a device computes with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from qornn.bits import parse_bits
from qornn.errors import SettingsError
from qornn.estimators.design import Design
from qornn.estimators.network import Network, as_batch, chunks
from qornn.estimators.raw import rounded_samples
from qornn.estimators.runner import StackRunner
from qornn.estimators.settings import STACK
from qornn.estimators.standard import Standard
from qornn.estimators.threads import threads
from qornn.estimators.training import train_one_cycle
from qornn.estimators.windows import shortest_of, windows_of_stack
from qornn.integer.inputs import Samples
from qornn.integer.program import LAYERS_LIMIT, IntegerProgram
from qornn.lowering.calibrate import CHECKED, Calibration, States
from qornn.lowering.choices import check_trained_bits
from qornn.lowering.lower import lower
from qornn.model import Stack
from qornn.tasks.arrays import Arrays, Sequences
from qornn.tasks.base import check_count
from qornn.train.surroundings import float32

INPUT_BITS = 8
ACTIVATION_BITS = 8  # where nothing was asked for
BATCH = (16, 64)  # what batch_size="auto" lies between; a thirty-second of small data
LR = 1.2e-2
NOISE = 0.03
HELD = 0.25  # of the sequences, to choose by
MIXUP, MIXED = 0.3, 4000  # mixup=None where there are fewer sequences: more are hard enough to learn
WARP, WARPED = 0.03, 1000  # warp=None where there are fewer
EPOCHS = 30  # max_epochs=None is at least so many, and so many steps:
STEPS = (3000, 6000)  # of full batches, and of those half as large and less


class StackOfRotations(Design):
    """A mix, then `layers` times rotations and a mix, read out as the mean of all steps."""

    def check(self) -> None:
        asked = self.asked
        self.refuse("is only for a single layer; map='rotations' has ReLU between its layers", activation=None)
        if asked.n_hidden is not None:
            check_count("n_hidden", asked.n_hidden)
            for name in ("width", "pairs"):
                why = f"and n_hidden={asked.n_hidden}, which is width and pairs in one, were given"
                self.refuse(why, **{name: STACK[name]})
        for name in ("layers", "width", *(["pairs"] if asked.pairs is not None else [])):
            check_count(name, getattr(asked, name))
        if 2 * asked.layers + 1 > LAYERS_LIMIT:
            raise SettingsError(f"layers must be at most {(LAYERS_LIMIT - 1) // 2}, got {asked.layers}")
        if not isinstance(asked.skip, bool | np.bool_):
            raise SettingsError(f"skip must be True or False, got {asked.skip!r}")
        if not isinstance(asked.differences, bool | np.bool_) and asked.differences != "auto":
            raise SettingsError(f"differences must be True, False or 'auto', got {asked.differences!r}")

    @property
    def shape(self) -> dict[str, Any]:
        asked = self.asked
        width = asked.width if asked.n_hidden is None else asked.n_hidden
        pairs = width if asked.pairs is None else asked.pairs
        return {"layers": int(asked.layers), "width": int(width), "pairs": int(pairs), "skip": bool(asked.skip)}

    @property
    def differences(self) -> bool:
        """Whether the network also reads companded differences; what "auto" is, `choices` decides."""
        return self.asked.differences is not False and self.asked.differences != "auto"

    @property
    def held_fraction(self) -> float:
        return HELD if self.asked.validation_fraction is None else float(self.asked.validation_fraction)

    @property
    def noise(self) -> float:
        return NOISE if self.asked.noise is None else float(self.asked.noise)

    def mixup(self, n: int) -> float:
        return (MIXUP if n < MIXED else 0.0) if self.asked.mixup is None else float(self.asked.mixup)

    def warp(self, n: int, *, classes: bool) -> float:
        """By default values are not warped: they may be times or frequencies, which warping changes."""
        return (WARP if n < WARPED and classes else 0.0) if self.asked.warp is None else float(self.asked.warp)

    def window(self, sequences: Sequences) -> int:
        return windows_of_stack(self.asked.window, sequences)[0]

    def common_window(self, parts: Sequence[Sequences]) -> int | str:
        """ "auto" stays "auto", unless some sequence is shorter than a window that may be chosen."""
        windows, shortest = windows_of_stack(self.asked.window, parts[0]), min(map(shortest_of, parts))
        if isinstance(self.asked.window, str):
            return "auto" if max(windows) <= shortest else min(*windows, shortest)
        return windows[0]

    def choices(self, sequences: Sequences, *, classes: bool) -> list[Design]:
        """Two at most: with the one that is trained in the end, three networks."""
        windows = windows_of_stack(self.asked.window, sequences)
        first = {"window": windows[0], "differences": self.differences}
        if isinstance(self.asked.differences, str):
            return [self._settled(first | {"differences": differences}) for differences in (False, True)]
        if self.asked.window == "auto" and self.asked.warp is None and self.warp(len(sequences), classes=classes):
            return [self._settled(first | {"warp": warp}) for warp in (WARP, 0.0)]
        return [self._settled(first | {"window": window}) for window in windows]

    def _settled(self, params: dict[str, Any]) -> Design:
        return type(self)(clone(self.asked).set_params(**params))

    def trains_on(self, held: np.ndarray) -> np.ndarray:
        """None is held out: a whole cycle needs no early stopping."""
        return np.zeros_like(held)

    def describe(self) -> str:
        more = (", with differences" if self.differences else "") + (", not warped" if self.asked.warp == 0 else "")
        return f"{self.asked.window} samples per step{more}"

    def network(self, sequences: Sequences, standard: Standard, n_o: int, seed: int) -> StackNetwork:
        asked = self.asked
        bits = parse_bits(int(asked.bits) if isinstance(asked.bits, np.integer) else asked.bits)
        state_bits = ACTIVATION_BITS if asked.activation_bits is None else int(asked.activation_bits)
        memory = {"differences": self.differences, "hold": asked.missing == "hold"}
        with float32(), threads(0):
            model = Stack.rotations(
                sequences.x.shape[2] * (2 if self.differences else 1),
                n_o,
                **self.shape,
                dropout=float(asked.dropout),
                bits=bits,
                state_bits=None if bits is None else state_bits,
                input_bits=None if bits is None else INPUT_BITS,
                generator=torch.Generator().manual_seed(seed),
            )
        if model.entry is None and not any(memory.values()):
            return StackNetwork(model, standard)
        samples, step = rounded_samples(standard, sequences, INPUT_BITS, **memory)
        if model.entry is not None:
            model.entry.hold(gain=1 / step, step=step)
        return StackNetwork(model, standard, samples=samples)

    def train(self, network: Network, task: Arrays, seed: int) -> list[dict[str, float]]:
        asked, batch_size = self.asked, self.batch(task.size("train"))
        steps = max(STEPS[0], min(STEPS[1], STEPS[0] * BATCH[1] // batch_size))
        epochs = max(EPOCHS, -(-steps // task.steps_per_epoch(batch_size)))
        return train_one_cycle(
            network.model,
            task,
            lr=LR if asked.lr is None else float(asked.lr),
            epochs=epochs if asked.max_epochs is None else int(asked.max_epochs),
            batch_size=batch_size,
            seed=seed,
            device=asked.device,
            verbose=bool(asked.verbose),
        )

    def batch(self, n: int) -> int:
        if isinstance(self.asked.batch_size, str):
            return min(n, max(BATCH[0], min(BATCH[1], n // 32)))
        return min(n, int(self.asked.batch_size))


@dataclass(slots=True, eq=False)
class StackNetwork(Network):
    """It reads the whole numbers that a device makes of samples; at full precision, standardised samples.

    At full precision too, differences and samples that are held are those of a device.
    """

    model: Stack
    samples: Samples | None = None  # the input part; None where standardised samples are read

    @property
    def holds_missing(self) -> bool:
        return self.samples is not None and self.samples.hold

    def inputs(self, sequences: Sequences) -> Sequences:
        if self.samples is None:
            return self.standard.apply(sequences)
        x, start = np.empty((*sequences.x.shape[:2], self.samples.n_i), np.float32), 0
        for part in chunks(Sequences(sequences.x, None)):  # in int64: not all at once
            x[start : start + len(part)] = self.step_inputs(part.x, None)[0]
            start += len(part)
        return Sequences(x, sequences.lengths)

    def step_inputs(self, x: np.ndarray, kept: Any) -> tuple[np.ndarray, Any]:
        if self.samples is None:
            return self.standard.apply(Sequences(x, None)).x, None
        raw = self.samples.clip(self.samples.from_floats(x))
        kept = np.zeros((len(x), self.samples.n_state), np.int64) if kept is None else kept
        kept, integers = self.samples.sequence(kept, raw)
        return (integers * (self.samples.alpha / 2 ** (self.samples.bits - 1))).astype(np.float32), kept

    def runner(self, *, stream: bool = False) -> StackRunner:
        return StackRunner(self.model, self.scale, self.shift, double=stream or self.model.entry is None)

    def activation_bits(self, asked: int | None) -> int:
        trained = [layer.state_bits for layer in self.model.layers if layer.state_bits is not None]
        check_trained_bits([*trained], asked)
        return max(trained, default=ACTIVATION_BITS)

    def look(self, sequences: Sequences) -> Calibration | None:
        """A few sequences, for the report: training has decided everything."""
        if self.model.entry is None:
            return None
        rows = np.unique(np.linspace(0, len(sequences) - 1, min(len(sequences), CHECKED)).astype(int))
        few = as_batch(self.inputs(sequences.rows(rows)))
        with torch.no_grad():
            outputs = self.model.outputs(few.x, few.lengths)
        layers = tuple(States().with_batch(states, few.lengths) for states in outputs)
        return Calibration(sequences=len(rows), max_x=float(few.x.abs().max()), layers=layers, batches=[few])

    def lower(self, seen: Calibration, *, activation_bits: int, **facts: Any) -> IntegerProgram:
        assert self.samples is not None  # full precision is refused before
        assert self.samples.raw_scale is not None
        self.check_targets()
        given: dict[str, Any] = {"calibration": seen, "input": self.samples, "activation_bits": activation_bits}
        program = lower(self.model, **given, quiet=True)
        program = replace(program, readout=program.readout.in_units(self.scale, self.shift))
        raw_scale = self.samples.along(self.samples.raw_scale)
        normalised = {"mean": self.standard.mean.tolist(), "std": self.standard.std.tolist()}
        memory = {"differences": self.samples.differences, "missing": "hold" if self.samples.hold else "refuse"}
        return program.with_provenance(input={"raw_scale": raw_scale.tolist(), **normalised, **memory}, **facts)
