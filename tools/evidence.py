"""The trainings of evidence.toml, one after another: each by `qornn reproduce`, which goes on where it was stopped.

python tools/evidence.py --data-dir DATA [--only smnist,ptb] [--dry-run]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_suffix(".toml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", help="Default: $QORNN_DATA, else the cache.")
    parser.add_argument("--only", default="", help="Parts of cells' names, as in smnist,ptb.")
    parser.add_argument("--dry-run", action="store_true", help="Print the commands.")
    options = parser.parse_args()
    for words in commands(tomllib.loads(LIST.read_text(encoding="utf-8"))["run"], options.only.split(",")):
        words += ["--data-dir", options.data_dir] if options.data_dir else []
        print("qornn", *words, flush=True)
        if not options.dry_run and (
            code := subprocess.run([sys.executable, "-m", "qornn", *words], cwd=ROOT).returncode
        ):
            sys.exit(code)


def commands(runs: list[dict[str, Any]], only: list[str]) -> Iterator[list[str]]:
    """The words of every call whose cell has one of these parts in its name."""
    for run in runs:
        if not any(part in run["cell"] for part in only):
            continue
        words = ["reproduce", run.get("table", "performance"), "--cells", run["cell"]]
        words += ["--variant", run["variant"]] if "variant" in run else []
        words += ["--fraction", str(run["fraction"])] if "fraction" in run else []
        for key, value in run.get("set", {}).items():
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        for seed in run.get("seeds", [None]):
            yield words if seed is None else [*words, "--seed", str(seed)]


if __name__ == "__main__":
    main()
