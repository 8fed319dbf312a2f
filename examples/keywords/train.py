"""Keyword spotting in a few kilobytes: settings chosen on the validation split, the test sets looked at once.

    python examples/keywords/train.py --data-dir DATA --validate [--network small]    # try settings
    python examples/keywords/train.py --data-dir DATA --network small                 # train, on validation
    python examples/keywords/train.py --data-dir DATA --record [--keep OUT]           # and on the test sets

docs/keywords.md shows the record, results/keywords.json. Accuracies are those of the integers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from data import LABELS, SILENCE, UNKNOWN, Clips, Data, keywords12, mlperf, with_shifted_copies, words30

from qornn import QORNNClassifier, __version__
from qornn._io.files import to_json, write_atomically
from qornn.errors import QornnError
from qornn.verify import measure

TARGET = "cortex-m4"
MEASURED = ("flash_bytes", "ram_bytes", "stack_bytes", "instructions_per_step", "instructions_per_readout", "exact")
# The schedule goes to its end, so no training clips are held out; noise makes small networks worse.
PLAIN = {"skip": False, "mixup": 0.0, "warp": 0.0}  # smaller than the estimator's default
COMMON: dict[str, Any] = {"map": "rotations", "window": 1, "noise": 0.0, "validation_fraction": 0.0}
SMALL: dict[str, Any] = {"layers": 2, "width": 32, "lr": 8e-3, "activation_bits": 12}
LARGE: dict[str, Any] = {"layers": 3, "width": 40, "lr": 8e-3, "activation_bits": 12}
NETWORKS: dict[str, dict[str, Any]] = {
    "small": SMALL | {"max_epochs": 60},
    "large": LARGE | {"dropout": 0.05, "max_epochs": 60},
    "words30": LARGE | {"dropout": 0.05, "max_epochs": 15},
}
SHORT = {"max_epochs": 12}  # enough to compare settings
# What was tried on the validation split, besides the settings above.
TRIED: dict[str, list[dict[str, Any]]] = {
    "small": [
        SMALL | SHORT,
        SMALL | SHORT | {"window": 2},
        SMALL | SHORT | {"activation_bits": 8},
        SMALL | SHORT | {"activation_bits": 16},
        SMALL | SHORT | {"layers": 3, "width": 26},
        SMALL | SHORT | {"width": 24, "pairs": 43},
        SMALL | SHORT | {"bits": 3, "width": 37},
        SMALL | SHORT | {"lr": 5e-3},
        SMALL | SHORT | {"lr": 1.2e-2},
        SMALL | SHORT | {"dropout": 0.05},
        SMALL | SHORT | {"noise": 0.1},
    ],
    "large": [
        LARGE | SHORT,
        LARGE | SHORT | {"layers": 2, "width": 48},
        LARGE | SHORT | {"layers": 4, "width": 34},
        LARGE | SHORT | {"window": 2},
        LARGE | SHORT | {"dropout": 0.05},
        LARGE | {"max_epochs": 40},
        LARGE | {"max_epochs": 20, "shifted": 1},
        LARGE | {"max_epochs": 60, "dropout": 0.05},
    ],
    "words30": [],
}
RECORD = Path(__file__).parent.parent.parent / "results" / "keywords.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", required=True, type=Path, help="Holds kws/gsc_v1_mfcc10x49.npz.")
    parser.add_argument("--network", choices=list(NETWORKS), nargs="+", default=list(NETWORKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--validate", action="store_true", help="Try settings on the validation split, and record.")
    parser.add_argument("--record", action="store_true", help="Measure on the test sets, and record.")
    parser.add_argument("--keep", type=Path, help="Write the program of the first seed to this folder.")
    options = parser.parse_args()
    try:
        for name in options.network:
            data = words30(options.data_dir) if name == "words30" else keywords12(options.data_dir)
            if options.validate:
                validate(name, data)
                continue
            tests = {}
            if options.record:
                tests = {"accuracy": data.test} | ({"mlperf": mlperf(options.data_dir)} if name != "words30" else {})
            found = measured(
                data, NETWORKS[name], options.seeds, tests, options.keep and options.keep / f"{name}.qornn"
            )
            if options.record:
                renew(name, recorded().get(name, {}) | found)
    except QornnError as error:
        sys.exit(f"error: {error}")


def validate(name: str, data: Data) -> None:
    """Every setting that the record does not have yet, on the validation split; one seed."""
    for settings in TRIED[name]:
        found = recorded().get(name, {})
        known = found.setdefault("tried", [])
        if settings not in [entry["settings"] for entry in known]:
            _, run = trained(data, settings, 0)
            known.append({"settings": settings, **run})
            renew(name, found)
            print(f"{name}: {to_json(known[-1])}", file=sys.stderr, flush=True)


def measured(
    data: Data, settings: dict[str, Any], seeds: list[int], tests: dict[str, Clips], keep: Path | None
) -> dict[str, Any]:
    """All seeds: on the validation split, and on these test sets."""
    runs: list[dict[str, Any]] = []
    for seed in seeds:
        clf, run = trained(data, settings, seed)
        run |= {key: percent(clf, clips) for key, clips in tests.items()}
        if tests and len(data.labels) == len(LABELS):
            run["recall"] = {LABELS[kind]: recall(clf, data.test, kind) for kind in (UNKNOWN, SILENCE)}
        run |= on_device(clf)
        if keep is not None and not runs:
            keep.parent.mkdir(parents=True, exist_ok=True)
            clf.to_program().save(keep)
        runs.append(run)
        print(to_json(run), file=sys.stderr, flush=True)
    return {
        "settings": COMMON | settings,
        "version": __version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, {torch.get_num_threads()} threads",
        "clips": {part: len(getattr(data, part).y) for part in ("train", "val", "test")},
        "classes": len(data.labels),
        **{key: median(run[key] for run in runs) for key in ("validation", *tests)},
        "bytes": max(run["bytes"] for run in runs),
        "seconds": max(run["seconds"] for run in runs),
        "runs": runs,
    }


def trained(data: Data, settings: dict[str, Any], seed: int) -> tuple[QORNNClassifier, dict[str, Any]]:
    """One training, and how it does on the validation split; `shifted` says how many shifted copies there are."""
    began = time.monotonic()
    clips = with_shifted_copies(data.train, settings.get("shifted", 0), seed)
    own = {key: value for key, value in (COMMON | settings).items() if key != "shifted"}
    clf = QORNNClassifier(**PLAIN | own, random_state=seed).fit(clips.x, clips.y)
    seconds = round(time.monotonic() - began, 1)
    found = {"seed": seed, "validation": percent(clf, data.val), "bytes": clf.to_program().true_bytes}
    if len(data.labels) == len(LABELS):
        found["validation_silence"] = recall(clf, data.val, SILENCE)
    return clf, found | {"epochs": clf.n_iter_, "seconds": seconds}


def percent(clf: QORNNClassifier, clips: Clips) -> float:
    """Accuracy in integers, as a device would have it."""
    return round(100 * float(np.mean(clf.predict(clips.x, integer=True) == clips.y)), 3)


def recall(clf: QORNNClassifier, clips: Clips, kind: int) -> float:
    """The share of this class that is recognised, in percent."""
    rows = clips.y == kind
    return percent(clf, Clips(x=clips.x[rows], y=clips.y[rows], source=clips.source[rows]))


def on_device(clf: QORNNClassifier) -> dict[str, Any]:
    """The exported C on an emulated Cortex-M4: sizes, and instructions (not cycles) per step and per frame."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(clf.export_c(Path(folder) / "c", name="keywords"), TARGET)
    except QornnError as error:  # the extra [mcu] is not installed
        return {**dict.fromkeys(MEASURED), "instructions_per_sample": None, "not_measured": str(error)}
    per_sample = round(found["instructions_per_step"] / clf.window_)
    return {**{key: found[key] for key in MEASURED}, "instructions_per_sample": per_sample}


def recorded() -> dict[str, Any]:
    """The record, by network."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}


def renew(name: str, found: dict[str, Any]) -> None:
    """The record with this part in it."""
    kept = recorded() | {name: found}
    order = [*NETWORKS, *(key for key in kept if key not in NETWORKS)]
    write_atomically(RECORD, to_json({key: kept[key] for key in order if key in kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
