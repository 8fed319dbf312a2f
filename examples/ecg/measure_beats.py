"""Heartbeats of unseen patients: a stack in integers beside logistic regression and an LSTM, with and without RR.

    python examples/ecg/measure_beats.py --data-dir DATA --validate    # all settings, on held-out records of DS1
    python examples/ecg/measure_beats.py --data-dir DATA --record      # the chosen ones, on DS2

docs/heartbeats.md shows the record, results/ecg.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from beats import Data, fewer_normal, mitbih, reading
from scores import confusion, scores

sys.path.insert(0, str(Path(__file__).parent.parent / "real"))
from methods import features, lstm_and_answers, on_device, regression, regression_bytes

from qornn import QORNNClassifier, __version__
from qornn._io.files import to_json, write_atomically
from qornn.errors import QornnError

FOLDS = 4  # of whole records, each held out once
HEAVIEST = 20.0  # a class weight; Q has eight beats
RECORD = Path(__file__).parent.parent.parent / "results" / "ecg.json"
OWN = ("intervals", "one_in", "power")  # settings of this example; the others are the estimator's
PLAIN = {"skip": False, "mixup": 0.0, "warp": 0.0}  # smaller than the estimator's default
STACK: dict[str, Any] = {"map": "rotations", "layers": 2, "bits": 4, "activation_bits": 8, "validation_fraction": 0.0}
STACK |= {"width": 16, "window": 8, "lr": 3e-3, "noise": 0.0, "max_epochs": 2, "one_in": 4, "power": 0.5}
LSTM: dict[str, Any] = {"n_hidden": 32, "window": 8, "noise": 0.0, "max_epochs": 4, "validation_fraction": 0.0}
LSTM |= {"lr": 3e-3, "one_in": 4, "power": 0.5}
LONGER = {"max_epochs": 4}
# What was tried on held-out records, by what is measured. The first of each is the best there, and so the chosen one.
TRIED: dict[str, list[dict[str, Any]]] = {
    "stack": [
        STACK | {"intervals": "none"} | other
        for other in (
            {"width": 24},
            LONGER,
            LONGER | {"width": 24},
            LONGER | {"differences": True},
            LONGER | {"power": 0.75},
            {"max_epochs": 10},
        )
    ],
    "stack, RR": [
        STACK | {"intervals": "ratios"} | other
        for other in (
            {},
            {"lr": 6e-3},
            {"width": 24},
            {"max_epochs": 10},
            LONGER,
            LONGER | {"lr": 6e-3},
            LONGER | {"width": 24},
            LONGER | {"dropout": 0.2},
            LONGER | {"noise": 0.1},
            LONGER | {"power": 0.25},
            LONGER | {"power": 0.75},
            LONGER | {"window": 4},
            LONGER | {"differences": True},
            LONGER | {"intervals": "all"},
            LONGER | {"intervals": "before"},
        )
    ],
    "logistic": [{"intervals": "none", "one_in": 4, "power": power} for power in (0.5, 1.0)],
    "logistic, RR": [{"intervals": "ratios", "one_in": 4, "power": power} for power in (0.5, 1.0)],
    "lstm": [LSTM | {"intervals": "none"} | other for other in ({}, {"max_epochs": 2}, {"max_epochs": 10})],
    "lstm, RR": [
        LSTM | {"intervals": "ratios"} | other for other in ({}, {"max_epochs": 2}, {"max_epochs": 10}, {"lr": 1e-2})
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", required=True, type=Path, help="holds ecg/mitbih_aami_beats256.npz")
    parser.add_argument("--only", nargs="+", choices=list(TRIED), default=list(TRIED), help="Default: all.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="Default: 0 1 2.")
    parser.add_argument("--validate", action="store_true", help="try all settings on held-out records of DS1")
    parser.add_argument("--record", action="store_true", help="measure the chosen ones on DS2")
    options = parser.parse_args()
    try:
        data = mitbih(options.data_dir)
        for name in options.only:
            if options.validate:
                found = [tried(name, data, settings) for settings in TRIED[name]]
                keep("validation", name, sorted(found, key=lambda one: -one["balanced_accuracy"]))
            if options.record:
                keep("test", name, measured(name, data, TRIED[name][0], options.seeds))
    except QornnError as error:
        sys.exit(f"error: {error}")


def tried(name: str, data: Data, settings: dict[str, Any]) -> dict[str, Any]:
    """One setting on held-out records: the figures of all folds' answers together."""
    parts = [run(name, part, settings, seed, device=False) for seed, part in enumerate(folds(data))]
    found = scores(np.sum([part["confusion"] for part in parts], axis=0))
    found |= {"settings": settings, "seconds": max(part["seconds"] for part in parts)}
    print(f"{name}: {to_json(found)}", file=sys.stderr, flush=True)
    return found


