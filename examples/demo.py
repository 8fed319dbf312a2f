"""`qornn demo`, and the README's table and picture from it: python examples/demo.py --record"""

from __future__ import annotations

import argparse
import json
import platform
import re
from pathlib import Path
from typing import Any

import torch

import qornn
from qornn.demo.run import Demo, demo, table, verdict

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the runs and the picture")
    parser.add_argument("--record", action="store_true", help="also update the README and its picture")
    options = parser.parse_args()
    found = demo(options.out)
    print(f"\n{block_text(found.rows, found.devices)}")
    if options.record:
        record(found)


def block_text(rows: dict[str, dict[str, Any]], devices: dict[str, dict[str, Any]]) -> str:
    """What the README shows of a record."""
    return f"{table(rows)}\n\n{verdict(devices)}\n"


def record(found: Demo) -> None:
    """Renew what the README shows, from this run alone."""
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
    readme = ROOT / "README.md"
    block = re.compile(r"(<!-- demo: .*? -->\n).*?(<!-- /demo -->)", re.DOTALL)
    shown = block_text(found.rows, found.devices)
    text = block.sub(lambda m: m[1] + shown + m[2], readme.read_text(encoding="utf-8"))
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
