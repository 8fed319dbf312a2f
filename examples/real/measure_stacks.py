"""Stacks of rotations on three real tasks: settings chosen on held-out training data, the test sets looked at once.

    python examples/real/measure_stacks.py --data-dir DATA --validate [--sets forda]    # on held-out parts
    python examples/real/measure_stacks.py --data-dir DATA --record [--sets forda]      # on the test sets

docs/stacks.md shows the record, results/stacks.json. Accuracies are those of the integers.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import torch
from augment import DEGREES, with_turned_copies
from data import SETS, Data
from methods import qornn_and_program

from qornn import __version__
from qornn._io.files import to_json, write_atomically
from qornn.errors import QornnError
from qornn.integer.program import IntegerProgram

COMMON: dict[str, Any] = {"map": "rotations", "layers": 2, "width": 16, "bits": 4, "activation_bits": 8}
COMMON |= {"skip": False, "mixup": 0.0, "warp": 0.0, "noise": 0.1}
# What was tried on held-out parts, the chosen one first; all else are the estimator's defaults.
WHOLE = {"validation_fraction": 0.0}  # one cycle needs no early stopping
# Sitting and standing differ by small vibrations, which differences show.
HAR = {"window": 2, "differences": True, "lr": 6e-3, "noise": 0.0, "dropout": 0.1, **WHOLE}
TRIED: dict[str, list[dict[str, Any]]] = {
    "forda": [
        {"window": 4, "lr": 1e-2, "noise": 0.0, "max_epochs": 50, **WHOLE},
        {"window": 4, "lr": 1e-2, "noise": 0.0, **WHOLE},
        {"window": 4, "lr": 1e-2, **WHOLE},
    ],
    "ecg5000": [
        {"window": 4, "lr": 1e-2, "noise": 0.3, **WHOLE},
        {"window": 4, "lr": 1e-2, **WHOLE},
        {"window": 2, "lr": 1e-2, "noise": 0.3, **WHOLE},
        {"window": 2, **WHOLE},
    ],
    "har": [
        {**HAR, "width": 18, "pairs": 17, "skip": True, "max_epochs": 4, "turned": 7},
        {**HAR, "width": 18, "max_epochs": 4, "turned": 7},
        {**HAR, "width": 20, "pairs": 19, "max_epochs": 3, "turned": 15},
        {**HAR, "window": 4, "width": 18, "max_epochs": 4, "turned": 7},
        {**HAR, "width": 18, "max_epochs": 4, "turned": 7, "degrees": 35.0},
        {**HAR, "width": 18, "max_epochs": 4, "turned": 7, "mixup": 0.3},
        {**HAR, "width": 18, "max_epochs": 4, "turned": 7, "degrees": 12.0},
        {**HAR, "width": 20, "pairs": 19, "noise": 0.1, "max_epochs": 4, "turned": 7},
        {"window": 2, "width": 18, "lr": 6e-3, "dropout": 0.1, "max_epochs": 4, "turned": 7, **WHOLE},
        {"window": 2, "lr": 6e-3, "max_epochs": 4, "turned": 7, **WHOLE},
        {"window": 2, "lr": 6e-3, "noise": 0.0, "dropout": 0.1, "max_epochs": 12, **WHOLE},
        {"window": 2, **WHOLE},
    ],
}
# Each fold holds out a fifth of the training data; of HAR a fifth of the people, who differ so much that all take part.
FOLDS = {"forda": 3, "ecg5000": 3, "har": 5}
RECORD = Path(__file__).parent.parent.parent / "results" / "stacks.json"
KEPT = ("seed", "accuracy", "epochs", "seconds", "bytes", "window", "flash_bytes", "ram_bytes", "stack_bytes")
KEPT += ("instructions_per_step", "instructions_per_sample", "exact")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", required=True, type=Path, help="holds har/hapt.npz, ucr/ECG5000.npz, ...")
    parser.add_argument("--sets", nargs="+", choices=list(TRIED), default=list(TRIED))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--validate", action="store_true", help="try all settings on held-out training data")
    parser.add_argument("--record", action="store_true", help="measure the chosen ones on the test set, and record")
    parser.add_argument("--keep", type=Path, help="write the program of the first seed to this folder")
    options = parser.parse_args()
    try:
        for name in options.sets:
            data = SETS[name](options.data_dir)
            found = recorded().get(name, {})
            if options.validate:
                for seen in validated(name, data, found.get("validation", [])):
                    found |= {"validation": seen}
                    keep_record(name, found)
            if options.record or options.keep:
                whole = measured(name, data, COMMON | TRIED[name][0], options.seeds, options.keep)
                found |= whole if options.record else {}
            keep_record(name, found)
    except QornnError as error:
        sys.exit(f"error: {error}")


def validated(name: str, data: Data, known: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """All settings, in their order, with one more after each; those of the record are not run again."""
    by_settings = {to_json(found["settings"]): found for found in known}
    for settings in TRIED[name]:
        key = to_json(settings)
        by_settings[key] = by_settings.get(key) or tried(name, data, settings)
        yield [by_settings[key] for key in map(to_json, TRIED[name]) if key in by_settings]


def tried(name: str, data: Data, settings: dict[str, Any]) -> dict[str, Any]:
    """One setting on held-out parts of the training data."""
    values = [run(part, COMMON | settings, seed)[0]["accuracy"] for seed, part in enumerate(folds(data, FOLDS[name]))]
    found = {"settings": settings, "accuracy": round(mean(values), 3), "folds": values}
    print(f"{name}: {to_json(found)}", file=sys.stderr, flush=True)
    return found


def run(data: Data, settings: dict[str, Any], seed: int) -> tuple[dict[str, Any], IntegerProgram]:
    """One training, measured."""
    return qornn_and_program(*prepared(data, settings, seed), seed)


def prepared(data: Data, settings: dict[str, Any], seed: int) -> tuple[Data, dict[str, Any]]:
    """The data with `turned` copies more, the sensor axes turned by 0 ± `degrees`, and the estimator's own settings."""
    own = dict(settings)
    copies, degrees = own.pop("turned", 0), own.pop("degrees", DEGREES)
    return with_turned_copies(data, copies, seed, degrees=degrees), own


