"""`qornn fit` with nothing set, on every small set of the UCR and UEA archives: accuracy, bytes, seconds.

python tools/fit_sets.py --data-dir DATA --record [--sets Plane OSULeaf]

Each set is fitted on its training part and measured once on its test part; nothing is chosen by these figures. What
the record holds already is not measured again, unless --again is given. docs/defaults.md shows the record.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import qornn
from qornn._io.files import to_json, write_atomically

RECORD = Path(__file__).parent.parent / "results" / "fit.json"
SETS = (
    *("BasicMotions", "ItalyPowerDemand", "JapaneseVowels", "LargeKitchenAppliances", "MedicalImages"),
    *("MelbournePedestrian", "OSULeaf", "PhalangesOutlinesCorrect", "Plane", "PowerCons", "Strawberry"),
    *("SwedishLeaf", "SyntheticControl", "TwoLeadECG"),
)
KEPT = ("value", "baseline", "true_bytes", "seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="holds ucr/, see docs/real-data.md")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--again", action="store_true", help="measure what the record holds already, too")
    parser.add_argument("--record", action="store_true", help="write the record")
    options = parser.parse_args()
    record = recorded()
    for name in options.sets:
        if name in record["sets"] and not options.again:
            continue
        record["sets"][name] = fitted(options.data_dir / "ucr" / f"{name}.npz")
        print(f"{name}: {to_json(record['sets'][name])}", file=sys.stderr, flush=True)
        if options.record:
            write_atomically(RECORD, to_json(record, indent=1) + "\n")


def recorded() -> dict[str, Any]:
    """The record; an empty one where there is none."""
    if RECORD.is_file():
        return json.loads(RECORD.read_text(encoding="utf-8"))
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    return {"version": qornn.__version__, "threads": threads, "sets": {}}


def fitted(path: Path) -> dict[str, Any]:
    """What `qornn fit` says of one file, by the command itself."""
    with np.load(path, allow_pickle=False) as arrays:
        options = ["--missing", "hold"] if np.isnan(arrays["x_train"]).any() else []
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "qornn", "fit", str(path), "-o", folder, "--json", *options]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=True)
    found = json.loads(done.stdout)
    return {"options": " ".join(options), **{key: found[key] for key in KEPT}}


def table(record: dict[str, Any]) -> str:
    """One row per set, then the means."""
    lines = ["| | test accuracy, % | most frequent class, % | bytes | seconds |", "|---|---|---|---|---|"]
    for name in [name for name in SETS if name in record["sets"]]:
        found = record["sets"][name]
        title = f"{name}, `{found['options']}`" if found["options"] else name
        accuracy = f"{found['value']:.1f} | {found['baseline']:.1f}"
        lines.append(f"| {title} | {accuracy} | {found['true_bytes']:,} | {found['seconds']:.0f} |")
    if not record["sets"]:
        return "Not measured yet."
    mean = {key: np.mean([found[key] for found in record["sets"].values()]) for key in KEPT}
    means = f"{mean['value']:.1f} | {mean['baseline']:.1f} | {mean['true_bytes']:,.0f} | {mean['seconds']:.0f}"
    return "\n".join([*lines, f"| **mean** | {means} |"])


if __name__ == "__main__":
    main()
