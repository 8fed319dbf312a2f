"""What the two estimators share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from qornn import export
from qornn.errors import SettingsError
from qornn.estimators.designs import design_of
from qornn.estimators.groups import group_numbers
from qornn.estimators.input import read
from qornn.estimators.lesson import Lesson
from qornn.estimators.network import CHUNK
from qornn.estimators.settings import check_settings, seed_of
from qornn.estimators.standard import Standard
from qornn.estimators.stream import Stream
from qornn.estimators.threads import threads
from qornn.estimators.training import held_out
from qornn.estimators.windows import check_long_enough
from qornn.integer.program import IntegerProgram
from qornn.tasks.arrays import Sequences
from qornn.train.surroundings import own_torch


class Estimator(BaseEstimator):
    """Sequences in, answers out; `_learn` is what classes and values do differently."""

    def __init__(
        self,
        *,
        map: str = "rotations",
        layers: int = 2,
        width: int = 24,
        pairs: int | None = None,
        skip: bool = True,
        differences: bool | str = False,
        missing: str = "refuse",
        dropout: float = 0.0,
        n_hidden: int | None = None,
        window: int | str = "auto",
        bits: int | None = 4,
        activation: str | None = None,
        activation_bits: int | None = None,
        max_epochs: int | None = None,
        lr: float | None = None,
        noise: float | None = None,
        mixup: float | None = None,
        warp: float | None = None,
        batch_size: int | str = "auto",
        validation_fraction: float | None = None,
        patience: int = 15,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.map = map
        self.layers = layers
        self.width = width
        self.pairs = pairs
        self.skip = skip
        self.differences = differences
        self.missing = missing
        self.dropout = dropout
        self.n_hidden = n_hidden
        self.window = window
        self.bits = bits
        self.activation = activation
        self.activation_bits = activation_bits
        self.max_epochs = max_epochs
        self.lr = lr
        self.noise = noise
        self.mixup = mixup
        self.warp = warp
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_network")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "hold"
        return tags

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Train.

        - `X`: N sequences, as (N, T), (N, T, C) or a list of (T_i,) or (T_i, C).
        - `y`: a label or value for each.
        - `groups` (None): what each sequence comes from, such as a person, a speaker or a recording: N labels of any
          hashable kind. Whole groups are then held out, as near to `validation_fraction` as they allow. If all
          sequences are of one group, nothing is held out, and a warning says so.
        """
        with _all_or_nothing(self), own_torch():
            check_settings(self)
            design_of(self).check()
            self._learn(X, y, groups)
        return self

    def _learn(self, X: Any, y: Any, groups: Any) -> None:
        raise NotImplementedError

    def to_raw(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """X as the int16 samples that `to_program()` and the exported C read, one window per step.

        (N, T // window, window·C), or a list of such for sequences of different lengths.
        """
        sequences = self._read(X)
        raw = self._network.to_raw(self._program(), sequences.x)
        if sequences.lengths is None:
            return raw
        return [part[:length] for part, length in zip(raw, sequences.lengths, strict=True)]

    def to_program(self, calibration: Any = None) -> IntegerProgram:
        """The network in integers, normalisation inside; lowered on X-like `calibration`, or on the training data."""
        check_is_fitted(self)
        if calibration is None:
            return self._program()
        sequences = self._read(calibration)
        with own_torch(), threads(self._network.work(min(len(sequences), CHUNK) * sequences.x.shape[1])):
            seen = self._network.look(sequences)
        return self._lower(seen)

    def export_c(self, path: str | Path, *, name: str = "model", calibration: Any = None, **options: Any) -> Path:
        """A folder of C99, a library for microcontrollers; `qornn.verify.verify(path)` compiles and replays it."""
        return export.c(self.to_program(calibration), path, name=name, **options)

    def stream(self, *, integer: bool = False) -> Stream:
        """One sample in, one answer out, constant memory."""
        check_is_fitted(self)
        return Stream(self, integer=integer)

    def _read(self, X: Any) -> Sequences:
        check_is_fitted(self)
        sequences = read(self, X, fitting=False)
        check_long_enough(sequences, self.window_)
        return sequences.windows(self.window_)

    def _outputs(self, X: Any, integer: bool) -> np.ndarray:
        sequences = self._read(X)
        if integer:
            return self._network.integer_outputs(self._program(), sequences)
        with own_torch(), threads(self._network.work(min(len(sequences), CHUNK) * sequences.x.shape[1])):
            return self._network.outputs(sequences)

    def _program(self) -> IntegerProgram:
        network = self._network
        bits = network.activation_bits(self.activation_bits)
        if network.program is None or network.program.activation_bits != bits:
            network.program = self._lower(network.seen)
        return network.program

    def _lower(self, seen: Any) -> IntegerProgram:
        network = self._network
        if network.model.layers[0].bits is None:
            raise SettingsError("bits=None trains full-precision weights, which have no integers; fit with bits=2..8")
        settings = {key: value for key, value in self.get_params().items() if isinstance(value, int | float | str)}
        made = {"kind": type(self).__name__, **settings}
        with own_torch(), threads(0):
            bits = network.activation_bits(self.activation_bits)
            return network.lower(seen, activation_bits=bits, estimator=made, window=self.window_, **self._facts())

    def _facts(self) -> dict[str, Any]:
        return {}

    def _fit(
        self, sequences: Sequences, y: np.ndarray, groups: Any, *, classes: int | None, **task_options: Any
    ) -> None:
        """Hold out a part, standardise, choose the settings that are left open, and train."""
        seed, design = seed_of(self.random_state), design_of(self)
        numbers = group_numbers(groups, len(sequences))
        held = held_out(y, design.held_fraction, seed, stratify=classes is not None, groups=numbers)
        standard = Standard.of(sequences)
        options = {"noise": design.noise, "mixup": design.mixup(len(sequences)), **task_options}
        lesson = Lesson(sequences=sequences, standard=standard, y=y, classes=classes, seed=seed, options=options)
        choices = design.choices(sequences, classes=classes is not None)
        chosen = lesson.best_of(choices, held, verbose=bool(self.verbose))
        watched = chosen.trains_on(held)
        self._network, self.history_ = lesson.taught(chosen, watched)
        self.window_, self.mean_, self.std_ = chosen.window(sequences), standard.mean, standard.std
        self.n_iter_, self.held_out_ = len(self.history_), held if len(choices) > 1 else watched


@contextmanager
def _all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """A failed fit leaves the estimator unchanged, never with the classes of one fit and the network of another."""
    before = {**vars(estimator)}
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
