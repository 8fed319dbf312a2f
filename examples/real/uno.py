"""Human activity on an Arduino Uno's chip, at the protocol of the 566-byte FastGRNN that was published for it.

    python examples/real/uno.py --data-dir DATA --validate      # settings, on held-out training people
    python examples/real/uno.py --data-dir DATA --record        # the chosen ones, on the test people

The protocol (Kızılateş, arXiv 2606.17249, and its repository emre1998/fastgrnn-har): the accelerometer alone, windows
of 128 samples that overlap by half within one labelled activity, the six basic activities, people 1 to 21 to train on
and 22 to 30 to test: 3,399 test windows; macro-F1. docs/real-data.md shows the record, results/uno.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from data import Data, har_windows
from measure_stacks import folds, prepared
from methods import fitted, percent
from sklearn.metrics import f1_score

from qornn import QORNNClassifier, __version__, export
from qornn._io.files import to_json, write_atomically
from qornn.errors import QornnError
from qornn.fit.latency import Latency, until_it_stays
from qornn.verify import TARGETS, measure

RECORD = Path(__file__).parent.parent.parent / "results" / "uno.json"
CHIP, PEOPLE = "atmega328p", 21  # those to train on
STREAMED = 100  # test windows, for the latency
COMMON: dict[str, Any] = {"map": "rotations", "layers": 2, "bits": 4, "activation_bits": 8, "window": 2}
COMMON |= {"lr": 1e-2, "noise": 0.0, "mixup": 0.0, "warp": 0.0, "skip": False, "validation_fraction": 0.0}
# By size; what was tried on held-out people, the chosen one first.
TRIED: dict[str, list[dict[str, Any]]] = {
    "small": [
        {"width": 9, "pairs": 8, "differences": True, "max_epochs": 60},
        {"width": 9, "pairs": 8, "differences": True, "max_epochs": 8, "turned": 7},
    ],
    "larger": [
        {"width": 16, "pairs": 16, "differences": True, "max_epochs": 60},
        {"width": 16, "pairs": 16, "differences": True, "dropout": 0.1, "max_epochs": 8, "turned": 7},
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", required=True, type=Path, help="holds har/hapt.npz")
    parser.add_argument("--networks", nargs="+", choices=list(TRIED), default=list(TRIED))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--folds", type=int, default=3, help="of five parts of the people, those that are tried")
    parser.add_argument("--validate", action="store_true", help="try all settings on held-out training people")
    parser.add_argument("--record", action="store_true", help="measure the chosen ones on the test people, and record")
    options = parser.parse_args()
    try:
        data = by_protocol(options.data_dir)
        for name in options.networks:
            found = recorded().get(name, {})
            if options.validate:
                found["validation"] = [tried(data, settings, options.folds) for settings in TRIED[name]]
            if options.record:
                found |= measured(data, COMMON | TRIED[name][0], options.seeds)
            write_atomically(RECORD, to_json(recorded() | {name: found}, indent=1) + "\n")
    except QornnError as error:
        sys.exit(f"error: {error}")


def by_protocol(data_dir: Path) -> Data:
    """The windows of every labelled part, cut anew."""
    x, y, user, labels = har_windows(data_dir)
    x, test = x[:, :, :3], user > PEOPLE
    parts = {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}
    return Data(**parts, groups=user[~test], labels=labels)


def tried(data: Data, settings: dict[str, Any], count: int) -> dict[str, Any]:
    """One setting on held-out people."""
    values = [run(part, COMMON | settings, seed)[0]["f1"] for seed, part in enumerate(folds(data, count))]
    found = {"settings": settings, "f1": round(mean(values), 4), "folds": values}
    print(to_json(found), file=sys.stderr, flush=True)
    return found


def run(data: Data, settings: dict[str, Any], seed: int) -> tuple[dict[str, Any], QORNNClassifier]:
    """One training, measured in integers."""
    data, own = prepared(data, settings, seed)
    clf, seconds = fitted(data, own, seed)
    answers = clf.predict(data.x_test, integer=True)
    found = {
        "seed": seed,
        "f1": round(float(f1_score(data.y_test, answers, average="macro")), 4),
        "accuracy": percent(answers, data.y_test),
        "bytes": clf.to_program().true_bytes,
        "seconds": seconds,
    }
    return found, clf


def measured(data: Data, settings: dict[str, Any], seeds: list[int]) -> dict[str, Any]:
    """All seeds on the test people, each on the emulated chip too."""
    runs: list[dict[str, Any]] = []
    for seed in seeds:
        found, clf = run(data, settings, seed)
        runs.append({**found, "warm_up": warm_up(clf, data), **on_chip(clf)})
        print(to_json(runs[-1]), file=sys.stderr, flush=True)
    scores = [found["f1"] for found in runs]
    summary = {"mean": round(mean(scores), 4), "median": median(scores), "worst": min(scores), "best": max(scores)}
    return {"settings": settings, "version": __version__, **summary, "runs": runs}


def on_chip(clf: QORNNClassifier) -> dict[str, Any]:
    """Milliseconds per sample, flash and RAM on the emulated chip."""
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(export.c(clf.to_program(), Path(folder, "c"), name="har"), CHIP)
    seconds = figures["cycles_per_step"] / TARGETS[CHIP].hertz / clf.window_
    kept = {key: figures[key] for key in ("flash_bytes", "ram_bytes", "stack_bytes", "exact")}
    return {"ms_per_sample": round(1000 * seconds, 3), **kept}


def warm_up(clf: QORNNClassifier, data: Data) -> dict[str, Any]:
    """Samples until the answer stays right, of windows that end right."""
    program = clf.to_program()
    session, found = program.session(), []
    rows = np.linspace(0, len(data.y_test) - 1, STREAMED).astype(int)
    for raw, label in zip(clf.to_raw(data.x_test[rows]), data.y_test[rows], strict=True):
        session.reset()
        answers = np.array([clf.classes_[session.step(x_t).argmax()] for x_t in raw])
        found.append(until_it_stays(answers == label))
    right = np.array([steps * clf.window_ for steps in found if steps is not None], np.int64)
    return Latency(right, len(found)).figures()


def recorded() -> dict[str, Any]:
    """The record, by network."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}


if __name__ == "__main__":
    main()
