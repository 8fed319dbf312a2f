"""A trained network into the zoo, measured on its test set and stored with its record.

python tools/zoo.py runs/digits digits-k4
python tools/zoo.py results/cells/pmnist-bjorck-k8--cosine80all.json pmnist-k8    # the program that a record keeps
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path
from typing import Any

from qornn import __version__
from qornn._io.files import to_json, write_atomically
from qornn._io.foreign import read_json
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import load as load_program
from qornn.lowering.lower import lower
from qornn.lowering.score import score
from qornn.recipe import from_tables
from qornn.tasks.base import Task
from qornn.train import load
from qornn.train.build import build_task
from qornn.train.evaluate import evaluate

ZOO = Path(__file__).parent.parent / "src" / "qornn" / "zoo"
Found = tuple[IntegerProgram, Task, float, Any]  # the program, its task, the score before lowering, the variant


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", type=Path, help="A run folder, to be lowered, or a record that keeps its program.")
    parser.add_argument("name")
    parser.add_argument("--activation-bits", type=int, default=None)
    parser.add_argument("--alpha-h", default=None)
    parser.add_argument("--refit", type=int, default=0)
    parser.add_argument("--variant", help="how the run departs from the paper's setting")
    options = parser.parse_args()
    program, task, quantized, variant = kept(options.source) if options.source.is_file() else lowered(options)
    value = score(program, task)
    variant = options.variant or variant
    program = program.with_provenance(metric={"name": task.metric_name, "value": value}, variant=variant)
    file = ZOO / f"{options.name}.qornn"
    program.save(file)
    record = {
        "name": options.name,
        "task": task.name,
        "metric": task.metric_name,
        "value": value,
        "weights_quantized": quantized,
        "baseline": task.naive_baseline,
        "variant": variant,
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


def lowered(options: argparse.Namespace) -> Found:
    """A run, by the options."""
    run = load(options.source)
    program = lower(run, activation_bits=options.activation_bits, alpha_h=options.alpha_h, refit=options.refit)
    task = run.task()
    return program, task, evaluate(run.model, task, "test", run.recipe.train.batch), None


def kept(record: Path) -> Found:
    """What `qornn reproduce` kept."""
    found = read_json(record)
    program = load_program(record.parent.parent / found["program"])
    return program, build_task(from_tables(found["settings"])), found["value"], found["variant"]


if __name__ == "__main__":
    main()
