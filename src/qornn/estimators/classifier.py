"""Classes of sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight

from qornn.errors import SettingsError
from qornn.estimators.base import Estimator
from qornn.estimators.input import read
from qornn.estimators.settings import weights
from qornn.estimators.targets import classes_of, targets


class QORNNClassifier(ClassifierMixin, Estimator):
    """Classifies sequences with a recurrent network whose weights have `bits` bits.

    X is (N, T), (N, T, C) or a list of arrays (T_i,) or (T_i, C); labels may have any type. A 2-D X keeps its number of
    columns, as scikit-learn asks. Arrays of three dimensions and lists may have other lengths in predict.

    "Rotations only" and "single layer only" say which kind of network a parameter is for; see `map`.

    - `map` ("rotations"): the kind of network. "rotations" is a stack of linear recurrences with ReLU between them. It
      is rounded in training to the integers of a device, so `predict` gives the same with and without `integer=True`.
      Any other map is the paper's single layer and says how W stays orthogonal: bjorck, projunn, penalty, free; or a W
      that is not stored: hadamard, hadamard-block, cycle, delay.
    - `layers` (2): rotations only. Number of layers.
    - `width` (24): rotations only. Outputs between the layers.
    - `pairs` (None): rotations only. Pairs of units in each layer. None means as many as `width`.
    - `skip` (True): rotations only. Whether each layer has a skip connection.
    - `differences` (False): rotations only. Whether the network also reads how much each channel changed since the
      sample before, companded (a logarithm in integers), so that small changes count beside large levels. "auto"
      compares both on held-out data.
    - `missing` ("refuse"): NaN in X is an error. "hold" (rotations only) uses the last value of the channel instead, on
      the device too; before the first value, the channel's mean.
    - `dropout` (0.0): rotations only. Share of the outputs between layers that is set to zero in training.
    - `n_hidden` (None): units of a single layer. None means 64. With rotations it sets both `width` and `pairs`.
    - `window` ("auto"): samples that the network reads per step. Samples at the end that fill no window are not used.
      With rotations "auto" takes the fewest samples that leave at most 60 steps, but no more than 192 numbers per step;
      where lengths differ, the median counts. It compares that on held-out data with the fewest samples that leave at
      most 250 steps, unless held-out data decides about `differences` or `warp`, or there are too few sequences to hold
      some out. For a single layer it leaves 32 steps (n_hidden/2 below 64 units).
    - `bits` (4): bits of the weights, 2 to 8. None means full precision, which has no integers.
    - `activation` (None): single layer only. relu, modrelu, identity or tanh. None means relu, or identity where W is
      not stored.
    - `activation_bits` (None): bits of the states in the integer program, 4 to 16. With rotations states are rounded to
      these bits in training; None means 8. For a single layer it can be changed after fit; None means 12.
    - `max_epochs` (None): maximum number of epochs. None means 100 for a single layer. With rotations it is 30, or as
      many as make 3,000 steps of 64 sequences, or 6,000 of half as many and fewer.
    - `lr` (None): learning rate. With rotations of AdamW in one cycle; None means 0.012. For a single layer of Adam
      with warm-up, falling to a tenth; None means 0.005. With fewer than 64 units a single layer trains with
      lr·√(64/n_hidden).
    - `batch_size` ("auto"): sequences per batch. "auto" depends on the number of sequences.
    - `noise` (None): deviation of the noise added to standardised samples in training. None means 0.03 with rotations,
      0.1 for a single layer.
    - `mixup` (None): a of Beta(a, a). In training two sequences of one length, and their labels, are added with shares
      drawn from it; 0 is off. None means 0.3 with rotations and fewer than 4,000 sequences, else 0.
    - `warp` (None): in training, time runs faster and slower in every other sequence: six evenly spaced moments are
      moved by this deviation, a share of the length; 0 is off. None means 0.03 with rotations, classes to learn and
      fewer than 1,000 sequences, else 0. Where `window` is "auto", held-out data decides between 0.03 and 0.
    - `validation_fraction` (None): share of every class that is held out. With rotations (None: 0.25) it decides about
      settings that are left open, and the better network is then trained on all sequences. A single layer (None: 0.1)
      keeps the weights with the smallest loss on it. If fewer than twenty sequences would be held out, none is.
      `fit(X, y, groups=…)` holds out whole groups.
    - `patience` (15): single layer only. Training stops this many epochs after the smallest held-out loss. An epoch of
      fewer than 16 batches counts as that share of one.
    - `class_weight` (None): None, "balanced" or a dict from label to weight.
    - `random_state` (None): a seed. None takes one from the system. The global generators are never used.
    - `device` ("auto"): auto, cpu, cuda or mps.
    - `verbose` (False): print a progress bar and a line per epoch on standard error.

    After fit: `classes_`, `n_iter_`, `history_` (losses by epoch), `mean_` and `std_` (of each channel), `window_`,
    `held_out_` (N,) (which sequences were held out).
    """

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
        class_weight: Any = None,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(
            map=map,
            layers=layers,
            width=width,
            pairs=pairs,
            skip=skip,
            differences=differences,
            missing=missing,
            dropout=dropout,
            n_hidden=n_hidden,
            window=window,
            bits=bits,
            activation=activation,
            activation_bits=activation_bits,
            max_epochs=max_epochs,
            lr=lr,
            noise=noise,
            mixup=mixup,
            warp=warp,
            batch_size=batch_size,
            validation_fraction=validation_fraction,
            patience=patience,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def _learn(self, X: Any, y: Any, groups: Any) -> None:
        sequences = read(self, X, fitting=True)
        y = targets(self, y, len(sequences))
        classes, codes = classes_of(y)
        names = classes.tolist()
        if len(classes) < 2:
            raise SettingsError(f"y holds one class only, {names[0]!r}; a classifier needs at least two classes")
        weight = None
        if self.class_weight is not None:
            known = (classes, y) if isinstance(self.class_weight, dict) else (np.arange(len(classes)), codes)
            weight = compute_class_weight(self.class_weight, classes=known[0], y=known[1])
            if not ((weight > 0) & (weight < math.inf)).all():
                c = int(np.argmin((weight > 0) & (weight < math.inf)))
                raise SettingsError(f"class_weight of {names[c]!r} is {weight[c]:g}; weights must be positive")
        self.classes_ = classes
        self._fit(sequences, codes.astype(np.int64), groups, classes=len(classes), class_weight=weight)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right answers; labels of any kind are compared, which scikit-learn's own would not."""
        answers = self.predict(X).tolist()
        y = targets(self, y, len(answers)).tolist()
        right = [a == b for a, b in zip(answers, y, strict=True)]
        return float(np.average(right, weights=weights(sample_weight, len(answers))))

    def predict(self, X: Any, *, integer: bool = False) -> np.ndarray:
        """The class of each sequence; `integer=True` runs the integer program, as a device would.  # (N,)"""
        return self._answers(self._outputs(X, integer))

    def predict_proba(self, X: Any, *, integer: bool = False) -> np.ndarray:
        """The probability of each class, in the order of `classes_`.  # (N, classes)"""
        y = self._outputs(X, integer)
        p = np.exp(y - y.max(1, keepdims=True))
        return p / p.sum(1, keepdims=True)

    def _answers(self, outputs: np.ndarray) -> np.ndarray:
        return self.classes_[outputs.argmax(1)]

    def _facts(self) -> dict[str, Any]:
        return {"classes": [str(label) for label in self.classes_]}
