"""A trained run into the zoo: lowered, measured on its test set, and stored with its record.

python tools/zoo.py runs/digits digits-k4
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

from qornn import __version__
from qornn._io.files import to_json, write_atomically
from qornn.lowering.lower import lower
from qornn.lowering.score import score
from qornn.train import load
from qornn.train.evaluate import evaluate

ZOO = Path(__file__).parent.parent / "src" / "qornn" / "zoo"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("--activation-bits", type=int, default=None)
    parser.add_argument("--alpha-h", default=None)
    parser.add_argument("--refit", type=int, default=0)
    parser.add_argument("--variant", help="how the run departs from the paper's setting")
    options = parser.parse_args()
    run = load(options.run)
    task = run.task()
    program = lower(run, activation_bits=options.activation_bits, alpha_h=options.alpha_h, refit=options.refit)
    value = score(program, task)
    program = program.with_provenance(metric={"name": task.metric_name, "value": value}, variant=options.variant)
    file = ZOO / f"{options.name}.qornn"
    program.save(file)
    record = {
        "name": options.name,
        "task": task.name,
        "metric": task.metric_name,
        "value": value,
        "weights_quantized": evaluate(run.model, task, "test", run.recipe.train.batch),
        "baseline": task.naive_baseline,
        "variant": options.variant,
        "bits": program.bits if len(program.layers) > 1 else program.W.bits,
        "activation_bits": program.activation_bits,
        "file_bytes": file.stat().st_size,
        "true_bytes": program.true_bytes,
        "version": __version__,
        "machine": platform.machine(),
        **{key: program.provenance[key] for key in ("trained", "lowering", "recipe")},
    }
    write_atomically(ZOO / f"{options.name}.json", to_json(record, indent=1) + "\n")
    print(f"{file}: {record['file_bytes']} bytes, {task.metric_name} {value:.6g}")


if __name__ == "__main__":
    main()
