"""Options that several commands share, spelled once."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else there.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, as in train.lr=1e-3 or model.n_h=64; repeatable.")
]
Map = Annotated[
    str | None,
    typer.Option(
        "--map",
        help="How W is kept orthogonal: bjorck, projunn, penalty or free. Or a W that is not stored: hadamard, "
        "hadamard-block, cycle or delay. Default: the recipe's.",
    ),
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        help="Kind of network: qornn, stack (rotations and mixes), or a baseline: rnn, lstm, gru, fastrnn, fastgrnn.",
    ),
]
Bits = Annotated[str, typer.Option("--bits", help="Weight bits, 2 to 8, or fp for full precision.")]
ActivationBits = Annotated[
    int | None,
    typer.Option("--activation-bits", help="State bits, 4 to 16. Default: 12; the trained bits for a stack."),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", help="Folder with mnist/ (or MNIST/raw/) and ptb/. Default: $QORNN_DATA, else the cache."
    ),
]


def data_settings(data_dir: Path | None, task: str) -> list[str]:
    """The data folder as a setting, for the tasks that read files."""
    from dataclasses import fields

    from qornn.recipe import setting
    from qornn.tasks import TASKS

    reads = task in TASKS and any(f.name == "data_dir" for f in fields(TASKS[task]))
    return [setting("task.data_dir", str(data_dir.resolve()))] if data_dir is not None and reads else []


def given_command() -> str:
    """This command, as a file may say that made it: of paths the last name, since a file is handed on."""
    return shlex.join(["qornn", *map(_without_folders, sys.argv[1:])])


def _without_folders(word: str) -> str:
    """As in -o/data/me/out, --out=/data/me/out and /data/me/out."""
    option, path = re.fullmatch(r"(-\w(?=[^=]*[/\\])|[^/\\]*=|)(.*)", word, re.DOTALL).groups()  # type: ignore[union-attr]
    return option + (re.split(r"[/\\]", path.rstrip("/\\"))[-1] or path)
