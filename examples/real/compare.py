"""Real tasks: 4-bit QORNN in integers against LSTM in float, logistic regression and the nearest neighbour.

    python examples/real/compare.py --data-dir DATA [--sets har --seeds 0 1 2] [--record]

docs/real-data.md says where the data come from and what is compared.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from data import SETS, Data
from methods import METHODS, SEEDED

from qornn import QORNNClassifier, __version__
from qornn._io.files import to_json, write_atomically
from qornn.errors import QornnError
from qornn.estimators.single import DEFAULTS
from qornn.structure import MAPS as STRUCTURED

# Of the single layer, and of the LSTM but for what LSTM says. All else are the estimator's defaults.
SETTINGS: dict[str, dict[str, Any]] = {
    "har": {"map": "bjorck", "n_hidden": 64, "window": 8, "noise": 0.5, "lr": 1e-2, "max_epochs": 20},
    "ecg5000": {"map": "bjorck", "n_hidden": 64},
    "forda": {"map": "bjorck", "n_hidden": 64, "max_epochs": 40},
}
# Of 1e-3, 3e-3 and 1e-2 the best on two held-out fifths of the training sets (of HAR, by person).
LSTM: dict[str, dict[str, Any]] = {"har": {"lr": 3e-3}, "ecg5000": {"lr": 1e-2}, "forda": {"lr": 1e-2}}

NAMES = {"har": "HAR", "ecg5000": "ECG5000", "forda": "FordA"}
TITLES = {
    "stack": "stack of rotations, 4-bit weights, integers",
    "qornn": "single layer, 4-bit weights, integers",
    "lstm": "LSTM, float32",
    "logistic": "logistic regression on features",
    "nearest": "1-NN",
}
NO_CODE = "qornn makes no C of it"
ROOT = Path(__file__).parent.parent.parent
RECORD, STACKS = ROOT / "results" / "real.json", ROOT / "results" / "stacks.json"
PAGE = ROOT / "docs" / "real-data.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", required=True, type=Path, help="holds har/hapt.npz, ucr/ECG5000.npz, ...")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--record", action="store_true", help="also renew these sets in the record, and the docs")
    options = parser.parse_args()
    found = {}
    try:
        for name in options.sets:
            data = SETS[name](options.data_dir)
            found[name] = compare(name, data, SETTINGS[name], LSTM[name], options.seeds)
            if options.record:
                kept = recorded() | {name: found[name]}
                write_atomically(RECORD, to_json({key: kept[key] for key in SETS if key in kept}, indent=1) + "\n")
                write_atomically(PAGE, with_table(PAGE.read_text(encoding="utf-8"), recorded()))
    except QornnError as error:
        sys.exit(f"error: {error}")
    print(table(found))


def compare(
    name: str, data: Data, settings: dict[str, Any], lstm_settings: dict[str, Any], seeds: Iterable[int]
) -> dict[str, Any]:
    """Every method on one data set."""
    given = {"qornn": settings, "lstm": settings | lstm_settings}
    methods = {}
    for method, run in METHODS.items():
        runs = []
        for seed in seeds if method in SEEDED else [0]:
            runs.append(run(data, given.get(method, {}), seed))
            print(f"{name}: {method}: {to_json(runs[-1])}", file=sys.stderr, flush=True)
        methods[method] = summary(runs)
    return {
        "version": __version__,
        "machine": platform.machine(),
        "train": len(data.y_train),
        "test": len(data.y_test),
        "samples": data.x_train.shape[1],
        "channels": data.x_train.shape[2],
        "classes": len(data.labels),
        "settings": {method: resolved(own) for method, own in given.items()},
        "methods": methods,
    }


def resolved(settings: dict[str, Any]) -> dict[str, Any]:
    """With the defaults, which may be others in another version."""
    params = QORNNClassifier(**settings).get_params()
    if params["activation"] is None:
        params["activation"] = "identity" if params["map"] in STRUCTURED else "relu"
    params |= {key: value for key, value in DEFAULTS.items() if params[key] is None}
    return {key: value for key, value in params.items() if key not in ("random_state", "device", "verbose")}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Accuracies by their median over the seeds, sizes and instructions by the largest, and all runs."""
    found: dict[str, Any] = {}
    for key in ("accuracy", "float_accuracy"):
        if key in runs[0]:
            found[key] = median(run[key] for run in runs)
    sizes = ("bytes", "flash_bytes", "ram_bytes", "stack_bytes", "window")
    for key in (*sizes, "instructions_per_step", "instructions_per_sample", "instructions_per_readout"):
        values = [run[key] for run in runs if run.get(key) is not None]
        found[key] = max(values) if values else None
    if found["instructions_per_step"] is None:
        found["not_measured"] = runs[0].get("not_measured", NO_CODE)
    return {**found, "runs": runs}


def table(record: dict[str, Any]) -> str:
    """The figures as a Markdown table, and what they say."""
    columns = (
        *("data", "method", "accuracy, %", "every seed", "float states, %", "bytes"),
        *("flash", "RAM", "instructions per step", "per sample"),
    )
    lines = ["| " + " | ".join(columns) + " |", len(columns) * "|---" + "|"]
    for name, found in record.items():
        for method, m in found["methods"].items():
            seeds = ", ".join(f"{run['accuracy']:.2f}" for run in m["runs"]) if len(m["runs"]) > 1 else "-"
            floats = f"{m['float_accuracy']:.2f}" if "float_accuracy" in m else "-"
            sizes = ("bytes", "flash_bytes", "ram_bytes", "instructions_per_step", "instructions_per_sample")
            counts = ["-" if m[key] is None else f"{m[key]:,}" for key in sizes]
            words = [NAMES[name], TITLES[method], f"{m['accuracy']:.2f}", seeds, floats, *counts]
            lines.append("| " + " | ".join(words) + " |")
    return "\n".join([*lines, "", *(f"- {verdict(name, found)}" for name, found in record.items())])


def verdict(name: str, found: dict[str, Any]) -> str:
    """Each network of integers beside the LSTM, and which method is the most accurate."""
    methods = found["methods"]
    lstm, words = methods["lstm"], []
    for method in [key for key in ("stack", "qornn") if key in methods]:
        points, ratio = methods[method]["accuracy"] - lstm["accuracy"], lstm["bytes"] / methods[method]["bytes"]
        words.append(f"{TITLES[method].split(',')[0]} {points:+.2f} points to the LSTM in 1/{ratio:.0f} of its bytes")
    best = max(methods, key=lambda method: methods[method]["accuracy"])
    return f"{NAMES[name]}: {'; '.join(words)}; most accurate: {TITLES[best].split(',')[0]}"


def with_stacks(record: dict[str, Any]) -> dict[str, Any]:
    """The record, and first of its methods the stack, which has a record of its own."""
    stacks = json.loads(STACKS.read_text(encoding="utf-8")) if STACKS.is_file() else {}
    return {name: found | {"methods": _stack(stacks.get(name)) | found["methods"]} for name, found in record.items()}


def _stack(found: dict[str, Any] | None) -> dict[str, Any]:
    return {"stack": summary(found["runs"])} if found else {}


def with_table(page: str, record: dict[str, Any]) -> str:
    """The page with its table made again."""
    block = re.compile(r"(<!-- real data: .*? -->\n).*?(<!-- /real data -->)", re.DOTALL)
    return block.sub(lambda m: f"{m[1]}\n{table(with_stacks(record))}\n\n{m[2]}", page)


def recorded() -> dict[str, Any]:
    """The record, by data set; empty where nothing was recorded yet."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}


if __name__ == "__main__":
    main()
