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
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "real"))
from data import har

import qornn
from qornn import QORNNClassifier
from qornn._io.files import to_json, write_atomically

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "results" / "defaults.json"
PAGE = ROOT / "docs" / "defaults.md"
FOLDS = 3
HAR_ROWS = 2000  # of the training windows, so that one fold takes no longer than the other sets
UCR = (
    *("TwoLeadECG", "BasicMotions", "ItalyPowerDemand", "Plane", "PowerCons", "OSULeaf", "JapaneseVowels"),
    *("SyntheticControl", "LargeKitchenAppliances", "MedicalImages", "SwedishLeaf", "ECG5000", "Strawberry"),
    *("MelbournePedestrian", "PhalangesOutlinesCorrect", "FordA"),
)
SETS = (*UCR, "HAR")
# Each changes one default; they are compared on the smaller sets.
VARIANTS: dict[str, dict[str, Any]] = {
    "no skip": {"skip": False},
    "no mixup": {"mixup": 0.0},
    "lr 5e-3": {"lr": 5e-3},
    "no noise": {"noise": 0.0},
    "width 16": {"width": 16},
    "with differences": {"differences": True},
}
SMALL = ("TwoLeadECG", "BasicMotions", "ItalyPowerDemand", "Plane", "PowerCons", "OSULeaf", "SyntheticControl")
SMALL += ("MedicalImages", "SwedishLeaf")

Sequences = np.ndarray | list[np.ndarray]
Found = dict[str, Any]
Method = Callable[[Sequences, np.ndarray, np.ndarray | None, Sequences, int], tuple[np.ndarray, Found]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="holds har/ and ucr/, see docs/real-data.md")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, *VARIANTS], default=list(METHODS))
    parser.add_argument("--again", action="store_true", help="measure what the record holds already, too")
    parser.add_argument("--record", action="store_true", help="write the record and the page")
    options = parser.parse_args()
    record = recorded()
    for name in options.sets:
        x, y, groups = load(options.data_dir, name)
        found = record["sets"].setdefault(name, facts(x, y))
        for method in options.methods:
            if (method in found and not options.again) or (method in VARIANTS and name not in SMALL):
                continue
            found[method] = judged(method_of(method), x, y, groups)
            print(f"{name}: {method}: {to_json(found[method])}", file=sys.stderr, flush=True)
            if options.record:
                write_atomically(RECORD, to_json(record, indent=1) + "\n")
    if options.record:
        write_atomically(PAGE, page(recorded()))


def recorded() -> dict[str, Any]:
    """The record; an empty one where there is none of this form."""
    found = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    return found if "sets" in found else {"version": qornn.__version__, "folds": FOLDS, "sets": {}}


def load(data_dir: Path, name: str) -> tuple[Sequences, np.ndarray, np.ndarray | None]:
    """Sequences, labels and groups of a training part."""
    if name == "HAR":
        data = har(data_dir)
        rows = np.random.default_rng(0).permutation(len(data.y_train))[:HAR_ROWS]
        assert data.groups is not None
        return data.x_train[rows], data.y_train[rows], data.groups[rows]
    with np.load(data_dir / "ucr" / f"{name}.npz", allow_pickle=False) as arrays:
        x, y = arrays["x_train"], arrays["y_train"].astype(np.int64)
        lengths = arrays["lengths_train"].astype(int) if "lengths_train" in arrays else None
    x = x if x.ndim == 3 else x[:, :, None]
    if lengths is None or (lengths == x.shape[1]).all():
        return x, y, None
    return [part[:length] for part, length in zip(x, lengths, strict=True)], y, None


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
TITLES = {"stack": "the default", "nearest": "nearest neighbour", "minirocket": "MiniRocket", "single": "single layer"}


def method_of(name: str) -> Method:
    return METHODS[name] if name in METHODS else estimator(**VARIANTS[name])


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


def table(record: dict[str, Any]) -> str:
    """One row per set, then the means."""
    whole = {name: found for name, found in record["sets"].items() if "stack" in found}
    titles = ("", "sequences", "samples × channels", "classes", *TITLES.values(), "bytes", "window", "seconds")
    lines = ["| " + " | ".join(titles) + " |", "|---|" + "---|" * (len(titles) - 1)]
    for name, found in whole.items():
        size = (found["sequences"], f"{found['samples']} × {found['channels']}", found["classes"])
        values = [f"{found[method]['accuracy']:.1f}" if method in found else "not run" for method in TITLES]
        more = (f"{found['stack']['bytes']:,}", found["stack"]["window"], f"{found['stack']['seconds']:.0f}")
        lines.append("| " + " | ".join(map(str, (name, *size, *values, *more))) + " |")
    means = [_mean([found.get(method) for found in whole.values()]) for method in TITLES]
    lines.append("| " + " | ".join(("**mean**", "", "", "", *means, "", "", "")) + " |")
    return "\n".join(lines)


def _mean(found: list[Found | None]) -> str:
    """Of a method that was run on every set."""
    return "" if None in found else f"{np.mean([each['accuracy'] for each in found if each]):.1f}"


def behind(record: dict[str, Any]) -> str:
    """The set on which the default is worst beside the nearest neighbour."""
    gaps = {
        name: found["stack"]["accuracy"] - found["nearest"]["accuracy"]
        for name, found in record["sets"].items()
        if "stack" in found and "nearest" in found
    }
    worst = min(gaps, key=gaps.__getitem__)
    return f"{worst}, by {-gaps[worst]:.1f} points" if gaps[worst] < 0 else "none"


def variants(record: dict[str, Any]) -> str:
    """What one changed default does to the mean over the smaller sets."""
    lines = ["| changed | mean over the sets | change |", "|---|---|---|"]
    for name in VARIANTS:
        sets = [found for found in record["sets"].values() if name in found and "stack" in found]
        if len(sets) == len(SMALL):
            plain, changed = (np.mean([found[method]["accuracy"] for found in sets]) for method in ("stack", name))
            lines.append(f"| {name} | {changed:.1f} | {changed - plain:+.1f} |")
    return "\n".join(lines)


def page(record: dict[str, Any]) -> str:
    """docs/defaults.md, whole."""
    given = QORNNClassifier().get_params()
    listed = ", ".join(
        f"`{key}={given[key]!r}`" for key in ("map", "layers", "width", "skip", "bits", "window", "noise")
    )
    return f"""# Why the defaults are what they are

Someone who sets nothing should get a network that works. This page shows what the defaults give on many sets
that none of them was tuned for alone: percent right in integers (4-bit weights, 8-bit states), mean over
{record["folds"]} folds of the *training* part. The test parts are not looked at. HAR is {HAR_ROWS:,} windows, held out
by person.

{table(record)}

*Single layer* is the paper's network, `map="bjorck"`, with its own defaults. *Seconds* are those of one fit, which
trains up to three networks, on one thread of a machine that did other work too. The set on which the default falls
furthest behind the nearest neighbour: {behind(record)}.

The defaults are {listed}. Two windows are compared on a held-out
quarter, and the better network is trained again on everything.

{variants(record)}

Each of these changes one default, on the nine smaller sets. Differences of a point are within the noise of three folds.

`python tools/defaults.py --data-dir DATA --record` makes this page, and `--methods "no skip"` measures a change.
[Where the data come from](real-data.md).
"""


if __name__ == "__main__":
    main()