def folds(data: Data) -> Iterator[Data]:
    """Training data without a quarter of the records, which take the test set's place.

    Records are dealt out in the order of how many S beats they have, since few have many.
    """
    assert data.groups is not None
    records = np.unique(data.groups)
    rare = [int(((data.groups == record) & (data.y_train == 1)).sum()) for record in records]
    order = records[np.argsort(rare, kind="stable")]
    for fold in range(FOLDS):
        held = np.isin(data.groups, order[fold::FOLDS])
        x, y = data.x_train, data.y_train
        part = replace(data, x_train=x[~held], y_train=y[~held], groups=data.groups[~held])
        yield replace(part, x_test=x[held], y_test=y[held])


def measured(name: str, data: Data, settings: dict[str, Any], seeds: list[int]) -> dict[str, Any]:
    """All seeds on the test set; logistic regression has none."""
    runs = []
    for seed in [0] if name.startswith("logistic") else seeds:
        runs.append(run(name, data, settings, seed, device=True))
        print(f"{name}: {to_json(runs[-1])}", file=sys.stderr, flush=True)
    return {
        "settings": settings,
        "version": __version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "threads": torch.get_num_threads(),
        "balanced_accuracy": median(found["balanced_accuracy"] for found in runs),
        "runs": runs,
    }


def run(name: str, data: Data, settings: dict[str, Any], seed: int, *, device: bool) -> dict[str, Any]:
    """One training, and its figures on the test beats; `device`: also what its C takes."""
    part = fewer_normal(reading(data, settings["intervals"]), settings["one_in"])
    own = {key: value for key, value in settings.items() if key not in OWN}
    own["class_weight"] = class_weights(part.y_train, settings["power"])
    found, answers = METHODS[name.split(",")[0]](part, own, seed, device)
    return {**found, **scores(confusion(part.y_test, answers))}


def class_weights(y: np.ndarray, power: float) -> dict[int, float]:
    """Rare classes weigh more: 1 is "balanced", 0 is none."""
    classes, counts = np.unique(y, return_counts=True)
    weights = np.minimum((counts.max() / counts) ** power, HEAVIEST)
    return dict(zip(classes.tolist(), weights.tolist(), strict=True))


def stack(data: Data, settings: dict[str, Any], seed: int, device: bool) -> tuple[dict[str, Any], np.ndarray]:
    """The recommended network, its answers in integers."""
    began = time.monotonic()
    clf = QORNNClassifier(**PLAIN | settings, random_state=seed).fit(data.x_train, data.y_train, groups=data.groups)
    found = {"seed": seed, "seconds": round(time.monotonic() - began, 1), "bytes": clf.to_program().true_bytes}
    return found | (on_device(clf) if device else {}), clf.predict(data.x_test, integer=True)


def lstm(data: Data, settings: dict[str, Any], seed: int, device: bool) -> tuple[dict[str, Any], np.ndarray]:
    """An LSTM in float."""
    return lstm_and_answers(data, settings, seed)


def logistic(data: Data, settings: dict[str, Any], seed: int, device: bool) -> tuple[dict[str, Any], np.ndarray]:
    """Logistic regression on features of the ECG, and on the intervals as they are."""
    began = time.monotonic()
    train, test = (np.hstack([features(x[:, :, :1]), x[:, 0, 1:]]) for x in (data.x_train, data.x_test))
    model = regression(train, data.y_train, settings["class_weight"])
    found = {"seconds": round(time.monotonic() - began, 1), "bytes": regression_bytes(model)}
    return found, model.predict(test)


Method = Callable[[Data, dict[str, Any], int, bool], tuple[dict[str, Any], np.ndarray]]
METHODS: dict[str, Method] = {"stack": stack, "logistic": logistic, "lstm": lstm}


def keep(part: str, name: str, found: Any) -> None:
    """Into the record, in the order of TRIED."""
    kept = recorded()
    kept[part] = kept.get(part, {}) | {name: found}
    ordered = {part: {key: kept[part][key] for key in TRIED if key in kept[part]} for part in sorted(kept)}
    write_atomically(RECORD, to_json(ordered, indent=1) + "\n")


def recorded() -> dict[str, Any]:
    """The record: "validation" and "test", by name."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}


if __name__ == "__main__":
    main()
