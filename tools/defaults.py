"""What the estimators' defaults give on data that nobody tunes for, cross-validated on training parts alone.

python tools/defaults.py --data-dir DATA --record [--sets Plane OSULeaf] [--methods stack nearest]

The test parts of the sets are not read. Every figure is written to the record as soon as it is there; what the record
holds already is not measured again, unless --again is given. docs/defaults.md is made from the record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "real"))
from data import har
from defaults_page import COMPARED, PAGE, ROWS, VARIANTS, page

import qornn
from qornn import QORNNClassifier, QORNNRegressor
from qornn._io.files import to_json, write_atomically

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "results" / "defaults.json"
FOLDS = 3
UCR = (
    *("TwoLeadECG", "BasicMotions", "ItalyPowerDemand", "Plane", "PowerCons", "OSULeaf", "JapaneseVowels"),
    *("SyntheticControl", "LargeKitchenAppliances", "MedicalImages", "SwedishLeaf", "ECG5000", "Strawberry"),
    *("MelbournePedestrian", "PhalangesOutlinesCorrect", "FordA"),
)
SETS = (*UCR, "HAR", "keywords")
AHEAD = ("PowerCons", "ItalyPowerDemand", "Plane", "SwedishLeaf", "Strawberry")  # whose last sample is to be told

Sequences = np.ndarray | list[np.ndarray]
Found = dict[str, Any]
Method = Callable[[Sequences, np.ndarray, np.ndarray | None, Sequences, int], tuple[np.ndarray, Found]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="holds har/ and ucr/, see docs/real-data.md")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, *VARIANTS], default=list(METHODS))
    parser.add_argument("--ahead", action="store_true", help="also values to be told, by the regressor")
    parser.add_argument("--again", action="store_true", help="measure what the record holds already, too")
    parser.add_argument("--record", action="store_true", help="write the record and the page")
    options = parser.parse_args()
    record = recorded()
    for name in options.sets:
        x, y, groups = load(options.data_dir, name)
        found = record["sets"].setdefault(name, facts(x, y))
        for method in options.methods:
            if (method in found and not options.again) or (method in VARIANTS and name not in COMPARED):
                continue
            found[method] = judged(method_of(method), x, y, groups)
            print(f"{name}: {method}: {to_json(found[method])}", file=sys.stderr, flush=True)
            if options.record:
                write_atomically(RECORD, to_json(record, indent=1) + "\n")
    for name in AHEAD if options.ahead else ():
        record.setdefault("ahead", {})[name] = ahead(np.asarray(load(options.data_dir, name)[0]))
        print(f"{name}: {to_json(record['ahead'][name])}", file=sys.stderr, flush=True)
    if options.record:
        write_atomically(RECORD, to_json(record, indent=1) + "\n")
        write_atomically(PAGE, page(record))


def recorded() -> dict[str, Any]:
    """The record; an empty one where there is none of this form."""
    found = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    return found if "sets" in found else {"version": qornn.__version__, "folds": FOLDS, "sets": {}}


def load(data_dir: Path, name: str) -> tuple[Sequences, np.ndarray, np.ndarray | None]:
    """Sequences, labels and groups of a training part."""
    if name in ("HAR", "keywords"):
        x, y, groups = _people(data_dir) if name == "HAR" else _speakers(data_dir)
        rows = np.random.default_rng(0).permutation(len(y))[:ROWS]
        return x[rows], y[rows], groups[rows]
    with np.load(data_dir / "ucr" / f"{name}.npz", allow_pickle=False) as arrays:
        x, y = arrays["x_train"], arrays["y_train"].astype(np.int64)
        lengths = arrays["lengths_train"].astype(int) if "lengths_train" in arrays else None
    x = x if x.ndim == 3 else x[:, :, None]
    if lengths is None or (lengths == x.shape[1]).all():
        return x, y, None
    return [part[:length] for part, length in zip(x, lengths, strict=True)], y, None


def _people(data_dir: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = har(data_dir)
    assert data.groups is not None
    return data.x_train, data.y_train, data.groups


def _speakers(data_dir: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ten commands."""
    with np.load(data_dir / "kws" / "gsc_v1_mfcc10x49.npz", allow_pickle=False) as arrays:
        x, y, speakers = (arrays[f"{part}_train"] for part in ("x", "y", "speaker"))
    rows = y < 10
    return x[rows], y[rows].astype(np.int64), speakers[rows]


def facts(x: Sequences, y: np.ndarray) -> Found:
    """What the data are."""
    return {"sequences": len(y), "samples": max(map(len, x)), "channels": x[0].shape[1], "classes": len(np.unique(y))}


def judged(method: Method, x: Sequences, y: np.ndarray, groups: np.ndarray | None) -> Found:
    """Percent right on every fold, and the largest of all else that is measured."""
    folds, found = [], []
    for seed, (train, rest) in enumerate(splits(y, groups)):
        began = time.monotonic()
        answers, more = method(
            _rows(x, train), y[train], None if groups is None else groups[train], _rows(x, rest), seed
        )
        folds.append(round(100 * float(np.mean(answers == y[rest])), 2))
        found.append({**more, "seconds": round(time.monotonic() - began, 1)})
    return {
        "accuracy": round(float(np.mean(folds)), 2),
        "folds": folds,
        **{key: max(each[key] for each in found) for key in found[0]},
    }


