"""`qornn demo`, and the record and picture in the documentation from it: python examples/demo.py --record"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import torch

import qornn
from qornn.demo.run import Demo, demo, table, verdict

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the runs and the picture")
    parser.add_argument("--record", action="store_true", help="also renew results/demo.json and docs/demo.png")
    options = parser.parse_args()
    found = demo(options.out)
    print(f"\n{table(found.rows)}\n\n{verdict(found.devices)}\n")
    if options.record:
        record(found)


def record(found: Demo) -> None:
    """Renew what the documentation shows, from this run alone."""
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads"
    content = {
        "version": qornn.__version__,
        "torch": torch.__version__,
        "machine": machine,
        "rows": found.rows,
        "devices": found.devices,
    }
    for folder in ("results", "docs"):
        (ROOT / folder).mkdir(exist_ok=True)
    (ROOT / "results" / "demo.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (ROOT / "docs" / "demo.png").write_bytes(found.files["picture"].read_bytes())


if __name__ == "__main__":
    main()
