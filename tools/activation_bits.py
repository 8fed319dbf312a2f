"""How many bits the state needs: trained runs in integers at 16, 12, 10, 8 and 6 bits, beside their float figures.

python tools/activation_bits.py runs/digits runs/copy --record

Test sequences that are drawn, not stored, are drawn by the thousand: most of a small cross-entropy is a few bad ones.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import qornn
from qornn._io.files import to_json
from qornn.lowering.calibrate import calibrate
from qornn.lowering.lower import lower
from qornn.lowering.score import score
from qornn.tasks.adding import Adding
from qornn.tasks.copy import Copy
from qornn.train import Run, load
from qornn.train.evaluate import evaluate

ROOT = Path(__file__).parent.parent
ACTIVATION_BITS = (16, 12, 10, 8, 6)
DRAWN = 4000  # test sequences of a task that makes its own
SCHEMES: tuple[tuple[Literal["paper", "per-row"], str | float], ...] = (
    ("paper", "max"),
    ("per-row", "max"),
    ("per-row", 99.999),  # the percentile of |h| at which states saturate
)
RECORD = ROOT / "results" / "activation-bits.json"
PAGE = ROOT / "docs" / "integers.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, help="run folders with quantized weights")
    parser.add_argument("--record", action="store_true", help="also renew the record and the table in the docs")
    options = parser.parse_args()
    rows = [row for folder in options.runs for row in measure(load(folder))]
    print(table(rows))
    if options.record:
        RECORD.write_text(to_json({"version": qornn.__version__, "rows": rows}, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


def measure(run: Run) -> list[dict[str, Any]]:
    """One row for each scheme."""
    task, model = run.task(), run.recipe.model
    if isinstance(task, Adding | Copy):
        task = replace(task, test_size=DRAWN)
    facts: dict[str, Any] = {"task": task.name, "metric": task.metric_name, "bits": model.bits, "n_h": model.n_h}
    facts |= {"steps": run.result.get("steps"), "sequences": task.size("test")}
    facts["state_penalty"] = run.recipe.train.state_penalty
    facts["weights_quantized"] = evaluate(run.model, task, "test", run.recipe.train.batch)
    seen = calibrate(run)
    rows = []
    for scheme, alpha_h in SCHEMES:
        if scheme == "paper" and model.scale == "row":  # its one factor needs one scale
            continue
        programs = {
            k: lower(run, scheme=scheme, alpha_h=alpha_h, activation_bits=k, calibration=seen) for k in ACTIVATION_BITS
        }
        found = {str(k): score(program, task) for k, program in programs.items()}
        rows.append({**facts, "scheme": scheme, "alpha_h": alpha_h, "integer": found})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    columns = ["task, weights", "metric", "scheme", "α_h", "float states", *(f"{k} bits" for k in ACTIVATION_BITS)]
    lines = ["| " + " | ".join(columns) + " |", len(columns) * "|---" + "|"]
    for row in rows:
        figures = [row["weights_quantized"], *(row["integer"][str(k)] for k in ACTIVATION_BITS)]
        name = f"{row['task']}, {row['bits']} bits" + (", state penalty" if row["state_penalty"] else "")
        words = [name, row["metric"], row["scheme"], f"{row['alpha_h']}"]
        lines.append("| " + " | ".join([*words, *(f"{value:.4g}" for value in figures)]) + " |")
    return "\n".join(lines)


def with_table(page: str, rows: list[dict[str, Any]]) -> str:
    """The page with its table made again."""
    block = re.compile(r"(<!-- activation bits: .*? -->\n).*?(<!-- /activation bits -->)", re.DOTALL)
    return block.sub(lambda m: m[1] + table(rows) + "\n" + m[2], page)


def recorded() -> list[dict[str, Any]]:
    """The rows of the record."""
    return list(json.loads(RECORD.read_text(encoding="utf-8"))["rows"])


if __name__ == "__main__":
    main()
