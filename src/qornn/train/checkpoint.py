"""Checkpoints: one safetensors file each, digest inside, written atomically; loading never executes anything."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse
from safetensors.torch import save as serialise
from torch import Tensor, nn

from qornn._io.files import write_atomically
from qornn._io.foreign import Unreadable, is_count, is_number, parse_json, read_bytes, reason
from qornn.errors import CheckpointError, shown
from qornn.recipe.first_edition import renewed

SCHEMA = 1
PARTS = ("model", "optimizer", "rng", "average")  # of tensors
KEPT = 2  # the newest and the one before it
MOMENTS: dict[type[torch.optim.Optimizer], tuple[str, ...]] = {
    torch.optim.Adam: ("step", "exp_avg", "exp_avg_sq"),
    torch.optim.AdamW: ("step", "exp_avg", "exp_avg_sq"),
    torch.optim.RMSprop: ("step", "square_avg"),
}
LARGEST = 1 << 36  # bytes of a file of weights
MOST_THREADS = 1024  # no machine has more cores, and the compiler's threads end the process where they cannot be made
DTYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool, torch.uint8}
DTYPES |= {torch.int8, torch.int16, torch.int32, torch.int64}
UNSEEN = ("loss", "norm", "training")  # of a step whose evaluation was cut off
_EXTRA: dict[str, Callable[[Any], bool]] = {
    "log_length": is_count,
    "seconds": lambda value: is_number(value) and 0 <= value < float("inf"),
    "best": lambda value: is_number(value) and not math.isnan(value),
    "threads": lambda value: is_count(value, most=MOST_THREADS) and value > 0,
    "device": lambda value: isinstance(value, str),
    "optimizer": lambda value: isinstance(value, str),
    "unmoved": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
    "unseen": lambda value: (
        value is None
        or (isinstance(value, dict) and value.keys() == set(UNSEEN) and all(is_number(v) for v in value.values()))
    ),
}
# What the weights do not depend on, or once they are begun no longer.
MAY_CHANGE = {"data_dir", "start", "log_every", "eval_every", "checkpoint_every", "checkpoint_seconds"}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The complete state of a run at one step."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor] = field(default_factory=dict)  # "parameter/key" -> state
    rng: dict[str, Tensor] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)  # plain numbers and strings: position in the log, threads …
    average: dict[str, Tensor] = field(default_factory=dict)  # of the weights, where a mean is taken


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write `step-N.safetensors` into the folder and drop all but the newest files."""
    path = folder / f"step-{checkpoint.step:08d}.safetensors"
    parts = {name: getattr(checkpoint, name) for name in PARTS}
    tensors = {f"{part}:{name}": tensor for part, named in parts.items() for name, tensor in named.items()}
    save_tensors(path, tensors, {"step": checkpoint.step, "extra": checkpoint.extra})
    drop_old(folder)
    return path


def drop_old(folder: Path) -> None:
    """All but the newest; a killed process may have left one more."""
    for old in files(folder)[:-KEPT]:
        old.unlink(missing_ok=True)


def files(folder: Path) -> list[Path]:
    """The folder's checkpoints, oldest first."""
    return sorted((p for p in folder.glob("step-*.safetensors") if number(p) >= 0), key=number)


def number(path: Path) -> int:
    """The step in a checkpoint's name, or −1 for other names."""
    digits = path.name.removeprefix("step-").removesuffix(".safetensors")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else -1


def load(path: Path) -> Checkpoint:
    """Read a checkpoint whole, or raise."""
    tensors, facts = load_tensors(path)
    parts: dict[str, dict[str, Tensor]] = {name: {} for name in PARTS}
    for key, tensor in tensors.items():
        part, _, name = key.partition(":")
        if part not in parts:
            raise CheckpointError(f"{path} is not a checkpoint of a run: unexpected tensor {shown(key)}")
        parts[part][name] = tensor
    if not is_count(facts.get("step")) or not isinstance(facts.get("extra"), dict):
        raise CheckpointError(f"{path} is not a checkpoint of a run: it does not say its step")
    for name, value in facts["extra"].items():
        if name in _EXTRA and not _EXTRA[name](value):
            raise CheckpointError(_refused(path, f"says that its {name} is {shown(value)}"))
    return Checkpoint(facts["step"], extra=facts["extra"], **parts)


