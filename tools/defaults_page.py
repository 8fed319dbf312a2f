"""docs/defaults.md, made from the records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fit_sets
import numpy as np

from qornn import QORNNClassifier

PAGE = Path(__file__).parent.parent / "docs" / "defaults.md"
ROWS = 2000  # of the training parts of HAR and keywords, so that one fold takes no longer than the other sets
# Each changes one default of a single training, the first none; they are compared on these sets.
ALONE = "one network, warped"
VARIANTS: dict[str, dict[str, Any]] = {
    ALONE: {},
    "no warp": {"warp": 0.0},
    "no mixup": {"mixup": 0.0},
    "no skip": {"skip": False},
    "width 16": {"width": 16},
    "with differences": {"differences": True},
}
COMPARED = ("PowerCons", "OSULeaf", "SyntheticControl", "MedicalImages", "SwedishLeaf")
TITLES = {"stack": "the default", "nearest": "nearest neighbour", "minirocket": "MiniRocket", "single": "single layer"}

Found = dict[str, Any]


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
    means = [_mean([found.get(method) for found in whole.values()]) for method in TITLES] if whole else []
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
    if not gaps:
        return "not measured yet"
    worst = min(gaps, key=gaps.__getitem__)
    return f"{worst}, by {-gaps[worst]:.1f} points" if gaps[worst] < 0 else "none"


def variants(record: dict[str, Any]) -> str:
    """What one changed default does to the mean over the smaller sets."""
    lines = [f"| changed | {' | '.join(COMPARED)} | mean | change |", "|---" * (len(COMPARED) + 3) + "|"]
    sets = [record["sets"].get(name, {}) for name in COMPARED]
    for name in VARIANTS:
        if not all(name in found and ALONE in found for found in sets):
            continue
        values, plain = ([found[key]["accuracy"] for found in sets] for key in (name, ALONE))
        cells = [f"{value:.1f}" for value in (*values, np.mean(values))]
        lines.append(f"| {name} | {' | '.join(cells)} | {np.mean(values) - np.mean(plain):+.1f} |")
    return "\n".join(lines)


def told(record: dict[str, Any]) -> str:
    """R² of a value to be told, by set."""
    lines = ["| | the default | nearest neighbour | ridge regression |", "|---|---|---|---|"]
    for name, found in record.get("ahead", {}).items():
        lines.append(f"| {name} | {found['stack']:.2f} | {found['nearest']:.2f} | {found['ridge']:.2f} |")
    return "\n".join(lines)


def page(record: dict[str, Any]) -> str:
    """docs/defaults.md, whole."""
    given = QORNNClassifier().get_params()
    listed = ", ".join(f"`{key}={given[key]!r}`" for key in ("map", "layers", "width", "skip", "bits", "window"))
    return f"""# Why the defaults are what they are

Someone who sets nothing should get a network that works. This page shows what the defaults give on many sets
that none of them was tuned for alone: percent right in integers (4-bit weights, 8-bit states), mean over
{record["folds"]} folds of the *training* part. The test parts are not looked at. HAR and keywords (the ten commands
of Speech Commands) are {ROWS:,} sequences each, held out by person and by speaker.

{table(record)}

*Single layer* is the paper's network, `map="bjorck"`, with its own defaults. *Seconds* are those of one fit, which
trains up to three networks, on one thread of a machine that did other work too. The set on which the default falls
furthest behind the nearest neighbour: {behind(record)}.

The defaults are {listed}. With fewer than 1,000 sequences, networks with and without
`warp` are compared on a held-out quarter; with more, two windows are. The better network is trained again on
everything.

{variants(record)}

Each row changes one default of a single training, on five of the smaller sets. Differences of a point are within the
noise of three folds.

## Values

R² of the regressor's integers, which tell the last sample of a sequence from all but its last twentieth,
cross-validated on the training parts. Where values follow from the samples by a weighted sum, ridge regression is the
better tool.

{told(record)}

## `qornn fit` with nothing set

Trained on the training part, measured once on the test part; *bytes* are `true_bytes`, *seconds* the whole fit on one
thread.

{fit_sets.table(fit_sets.recorded())}

`python tools/defaults.py --data-dir DATA --record --ahead` makes this page, `--methods "no skip"` measures a change,
and `python tools/fit_sets.py --data-dir DATA --record` the last table. [Where the data come from](real-data.md).
"""
