"""What is compared on a data set: QORNN, LSTM, logistic regression on features, and the nearest neighbour."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import Data
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from qornn import QORNNClassifier
from qornn.baselines import BASELINES
from qornn.errors import QornnError
from qornn.estimators.single import DEFAULTS, SingleLayer
from qornn.estimators.standard import Standard
from qornn.estimators.training import held_out, rate_of, train
from qornn.estimators.windows import window_of
from qornn.integer.program import IntegerProgram
from qornn.tasks.arrays import Arrays, Sequences
from qornn.verify import measure

TARGET = "cortex-m4"
MEASURED = ("flash_bytes", "ram_bytes", "stack_bytes", "instructions_per_step", "instructions_per_readout", "exact")
LAGS = (1, 2, 4, 8, 16)
BANDS = 8
CHUNK = 256  # sequences at once
FLOAT = 4  # bytes


def qornn(data: Data, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Accuracy in integers, as a device would have it, and beside it that of the same weights with float states."""
    return qornn_and_program(data, settings, seed)[0]


def qornn_and_program(data: Data, settings: dict[str, Any], seed: int) -> tuple[dict[str, Any], IntegerProgram]:
    """The same, and the program itself."""
    clf, seconds = fitted(data, settings, seed)
    program = clf.to_program()
    found = {
        "seed": seed,
        "accuracy": percent(clf.predict(data.x_test, integer=True), data.y_test),
        "float_accuracy": percent(clf.predict(data.x_test), data.y_test),
        "epochs": clf.n_iter_,
        "seconds": seconds,
        "bytes": program.true_bytes,
        "window": clf.window_,
        **on_device(clf),
    }
    return found, program


def fitted(data: Data, settings: dict[str, Any], seed: int) -> tuple[QORNNClassifier, float]:
    """A trained estimator, and the seconds it took."""
    began = time.monotonic()
    clf = QORNNClassifier(**settings, random_state=seed).fit(data.x_train, data.y_train)
    return clf, round(time.monotonic() - began, 1)


def on_device(clf: QORNNClassifier) -> dict[str, Any]:
    """The exported C on an emulated Cortex-M4: sizes, and instructions (not cycles) of a step of the network."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(clf.export_c(Path(folder) / "c", name="net"), TARGET)
    except QornnError as error:  # the extra [mcu] is not installed
        return {**dict.fromkeys(MEASURED), "instructions_per_sample": None, "not_measured": str(error)}
    return {
        **{key: found[key] for key in MEASURED},
        "instructions_per_sample": round(found["instructions_per_step"] / clf.window_),
    }


def lstm(data: Data, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """One layer of torch.nn.LSTM in float32 and a linear readout of its last state, trained as QORNN is."""
    found, answers = lstm_and_answers(data, settings, seed)
    return {**found, "accuracy": percent(answers, data.y_test)}


def lstm_and_answers(data: Data, settings: dict[str, Any], seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """The same without its accuracy, and the class of each test sequence."""
    estimator = QORNNClassifier(**settings)
    s = {
        key: DEFAULTS[key] if value is None and key in DEFAULTS else value
        for key, value in estimator.get_params().items()
    }
    n_hidden, epochs = s["n_hidden"], s["max_epochs"]
    classes, y = np.unique(data.y_train, return_inverse=True)
    sequences = Sequences(data.x_train, None)
    window = window_of(s["window"], sequences, n_hidden)
    standard = Standard.of(sequences).wide(window)
    held = held_out(y, s["validation_fraction"], seed, stratify=True)
    rows = {"train": np.flatnonzero(~held)} | ({"validation": np.flatnonzero(held)} if held.any() else {})
    x = _standardised(data.x_train, window, standard)
    weight = s["class_weight"]
    task = Arrays(
        sequences={split: Sequences(x[r], None) for split, r in rows.items()},
        targets={split: y[r].astype(np.int64) for split, r in rows.items()},
        classes=len(classes),
        class_weight=None if weight is None else compute_class_weight(weight, classes=classes, y=data.y_train),
        noise=float(s["noise"]),
    )
    generator = torch.Generator().manual_seed(seed)
    model = BASELINES["lstm"](task.n_i, n_hidden, task.n_o, generator=generator)
    began = time.monotonic()
    same = {name: s[name] for name in ("patience", "device", "verbose")}
    same |= {"lr": rate_of(s["lr"], n_hidden), "max_epochs": epochs}
    history = train(model, task, batch_size=SingleLayer(estimator).batch(len(rows["train"])), seed=seed, **same)
    seconds = round(time.monotonic() - began, 1)
    tested = torch.from_numpy(_standardised(data.x_test, window, standard))
    with torch.no_grad():
        answers = np.concatenate([model(part)[0].argmax(1).numpy() for part in tested.split(CHUNK)])
    found = {
        "seed": seed,
        "epochs": len(history),
        "seconds": seconds,
        "bytes": FLOAT * sum(p.numel() for p in model.parameters()),
    }
    return found, classes[answers]


def logistic(data: Data, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """scikit-learn's logistic regression on the features of each channel, standardised."""
    model = regression(features(data.x_train), data.y_train)
    return {
        "accuracy": percent(model.predict(features(data.x_test)), data.y_test),
        "bytes": regression_bytes(model),
    }


def regression(x: np.ndarray, y: np.ndarray, class_weight: Any = None) -> Pipeline:
    """Logistic regression on standardised features, trained."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000, class_weight=class_weight)).fit(x, y)


def regression_bytes(model: Pipeline) -> int:
    """Of its weights in float."""
    return FLOAT * (model[-1].coef_.size + model[-1].intercept_.size)


def features(x: np.ndarray) -> np.ndarray:
    """Of each channel: mean, deviation, least, largest, root mean square, autocorrelations, log power in bands.

    (N, T, C) -> (N, 18 C)
    """
    x = x.astype(np.float64)
    mean, std = x.mean(1), x.std(1)
    z = (x - mean[:, None]) / np.maximum(std, 1e-12)[:, None]
    found = [mean, std, x.min(1), x.max(1), np.sqrt((x**2).mean(1))]
    found += [(z[:, lag:] * z[:, :-lag]).mean(1) for lag in LAGS]
    power = np.abs(np.fft.rfft(z, axis=1)[:, 1:]) ** 2 / x.shape[1]
    found += [np.log(part.mean(1) + 1e-6) for part in np.array_split(power, BANDS, axis=1)]
    return np.hstack(found)


def nearest(data: Data, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """The class of the nearest training sequence, by the Euclidean distance of standardised samples."""
    standard = Standard.of(Sequences(data.x_train, None))
    train_x, test_x = (_standardised(x, 1, standard).reshape(len(x), -1) for x in (data.x_train, data.x_test))
    model = KNeighborsClassifier(n_neighbors=1, algorithm="brute").fit(train_x, data.y_train)
    return {
        "accuracy": percent(model.predict(test_x), data.y_test),
        "bytes": data.x_train.nbytes + len(data.y_train),  # samples as they come, and one byte per label
    }


METHODS = {"qornn": qornn, "lstm": lstm, "logistic": logistic, "nearest": nearest}
SEEDED = ("qornn", "lstm")


def percent(answers: np.ndarray, truth: np.ndarray) -> float:
    """Accuracy."""
    return round(100 * float(np.mean(answers == truth)), 4)


def _standardised(x: np.ndarray, window: int, standard: Standard) -> np.ndarray:
    return standard.apply(Sequences(x, None).windows(window)).x.astype(np.float32)