def demand(checkpoint: Checkpoint, path: Path, *names: str) -> list[Any]:
    """These extra facts. A checkpoint without one of them is refused."""
    for name in names:
        if name not in checkpoint.extra:
            raise CheckpointError(_refused(path, f"does not say its {name}"))
    return [checkpoint.extra[name] for name in names]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """One safetensors file with a digest of its contents; the same contents give the same bytes."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {**facts, "schema": SCHEMA, "sha256": _digest(plain, facts)}
    # One metadata key: the order of several is not defined, and equal runs must give equal files.
    data = serialise(plain, metadata={"qornn": json.dumps(header, sort_keys=True)})
    write_atomically(path, data, own=True)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts of a file written by `save_tensors`; a damaged file is named, never half-loaded."""
    try:
        data = read_bytes(path, largest=LARGEST)
    except Unreadable as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error
    try:
        tensors = parse(data)
        length = int.from_bytes(data[:8], "little")
        header = parse_json(parse_json(data[8 : 8 + length])["__metadata__"]["qornn"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(_damaged(path, reason(error))) from error
    if not isinstance(header, dict):
        raise CheckpointError(_damaged(path, "its header is not a table"))
    if header.get("schema") != SCHEMA:
        raise CheckpointError(
            f"{path} has schema {shown(header.get('schema'))}, this version reads {SCHEMA}; upgrade qornn"
        )
    strange = sorted({str(tensor.dtype) for tensor in tensors.values() if tensor.dtype not in DTYPES})
    if strange:
        raise CheckpointError(_refused(path, f"holds numbers of the type {strange[0]}"))
    facts = {key: value for key, value in header.items() if key not in ("schema", "sha256")}
    if header.get("sha256") != _digest(tensors, facts):
        raise CheckpointError(_damaged(path, "its contents do not match its digest"))
    return tensors, facts


def load_into(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Copy weights into a model of the same names and shapes, all or nothing."""
    own = model.state_dict()
    wrong = sorted(own.keys() ^ tensors.keys()) or sorted(k for k in own if _form(own[k]) != _form(tensors[k]))
    if wrong:
        name = wrong[0]
        forms = [_form(t[name]) if name in t else "absent" for t in (tensors, own)]
        raise CheckpointError(f"{path} belongs to another model: {shown(name)} is {forms[0]} there and {forms[1]} here")
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise CheckpointError(_refused(path, f"holds NaN or infinity in {name}"))
    model.load_state_dict(dict(tensors))


def optimizer_state(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's moments under the names of their parameters."""
    named: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {f"{named[p]}/{key}": value for p, state in optimizer.state.items() for key, value in state.items()}


def unmoved(optimizer: torch.optim.Optimizer, model: nn.Module) -> list[str]:
    """Names of parameters that the optimizer holds but never had a gradient for."""
    return sorted(name for name, parameter in _held(optimizer, model).items() if parameter not in optimizer.state)


def _held(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, nn.Parameter]:
    moved = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return {name: parameter for name, parameter in model.named_parameters() if id(parameter) in moved}


def load_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, checkpoint: Checkpoint, path: Path) -> None:
    """Put moments saved by `optimizer_state` back, all of them."""
    held, kinds = _held(optimizer, model), MOMENTS.get(type(optimizer), ())
    moved = held.keys() - set(checkpoint.extra.get("unmoved", ())) if checkpoint.step else ()
    missing = sorted({f"{name}/{kind}" for name in moved for kind in kinds} - checkpoint.optimizer.keys())
    if missing:
        raise CheckpointError(_refused(path, f"does not contain the optimizer's {missing[0]}"))
    for key, value in checkpoint.optimizer.items():
        name, _, kind = key.rpartition("/")
        if name not in held or (kinds and kind not in kinds):
            raise CheckpointError(f"{path} has an optimizer that knows {shown(key)}, which this model does not have")
        parameter = held[name]
        if kinds and value.shape != (torch.Size() if kind == "step" else parameter.shape):
            raise CheckpointError(_refused(path, f"has the optimizer's {key} in the shape {tuple(value.shape)}"))
        on_device = value.to(parameter.device) if value.shape == parameter.shape else value
        optimizer.state[parameter][kind] = on_device.clone()


def set_generator(generator: torch.Generator, state: Tensor | None, path: Path) -> None:
    """Put a generator where the checkpoint says that it stood."""
    try:
        if state is None or _form(state) != _form(generator.get_state()):
            raise RuntimeError
        generator.set_state(state)
    except RuntimeError as error:
        raise CheckpointError(_refused(path, "does not hold the state of its random numbers")) from error


def check_recipe(path: Path, made: object, now: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse weights that were made by another recipe than the one beside them; old files do not say."""
    if made is None:
        return
    if not isinstance(made, dict) or not all(isinstance(table, dict) for table in made.values()):
        raise CheckpointError(_refused(path, "does not say its recipe as tables"))
    for table in made.keys() & now.keys():
        before, after = (renewed(t[table]) if table == "model" else t[table] for t in (made, now))
        for name in sorted(before.keys() | (after.keys() if table == "task" else set())):
            if name not in MAY_CHANGE and before.get(name) != after.get(name):
                raise CheckpointError(
                    f"{path} belongs to another {'training' if table == 'train' else table}: it was made with the "
                    f"{name} {_word(before.get(name))}, the recipe says {_word(after.get(name))}; "
                    f"set {table}.{name} back in recipe.toml, or start a new training in another folder"
                )


def _form(tensor: Tensor) -> str:
    plain = "" if tensor.dtype is torch.float32 else f" {tensor.dtype}"
    return f"{tuple(tensor.shape)}{plain}"


def _word(value: object) -> str:
    return value if isinstance(value, str) and value.isidentifier() and len(value) < 60 else shown(value)


def _digest(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return digest.hexdigest()


def _damaged(path: Path, reason: str) -> str:
    return _refused(path, f"is damaged or truncated ({reason})")


def _refused(path: Path, what: str) -> str:
    """What is wrong with the file, and how to continue without it."""
    if not path.name.startswith("step-"):
        return f"{path} {what}; delete it and `qornn resume` the run to make it again"
    earlier = [p.name for p in files(path.parent) if number(p) < number(path)]
    way_out = f"to continue from {earlier[-1]}" if earlier else "to start again from the beginning"
    return f"{path} {what}; delete it {way_out}"
