"""The picture of docs/browser.md: a digit drawn on a page in Chromium: python tools/page_picture.py"""

import math
import sys
import tempfile
from pathlib import Path

from PIL.PngImagePlugin import PngImageFile

sys.path.append(str(Path(__file__).parent))
from chromium import drive

import qornn

PICTURE = Path(__file__).parents[1] / "docs" / "browser.png"
PROGRAM = "smnist-hadamard"
WIDTH = 900
COLOURS = 128  # enough for a page of few colours, and half of the bytes


def arc(x: float, y: float, r: float, start: float, end: float) -> list[list[float]]:
    """Points of a circle in degrees, clockwise from the right."""
    angles = [math.radians(start + (end - start) * i / 24) for i in range(25)]
    return [[x + r * math.cos(a), y + 1.1 * r * math.sin(a)] for a in angles]


def main() -> None:
    three = arc(0.3, 0.36, 0.13, -150, 90) + arc(0.3, 0.65, 0.15, -90, 150)  # small and to the left, as people draw
    with tempfile.TemporaryDirectory(prefix="qornn-page-") as scratch:
        folder = qornn.export.web(qornn.load(f"zoo:{PROGRAM}"), Path(scratch) / "page", name="smnist_hadamard")
        found = drive(folder / "index.html", width=WIDTH, strokes=[three], picture=str(PICTURE))
    PngImageFile(PICTURE).convert("RGB").quantize(COLOURS).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes; the answer is {found['answer']}")


if __name__ == "__main__":
    main()
