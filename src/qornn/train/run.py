"""Runs: a folder with the recipe, the metrics, the checkpoints and, when finished, the final weights."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from qornn import __version__
from qornn._io.files import to_json, write_atomically
from qornn._io.folders import LOCK, is_free
from qornn._io.foreign import Unreadable, is_number, read_json
from qornn.errors import CheckpointError, shown
from qornn.maps import is_structured
from qornn.recipe import AS_THE_RECIPE, STACK, Recipe, find_cell, read_run, resolve
from qornn.recurrence import in_use
from qornn.tasks.base import Task
from qornn.train import checkpoint as checkpoints
from qornn.train import place
from qornn.train.begin import MODEL_FILE, take_start_weights
from qornn.train.build import build_model, build_task
from qornn.train.device import choose_device
from qornn.train.distributed import join, leave, rank
from qornn.train.log import Display
from qornn.train.loop import Trainer

FIGURES = {"value", "baseline", "steps", "seconds", "orthogonality", "sigma_min", "sigma_max", "saturation", "max_h"}
FIGURES |= {"lambda_max", "saturated_states"}


@dataclass(frozen=True, slots=True)
class Run:
    """A trained network with the recipe that made it."""

    folder: Path
    recipe: Recipe
    model: nn.Module
    result: dict[str, Any] = field(default_factory=dict)
    finished: bool = True

    def task(self) -> Task:
        """The task it was trained on."""
        return build_task(self.recipe)


def train(
    task: str,
    *,
    model: str = "qornn",
    map: str | None = None,
    bits: int | str | None = AS_THE_RECIPE,
    activation_bits: int | str | None = AS_THE_RECIPE,
    out: str | Path | None = None,
    settings: Iterable[str] = (),
    device: str = "auto",
    quiet: bool = False,
) -> Run:
    """Train a recipe: `qornn.train("pmnist", bits=5, out="runs/pm5")`.

    - `task`: the name of a recipe, as `qornn list` prints them.
    - `model` ("qornn"): qornn, stack, or a baseline: rnn, lstm, gru, fastrnn, fastgrnn.
    - `map` (None): what keeps W orthogonal, such as "bjorck". None means the recipe's.
    - `bits` ("recipe"): weight bits, 2 to 8. None or "fp" is full precision, "recipe" the recipe's.
    - `activation_bits` ("recipe"): state bits of `model="stack"`, 4 to 16, rounded while training. None or "fp" is
      float states.
    - `out` (None): the run folder, new or empty. None means runs/TASK-….
    - `settings` (()): changes of the recipe, as in `["train.lr=1e-3"]`.
    - `device` ("auto"): auto, cpu, cuda or mps.
    - `quiet` (False): no progress bar and no messages.
    """
    recipe = resolve(task, model=model, map=map, bits=bits, activation_bits=activation_bits, settings=settings)
    return start(recipe, out, device=device, quiet=quiet)


def start(recipe: Recipe, out: str | Path | None = None, *, device: str = "auto", quiet: bool = False) -> Run:
    """Train a resolved recipe in a new folder."""
    folder = Path(out) if out is not None else default_folder(recipe)
    if "data_dir" in recipe.task:  # the run must find its data from any folder
        recipe = replace(recipe, task=recipe.task | {"data_dir": str(Path(recipe.task["data_dir"]).resolve())})
    if recipe.train.start:
        recipe = replace(recipe, train=replace(recipe.train, start=str(Path(recipe.train.start).resolve())))
    first = join(choose_device(device)).first
    if first:
        place.check_new(folder)
    with place.keep(folder, first=first):
        trainer = _trainer(recipe, folder, device, quiet)  # bad settings fail before anything is written
        take_start_weights(trainer)
        if first:
            place.check_new(folder)  # nobody else has begun meanwhile
            write_atomically(folder / "recipe.toml", recipe.to_toml(), own=True)
        trainer.resuming = True  # what the folder holds is the run's own
        return _finish(trainer, recipe, folder)


def resume(folder: str | Path, *, device: str | None = None, settings: Iterable[str] = (), quiet: bool = False) -> Run:
    """Continue a run from its newest checkpoint. A finished run is returned as it is.

    - `folder`: the run folder.
    - `device` (None): auto, cpu, cuda or mps. None means the device of the checkpoint.
    - `settings` (()): settings that no weight depends on and that changed since, as in `["task.data_dir=…"]`.
    - `quiet` (False): no progress bar and no messages.

    The number of threads is the checkpoint's, because sums in another order differ in their last bits.
    """
    folder = Path(folder)
    recipe = read_run(folder).override(settings)
    finished = (folder / MODEL_FILE).exists()
    if finished and not (folder / LOCK).exists():
        return load(folder)
    with place.keep(folder, first=rank() == 0):  # of a finished run, too: killed at its very end it left its lock
        return load(folder) if finished else _go_on(folder, recipe, device, quiet)


def load(folder: str | Path) -> Run:
    """A finished run, or an unfinished one as of its newest checkpoint."""
    folder = Path(folder)
    recipe = read_run(folder)
    final = folder / MODEL_FILE
    if final.exists():
        tensors, facts = checkpoints.load_tensors(final)
        model = _with_weights(recipe, tensors, facts.get("recipe"), final)
        return Run(folder, recipe, model, _read_result(folder) | {"version": facts.get("version")})
    saved = checkpoints.files(folder / "checkpoint")
    if not saved:
        raise CheckpointError(f"{folder} holds no trained weights yet; `qornn resume {folder}` trains it")
    newest = checkpoints.load(saved[-1])
    model = _with_weights(recipe, newest.model, newest.extra.get("recipe"), saved[-1])
    (seconds,) = checkpoints.demand(newest, saved[-1], "seconds")
    figures = {"steps": newest.step, "seconds": round(float(seconds), 3), "version": __version__}
    return Run(folder, recipe, model, figures, finished=False)


def _with_weights(recipe: Recipe, tensors: Mapping[str, Tensor], made: object, path: Path) -> nn.Module:
    checkpoints.check_recipe(path, made, recipe.portable_tables())
    task = build_task(recipe)
    _check_size(recipe, task, tensors, path)
    model = build_model(recipe, task)
    checkpoints.load_into(model, tensors, path)
    return model


def _check_size(recipe: Recipe, task: Task, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuse weights of another size than the recipe's before a network of that size is made: it may be huge."""
    m = recipe.model
    shapes = {"V": (task.n_o, m.n_out)}
    if m.kind == STACK:
        shapes[f"layers.{2 * m.layers}.C_raw"] = (m.width, 2 * m.n_pairs)  # of the last mix
    elif m.kind == "qornn" and not is_structured(m.map):
        shapes["recurrence.W_raw"] = (m.n_h, m.n_h)
    for name, shape in shapes.items():
        there = tuple(tensors[name].shape) if name in tensors else "absent"
        if there != shape and (name in tensors or m.kind == STACK):
            raise CheckpointError(f"{path} belongs to another model: {name} is {there} there and {shape} here")


