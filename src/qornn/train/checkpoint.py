"""Checkpoints: one safetensors file each, digest inside, written atomically; loading never executes anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse
from safetensors.torch import save as serialise
from torch import Tensor, nn

from qornn.errors import CheckpointError
from qornn.files import write_atomically

SCHEMA = 1
KEPT = 2  # the newest and the one before it


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything a run is at one step."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor] = field(default_factory=dict)  # "parameter/key" -> state
    rng: dict[str, Tensor] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)  # plain numbers and strings: position in the log, threads …


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write `step-N.safetensors` into the folder and drop all but the newest files."""
    path = folder / f"step-{checkpoint.step:08d}.safetensors"
    parts = {"model": checkpoint.model, "optimizer": checkpoint.optimizer, "rng": checkpoint.rng}
    tensors = {f"{part}:{name}": tensor for part, named in parts.items() for name, tensor in named.items()}
    save_tensors(path, tensors, {"step": checkpoint.step, "extra": checkpoint.extra})
    for old in files(folder)[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def files(folder: Path) -> list[Path]:
    """The folder's checkpoints, oldest first."""
    return sorted(folder.glob("step-*.safetensors"))


def load(path: Path) -> Checkpoint:
    """Read a checkpoint whole, or raise."""
    tensors, facts = load_tensors(path)
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "rng": {}}
    for key, tensor in tensors.items():
        part, _, name = key.partition(":")
        if part not in parts:
            raise CheckpointError(f"{path} is not a checkpoint of a run: unexpected tensor {key!r}")
        parts[part][name] = tensor
    if not isinstance(facts.get("step"), int) or not isinstance(facts.get("extra"), dict):
        raise CheckpointError(f"{path} is not a checkpoint of a run: it does not say its step")
    return Checkpoint(facts["step"], parts["model"], parts["optimizer"], parts["rng"], facts["extra"])


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """One safetensors file with a digest of its contents; the same contents give the same bytes."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {**facts, "schema": SCHEMA, "sha256": _digest(plain, facts)}
    # One metadata key: the order of several is not defined, and equal runs must give equal files.
    write_atomically(path, serialise(plain, metadata={"qornn": json.dumps(header, sort_keys=True)}))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts of a file written by `save_tensors`; a damaged file is named, never half-loaded."""
    try:
        data = path.read_bytes()
        tensors = parse(data)
        length = int.from_bytes(data[:8], "little")
        header = dict(json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["qornn"]))
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(_damaged(path, f"{error}")) from error
    if header.get("schema") != SCHEMA:
        raise CheckpointError(f"{path} has schema {header.get('schema')!r}, this version reads {SCHEMA}; upgrade qornn")
    facts = {key: value for key, value in header.items() if key not in ("schema", "sha256")}
    if header.get("sha256") != _digest(tensors, facts):
        raise CheckpointError(_damaged(path, "its contents do not match its digest"))
    return tensors, facts


def load_into(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Copy weights into a model of the same names and shapes, all or nothing."""
    own = model.state_dict()
    wrong = sorted(own.keys() ^ tensors.keys()) or sorted(k for k in own if own[k].shape != tensors[k].shape)
    if wrong:
        name = wrong[0]
        shapes = [tuple(t[name].shape) if name in t else "absent" for t in (tensors, own)]
        raise CheckpointError(f"{path} belongs to another model: {name} is {shapes[0]} there and {shapes[1]} here")
    model.load_state_dict(dict(tensors))


def clean(folder: Path) -> None:
    """Remove what a killed process left half-written."""
    for part in folder.rglob(".*.part"):
        part.unlink(missing_ok=True)


def optimizer_state(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's moments under the names of their parameters."""
    named: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {f"{named[p]}/{key}": value for p, state in optimizer.state.items() for key, value in state.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put moments saved by `optimizer_state` back."""
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        name, _, kind = key.rpartition("/")
        if name not in parameters:
            raise CheckpointError(f"the checkpoint's optimizer knows {name!r}, which this model does not have")
        parameter = parameters[name]
        on_device = value.to(parameter.device) if value.shape == parameter.shape else value
        optimizer.state[parameter][kind] = on_device.clone()


def _digest(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return digest.hexdigest()


def _damaged(path: Path, reason: str) -> str:
    earlier = [p.name for p in files(path.parent) if p < path]
    if not path.name.startswith("step-"):
        way_out = "delete it and `qornn resume` the run to make it again"
    else:
        way_out = f"delete it to go on from {earlier[-1]}" if earlier else "delete it to start again from the beginning"
    return f"{path} is damaged or truncated ({reason}); {way_out}"
