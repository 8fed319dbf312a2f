"""Why the estimators' defaults are what they are: each changed alone, judged on a held-out fifth of the training sets.

python tools/defaults.py --data-dir DATA --record

HAR is held out by person, the others by class. The test sets are not looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "real"))
from data import SETS

import qornn
from qornn import QORNNClassifier
from qornn._io.files import to_json
from qornn.estimators.single import DEFAULTS

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "results" / "defaults.json"
PAGE = ROOT / "docs" / "defaults.md"
SEEDS = (0, 1)
EPOCHS = 30
PARAMETERS = ("lr", "noise", "window", "map", "activation", "n_hidden")
VARIANTS: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "one scale for all rows": {"SCALE": "tensor"},
    "no clipping": {"CLIP": 0.0},
    "no warm-up": {"WARMUP": 0},
    "one sample a step": {"window": 1},
    "no noise": {"noise": 0.0},
    "noise 0.3": {"noise": 0.3},
    "lr 2e-3": {"lr": 2e-3},
    "lr 1e-2": {"lr": 1e-2},
    "modReLU": {"activation": "modrelu"},
    "signed Hadamard": {"map": "hadamard"},
    "signed Hadamard, 256 units": {"map": "hadamard", "n_hidden": 256},
    "signed cycle, 256 units": {"map": "cycle", "n_hidden": 256},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="holds har/ and ucr/, see docs/real-data.md")
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="the others as recorded")
    parser.add_argument("--record", action="store_true", help="also renew the record and the page")
    options = parser.parse_args()
    sets = {"digits": digits()} | {name: held_out(load(options.data_dir)) for name, load in SETS.items()}
    found: dict[str, dict[str, list[float]]] = {}
    if len(options.only) < len(VARIANTS):
        found = json.loads(RECORD.read_text(encoding="utf-8"))["accuracy"]
    for variant in options.only:
        found[variant] = {name: judge(name, variant, VARIANTS[variant], *parts) for name, parts in sets.items()}
    record = {"version": qornn.__version__, "epochs": EPOCHS, "seeds": SEEDS, "accuracy": found}
    print(table(record))
    if options.record:
        RECORD.write_text(to_json(record, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(json.loads(RECORD.read_text(encoding="utf-8"))), encoding="utf-8")


def digits() -> tuple[np.ndarray, ...]:
    X, y = load_digits(return_X_y=True)
    return _split(X.astype(np.int16), y, None)


def held_out(data: Any) -> tuple[np.ndarray, ...]:
    """x and y to train on, x and y to judge by."""
    return _split(data.x_train, data.y_train, data.groups)


def _split(x: np.ndarray, y: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, ...]:
    kind = StratifiedShuffleSplit if groups is None else GroupShuffleSplit
    train, judged = next(kind(1, test_size=0.2, random_state=0).split(x, y, groups))
    return x[train], y[train], x[judged], y[judged]


def judge(
    name: str, variant: str, changes: dict[str, Any], x: np.ndarray, y: np.ndarray, x_judged: np.ndarray, y_judged: Any
) -> list[float]:
    """Percent right in integers on the held-out fifth, a figure a seed."""
    given = {key: value for key, value in changes.items() if key in PARAMETERS}
    accuracy = []
    with _constants({key: value for key, value in changes.items() if key not in PARAMETERS}):
        for seed in SEEDS:
            clf = QORNNClassifier(max_epochs=EPOCHS, random_state=seed, **given).fit(x, y)
            accuracy.append(round(100 * float(np.mean(clf.predict(x_judged, integer=True) == y_judged)), 2))
    print(f"{name}: {variant}: {accuracy}", file=sys.stderr, flush=True)
    return accuracy


@contextmanager
def _constants(changes: dict[str, Any]) -> Iterator[None]:
    """What is no parameter of an estimator, because nobody should need to set it."""
    homes = {
        "SCALE": "qornn.estimators.single",
        "CLIP": "qornn.estimators.training",
        "WARMUP": "qornn.estimators.training",
    }
    with ExitStack() as stack:
        for key, value in changes.items():
            stack.enter_context(patch(f"{homes[key]}.{key}", value))
        yield


def table(record: dict[str, Any]) -> str:
    """A line a variant: the mean over seeds, and the spread."""
    names = list(next(iter(record["accuracy"].values())))
    lines = ["| | " + " | ".join(names) + " | mean |", "|---|" + "---|" * (len(names) + 1)]
    for variant, sets in record["accuracy"].items():
        cells = [f"{np.mean(sets[name]):.1f} ± {np.ptp(sets[name]) / 2:.1f}" for name in names]
        mean = np.mean([np.mean(sets[name]) for name in names])
        lines.append(f"| {variant} | " + " | ".join(cells) + f" | {mean:.1f} |")
    return "\n".join(lines)


def page(record: dict[str, Any]) -> str:
    """docs/defaults.md, whole."""
    defaults = QORNNClassifier().get_params() | DEFAULTS
    listed = ", ".join(f"`{key}={defaults[key]!r}`" for key in ("n_hidden", "bits", "lr", "noise", "window"))
    return f"""# Why the defaults are what they are

Someone who sets nothing should get a network that trains. These settings were compared, each changed alone, on four
data sets ([where they come from](real-data.md)): the 4-bit network in integers after {record["epochs"]} epochs, percent
right on a fifth of the *training* set that was held out (HAR: people the network has never seen), mean over seeds
{", ".join(map(str, record["seeds"]))} and half the distance between them.

{table(record)}

The defaults are {listed}, one scale a row, gradients clipped to norm 1 and a warm-up of
100 steps. Reading several samples a step matters most, and ReLU where modReLU does not learn at all. The other changes
move single sets by a point or two, in both directions, and their means hardly: there the defaults are the careful
choice, not the proven best, and `GridSearchCV` may find better for your data.

[A W that is not stored](structured.md) is linear in time: better on digits, about even on ECG5000, and behind the
stored, nonlinear one on movements and motor noise. So `map="bjorck"` stays the default. The cycle comes closest, at a
fraction of the instructions: try `map="cycle", n_hidden=256` where those count.

`python tools/defaults.py --data-dir DATA --record` makes this page.
"""


if __name__ == "__main__":
    main()