def folds(data: Data, count: int) -> Iterator[Data]:
    """The training data without a fifth of every class, or of the people, which takes the test set's place."""
    people = np.random.default_rng(0).permutation(np.unique(data.groups)) if data.groups is not None else None
    for fold in range(count):
        held = np.zeros(len(data.y_train), bool)
        rng = np.random.default_rng(fold)
        if people is not None:
            held = np.isin(data.groups, np.array_split(people, 5)[fold])
        else:
            for kind in np.unique(data.y_train):
                rows = rng.permutation(np.flatnonzero(data.y_train == kind))
                held[rows[: max(1, len(rows) // 5)]] = True
        x, y = data.x_train, data.y_train
        parts = {"x_train": x[~held], "y_train": y[~held], "x_test": x[held], "y_test": y[held]}
        yield Data(**parts, groups=None, labels=data.labels)


def measured(name: str, data: Data, settings: dict[str, Any], seeds: list[int], keep: Path | None) -> dict[str, Any]:
    """All seeds on the test set."""
    runs: list[dict[str, Any]] = []
    for seed in seeds:
        found, program = run(data, settings, seed)
        if keep is not None and not runs:
            keep_program(keep, name, data, found, program)
        runs.append({key: found[key] for key in KEPT if key in found})
        print(f"{name}: {to_json(runs[-1])}", file=sys.stderr, flush=True)
    accuracies = [found["accuracy"] for found in runs]
    return {
        "settings": settings,
        "version": __version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, {torch.get_num_threads()} threads",
        "accuracy": median(accuracies),
        "worst": min(accuracies),
        "seconds": max(found["seconds"] for found in runs),
        "runs": runs,
    }


def keep_program(folder: Path, name: str, data: Data, run: dict[str, Any], program: IntegerProgram) -> None:
    """NAME-stack.qornn, and a record of it as the zoo has them."""
    folder.mkdir(parents=True, exist_ok=True)
    program = program.with_provenance(task=name, metric={"name": "accuracy", "value": run["accuracy"]})
    file = folder / f"{name}-stack.qornn"
    program.save(file)
    _, counts = np.unique(data.y_test, return_counts=True)
    record = {
        "name": file.stem,
        "task": name,
        "metric": "accuracy",
        "value": run["accuracy"],
        "baseline": round(100 * float(counts.max() / counts.sum()), 4),
        "bits": program.bits,
        "activation_bits": program.activation_bits,
        "file_bytes": file.stat().st_size,
        "true_bytes": program.true_bytes,
        "version": __version__,
        "machine": platform.machine(),
        "settings": program.provenance["estimator"],
    }
    write_atomically(file.with_suffix(".json"), to_json(record, indent=1) + "\n")


def keep_record(name: str, found: dict[str, Any]) -> None:
    """This data set in the record, the others as they were."""
    kept = recorded() | {name: found}
    write_atomically(RECORD, to_json({key: kept[key] for key in TRIED if key in kept}, indent=1) + "\n")


def recorded() -> dict[str, Any]:
    """The record, by data set."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}


if __name__ == "__main__":
    main()
