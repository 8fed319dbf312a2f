"""How many drawn digits the programs of the zoo recognise, for docs/browser.md: python tools/drawn_digits.py"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))
from chromium import NODE
from zoo_pages import page

SCRIPT = Path(__file__).with_name("run_page.js")
PROGRAMS = ("smnist-hadamard", "pmnist-k8", "pmnist-k4", "digits-k4")
SLANTS, WIDTHS = (-0.15, 0.0, 0.15, 0.3), (0.64, 0.8, 0.96)


def in_node(folder: Path, **asked: Any) -> dict[str, Any]:
    """What the scripts of a page answer without a browser."""
    if NODE is None:
        raise SystemExit("node is not installed; apt-get install nodejs")
    words = json.dumps(asked).replace("NaN", "null")  # JSON has none
    command = [NODE, str(SCRIPT), str(folder)]
    done = subprocess.run(command, input=words, capture_output=True, encoding="utf-8", timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def placed(
    strokes: list, *, size: float = 1.0, at: tuple[float, float] = (0.5, 0.5), slant: float = 0.0, wide: float = 1.0
) -> list:
    """Strokes in 0..1 as another hand would draw them: smaller, elsewhere, slanted, narrower."""

    def move(x: float, y: float) -> list[float]:
        right, down = (x - 0.5 + slant * (0.5 - y)) * size * wide, (y - 0.5) * size
        return [0.5 + right + (at[0] - 0.5) * (1 - size), 0.5 + down + (at[1] - 0.5) * (1 - size)]

    return [[move(x, y) for x, y in stroke] for stroke in strokes]


def rate(folder: Path, *, frame: bool) -> float:
    """Percent of ten digits by twelve hands, small and in a corner."""
    digits = in_node(folder, digits=True)["digits"]
    hands = [{"slant": slant, "wide": wide} for slant in SLANTS for wide in WIDTHS]
    drawings = [placed(strokes, size=0.4, at=(0.1, 0.8), **hand) for strokes in digits for hand in hands]
    answers = in_node(folder, drawings=drawings, frame=frame)["answers"]
    return 100 * sum(answer == n // len(hands) for n, answer in enumerate(answers)) / len(answers)


def row(name: str, folder: Path) -> str:
    """A row of the table in docs/browser.md."""
    return f"| `{name}` | {rate(folder, frame=True):.0f} % | {rate(folder, frame=False):.0f} % |"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="qornn-zoo-") as scratch:
        for name in PROGRAMS:
            print(row(name, page(name, Path(scratch) / name)))


if __name__ == "__main__":
    main()