def splits(y: np.ndarray, groups: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to train on and to judge by; whole groups where there are some."""
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    count = min(FOLDS, int(np.unique(y, return_counts=True)[1].min()))
    return list(kind(max(count, 2), shuffle=True, random_state=0).split(np.zeros(len(y)), y, groups))


def estimator(**settings: Any) -> Method:
    """Ours with these settings, judged in integers."""

    def run(
        x: Sequences, y: np.ndarray, groups: np.ndarray | None, rest: Sequences, seed: int
    ) -> tuple[np.ndarray, Found]:
        held = "hold" if any(np.isnan(part).any() for part in x if part.dtype.kind == "f") else "refuse"
        own = settings | ({"missing": held} if settings.get("map", "rotations") == "rotations" else {})
        if "missing" not in own and held == "hold":
            x, rest = _filled(x), _filled(rest)
        clf = QORNNClassifier(**own, random_state=seed).fit(x, y, groups=groups)
        return clf.predict(rest, integer=True), {"bytes": clf.to_program().true_bytes, "window": clf.window_}

    return run


def nearest(
    x: Sequences, y: np.ndarray, groups: np.ndarray | None, rest: Sequences, seed: int
) -> tuple[np.ndarray, Found]:
    """The class of the nearest training sequence; shorter sequences end in zeros."""
    train, judged_by = _padded(x), _padded(rest, len(_padded(x)[0]))
    mean, std = train.mean((0, 1)), np.maximum(train.std((0, 1)), 1e-12)
    flat = [((part - mean) / std).reshape(len(part), -1) for part in (train, judged_by)]
    return KNeighborsClassifier(n_neighbors=1, algorithm="brute").fit(flat[0], y).predict(flat[1]), {}


def minirocket(
    x: Sequences, y: np.ndarray, groups: np.ndarray | None, rest: Sequences, seed: int
) -> tuple[np.ndarray, Found]:
    """aeon's; shorter sequences end in zeros."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    train = _padded(x)
    parts = [part.transpose(0, 2, 1).astype(np.float32) for part in (train, _padded(rest, train.shape[1]))]
    return MiniRocketClassifier(random_state=seed, n_jobs=1).fit(parts[0], y).predict(parts[1]), {}


METHODS: dict[str, Method] = {
    "stack": estimator(),
    "nearest": nearest,
    "minirocket": minirocket,
    "single": estimator(map="bjorck"),
}


def method_of(name: str) -> Method:
    return METHODS[name] if name in METHODS else estimator(**{"validation_fraction": 0.0, **VARIANTS[name]})


def ahead(x: np.ndarray, seed_count: int = FOLDS) -> Found:
    """R² of the last sample told from all but the last twentieth, mean over the folds, by three methods."""
    gap = max(1, x.shape[1] // 20)
    past, value = x[:, :-gap], x[:, -1, 0]
    flat = past.reshape(len(past), -1)
    methods = {
        "stack": lambda seed: _Integers(QORNNRegressor(random_state=seed)),
        "nearest": lambda seed: KNeighborsRegressor(1),
        "ridge": lambda seed: RidgeCV(np.logspace(-3, 3, 13)),
    }
    found: Found = {}
    for name, make in methods.items():
        scores = []
        for seed, (train, rest) in enumerate(KFold(seed_count, shuffle=True, random_state=0).split(flat)):
            given = past if name == "stack" else flat
            scores.append(float(r2_score(value[rest], make(seed).fit(given[train], value[train]).predict(given[rest]))))
        found[name] = round(float(np.mean(scores)), 3)
    return found


class _Integers:
    """A regressor that answers in integers."""

    def __init__(self, regressor: QORNNRegressor) -> None:
        self.regressor = regressor

    def fit(self, x: np.ndarray, y: np.ndarray) -> _Integers:
        self.regressor.fit(x, y)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.regressor.predict(x, integer=True)


def _rows(x: Sequences, rows: np.ndarray) -> Sequences:
    return [x[i] for i in rows] if isinstance(x, list) else x[rows]


def _padded(x: Sequences, length: int = 0) -> np.ndarray:
    """(N, T, C) of at least so many samples, or just so many where a number is given; gaps hold the last value."""
    length = length or max(map(len, x))
    found = np.zeros((len(x), length, x[0].shape[1]))
    for row, part in enumerate(_filled(x)):
        found[row, : len(part)] = part[:length]
    return found


def _filled(x: Sequences) -> Sequences:
    return [_held(part) for part in x] if isinstance(x, list) else np.stack([_held(part) for part in x])


def _held(part: np.ndarray) -> np.ndarray:
    """The last value in place of NaN, 0 before the first.  # (T, C)"""
    if part.dtype.kind != "f" or not np.isnan(part).any():
        return part
    last = np.maximum.accumulate(np.where(np.isnan(part), -1, np.arange(len(part))[:, None]), 0)
    return np.where(last < 0, 0.0, np.take_along_axis(part, np.maximum(last, 0), 0))


if __name__ == "__main__":
    main()