def dry_run(recipe: Recipe, *, device: str = "auto") -> dict[str, Any]:
    """Run a few batches, keep nothing, and estimate the whole: seconds and peak memory."""
    task = build_task(recipe)
    trainer = Trainer(build_model(recipe, task), task, recipe.train, device=device, quiet=True)
    try:
        seconds = trainer.probe()
    finally:
        leave()
    return {
        "steps": trainer.total,
        "seconds_per_step": seconds,
        "estimated_seconds": seconds * trainer.total,
        "peak_memory_bytes": _peak_memory(),
        "device": str(trainer.device),
    }


def _peak_memory() -> int | None:
    """Bytes that this process had at once; None on Windows, where Python does not tell."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def default_folder(recipe: Recipe) -> Path:
    """runs/TASK-STRATEGY-kBITS-sSEED, with a number behind it when that is taken."""
    m = recipe.model
    strategy = m.map if m.kind == "qornn" else m.kind
    stem = f"{recipe.task['name']}-{strategy}-{'fp' if m.bits is None else f'k{m.bits}'}-s{recipe.train.seed}"
    number, folder = 1, Path("runs") / stem
    while not is_free(folder):
        number += 1
        folder = Path("runs") / f"{stem}-{number}"
    return folder


def _trainer(recipe: Recipe, folder: Path, device: str, quiet: bool) -> Trainer:
    task = build_task(recipe)
    trainer = Trainer(build_model(recipe, task), task, recipe.train, out=folder, device=device, quiet=quiet)
    trainer.recipe = recipe.portable_tables()
    say = Display(0, quiet=trainer.quiet).say
    say(f"qornn {__version__}  run {folder}")
    for table, values in recipe.tables().items():
        say(f"  {table}: " + "  ".join(f"{key}={value}" for key, value in values.items() if value is not None))
    say(
        f"  device {trainer.device}, {torch.get_num_threads()} threads, recurrence {in_use()}, seed {recipe.train.seed}"
    )
    return trainer


def _go_on(folder: Path, recipe: Recipe, device: str | None, quiet: bool) -> Run:
    if (folder / MODEL_FILE).exists():  # finished by another process before this one came in
        return load(folder)
    saved = checkpoints.files(folder / "checkpoint")
    facts: dict[str, Any] = {}
    if saved:
        newest = checkpoints.load(saved[-1])
        facts = newest.extra
        checkpoints.check_recipe(saved[-1], facts.get("recipe"), recipe.portable_tables())
        _check_size(recipe, build_task(recipe), newest.model, saved[-1])
    torch.set_num_threads(facts.get("threads", torch.get_num_threads()))
    trainer = _trainer(recipe, folder, device or facts.get("device", "auto"), quiet)
    trainer.resuming = True
    if saved:
        trainer.restore(saved[-1])
        if trainer.processes.first:
            checkpoints.drop_old(folder / "checkpoint")
    else:
        take_start_weights(trainer)
    return _finish(trainer, recipe, folder)


def _finish(trainer: Trainer, recipe: Recipe, folder: Path) -> Run:
    try:
        figures = trainer.run()
    finally:
        leave()
    cell = find_cell(recipe)
    result = {
        "task": recipe.task["name"],
        **figures,
        "bits": recipe.model.weight_bits,
        "activation_bits": recipe.model.activation_bits if recipe.model.kind == STACK else None,
        "paper": cell.paper if cell else None,
        "run": str(folder),
    }
    if trainer.processes.first:
        # The weights come last: their presence says that the run is finished.
        write_atomically(folder / "result.json", to_json(result, indent=1) + "\n", own=True)
        checkpoints.save_tensors(
            folder / MODEL_FILE,
            trainer.model.state_dict(),
            {"version": __version__, "steps": trainer.step, "recipe": recipe.portable_tables()},
        )
    return Run(folder, recipe, trainer.model, result)


def _read_result(folder: Path) -> dict[str, Any]:
    """The figures of a finished run. The weights do not depend on them."""
    path = folder / "result.json"
    if not path.exists():
        return {}
    try:
        found = read_json(path)
        if not isinstance(found, dict):
            raise Unreadable("it is not a table of figures")
        for key, value in found.items():
            if key in FIGURES and not (value is None or is_number(value)):
                raise Unreadable(f"its {key} is {shown(value)}")
        return found
    except Unreadable as error:
        raise CheckpointError(f"cannot read {path}: {error}; delete it, and `qornn eval` measures again") from error
