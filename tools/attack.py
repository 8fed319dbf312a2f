"""Attack the package for a given time: hostile files, random programs over all executors, kill -9 at any moment.

    python tools/attack.py --minutes 30
    python tools/attack.py --only programs --count 100000
    python tools/attack.py --only kills --seed 7 --first 41 --count 1     # one attack again, by its number
    make attack MINUTES=30                                                # on the sanitized build

Each attack is a function of a random generator that ends with a word for what happened, or raises. The first failure
stops the run and is printed with the command that repeats it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process that forks must have one thread
sys.path.append(str(Path(__file__).parents[1] / "tests" / "attacks"))

import numpy as np
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

ATTACKS = {
    "programs": "program files, damaged or hostile",
    "runs": "run folders and records, damaged or hostile",
    "exports": "exported folders, edited or replaced",
    "executors": "random programs over every executor",
    "kills": "commands killed at any moment",
    "names": "folders, files and classes of any name",
}


def main() -> int:
    """Run the attacks in turn; 1 at the first failure."""
    asked = parse()
    print(f"seed {asked.seed}: {', '.join(asked.only)}")
    failed = 0
    with Progress(
        TextColumn("{task.description:9}"), BarColumn(), TextColumn("{task.fields[done]}"), TimeRemainingColumn()
    ) as bar:
        for name in asked.only:
            with tempfile.TemporaryDirectory(prefix="qornn-attack-") as folder:
                failed += run(name, Path(folder), asked, bar)
    return min(failed, 1)


def run(name: str, folder: Path, asked: argparse.Namespace, bar: Progress) -> int:
    """One kind of attack until its share of the time or its count is used up."""
    attack = importlib.import_module(f"attack_{name}").attack
    share = asked.minutes * 60 / len(asked.only)
    began, outcomes, number = time.monotonic(), Counter[str](), asked.first
    task = bar.add_task(name, total=asked.count or share, done="")
    while number - asked.first < asked.count if asked.count else time.monotonic() - began < share:
        try:
            outcomes[attack(np.random.default_rng([asked.seed, number]), folder)] += 1
        except Exception:
            bar.console.print(traceback.format_exc(), markup=False, highlight=False)
            again = f"python tools/attack.py --only {name} --seed {asked.seed} --first {number} --count 1"
            kept = f"{tempfile.gettempdir()}/qornn-attack-{name}-{asked.seed}-{number}"
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            bar.console.print(f"{name} failed; its files are in {kept}. Again: {again}", markup=False, highlight=False)
            return 1
        number += 1
        spent = number - asked.first if asked.count else time.monotonic() - began
        bar.update(task, completed=spent, done=f"{number - asked.first} attacks")
    said = ", ".join(f"{word} {times}" for word, times in outcomes.most_common())
    figures = f"{number - asked.first} attacks in {time.monotonic() - began:.0f} s"
    bar.console.print(f"{name}: {figures}, none failed ({said})", highlight=False)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=4.0, help="time for all attacks together. Default: 4")
    parser.add_argument("--only", default=",".join(ATTACKS), help=f"of {', '.join(ATTACKS)}. Default: all")
    parser.add_argument("--count", type=int, default=0, help="number of attacks of each kind, instead of a time")
    parser.add_argument("--first", type=int, default=0, help="number of the first attack. Default: 0")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    asked = parser.parse_args()
    asked.only = [name.strip() for name in asked.only.split(",")]
    for name in asked.only:
        if name not in ATTACKS:
            parser.error(f"no attack is called {name!r}; choose from {', '.join(ATTACKS)}")
    if asked.minutes <= 0 or asked.count < 0 or asked.first < 0:
        parser.error("minutes must be positive, count and first not negative")
    return asked


if __name__ == "__main__":
    sys.exit(main())
