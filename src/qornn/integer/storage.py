"""A program on disk: one safetensors file, weights packed at their bits; loading checks all and executes nothing."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialise

from qornn._io.files import to_json, write_atomically
from qornn.errors import ProgramError, QornnError
from qornn.integer.matrix import Dense, Matrix
from qornn.integer.packing import brief, packed_fields, restored, shape_key, stored
from qornn.integer.parts import Codes, FloatReadout, Identity, IntReadout, ModReLU, ReLU, Samples, State
from qornn.integer.program import IntegerProgram
from qornn.integer.requant import Multiplier, PerRow, Table, Thresholds
from qornn.integer.structured import STRUCTURED, Delay, Hadamard

FORMAT: Final = "qornn-program"
SCHEMA: Final = 2
NEWER: Final = ("input.raw_scale",)  # tensors of schema 2; a program without them is written as schema 1
HEADER_LIMIT: Final = 2**20  # bytes of names, numbers and provenance: a thousandth of this is usual
FILE_LIMIT: Final = 2**30
RETIRED: Final = "quaternion"  # a kind of W

# What each part may be. A part's fields are its numbers (JSON) and its arrays (tensors "part.field").
KINDS: Final[dict[str, dict[str, type]]] = {
    "W": {Dense.kind: Dense, **STRUCTURED},
    "U": {"dense": Matrix},
    "state": {"uniform": State},
    "input": {"codes": Codes, "samples": Samples},
    "activation": {"relu": ReLU, "modrelu": ModReLU, "identity": Identity},
    "requant": {"multiplier": Multiplier, "thresholds": Thresholds, "table": Table, "per-row": PerRow},
    "readout": {"float": FloatReadout, "integer": IntReadout},
}
ARRAYS: Final[dict[type, dict[str, Any]]] = {  # of packed fields (packing.py) these are the types before
    Dense: {"integers": np.int8, "alpha": np.float64},
    Hadamard: {"signs": np.int8},
    Delay: {"signs": np.int8},
    Matrix: {"integers": np.int8, "alpha": np.float64},
    Samples: {"offset": np.int32, "multiplier": np.int32, "shift": np.uint8, "raw_scale": np.float32},
    ModReLU: {"bias": np.int64},
    Identity: {"bias": np.int64},
    Thresholds: {"values": np.int32},
    Table: {"values": np.int16},
    PerRow: {"M_W": np.int32, "M_U": np.int32, "M_I": np.int32, "shift": np.uint8},
    FloatReadout: {"V": np.float32, "b_o": np.float32},
    IntReadout: {"V": np.int8, "bias": np.int32},
}


def save(program: IntegerProgram, path: str | Path, *, own: bool = False) -> None:
    """Write the program to one file, `own` where it is one of a folder of ours."""
    write_atomically(Path(path), to_bytes(program), own=own)


def to_bytes(program: IntegerProgram) -> bytes:
    """What the program's file holds; the same program gives the same bytes."""
    tensors: dict[str, np.ndarray] = {}
    parts = {name: _store(name, getattr(program, name), tensors) for name in KINDS}
    try:
        provenance = json.loads(to_json(program.provenance))
    except (TypeError, ValueError, RecursionError) as error:
        raise ProgramError(f"provenance must be plain JSON to be saved: {error}") from error
    schema = SCHEMA if any(key in tensors for key in NEWER) else 1
    facts = {"format": FORMAT, "schema": schema, "steps": program.steps, "parts": parts, "provenance": provenance}
    header = {**facts, "sha256": _digest(tensors, facts)}
    # One metadata key: the order of several is not defined, and equal programs must give equal files.
    data = serialise(tensors, metadata={"qornn": json.dumps(header, sort_keys=True)})
    header_bytes = int.from_bytes(data[:8], "little")
    if header_bytes > HEADER_LIMIT or len(data) > FILE_LIMIT:
        raise ProgramError(
            f"a program file holds at most {FILE_LIMIT} bytes, {HEADER_LIMIT} of them provenance and names; "
            f"this one would have {len(data)}, {header_bytes} of them provenance and names"
        )
    return data


def load(path: str | Path) -> IntegerProgram:
    """The program in a file written by `save`; anything else is a ProgramError that says what it is."""
    return from_bytes(_read(Path(path)), Path(path))


def from_bytes(data: bytes, path: Path) -> IntegerProgram:
    """The program in the contents of a file; errors speak of its path."""
    try:
        header = _header(path, data)
        tensors = parse(data)
        facts = {key: value for key, value in header.items() if key != "sha256"}
        if header.get("sha256") != _digest(tensors, facts):
            raise ValueError("its contents do not match its digest")
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ProgramError(_damaged(path, str(error))) from error
    _refuse_retired(path, facts)
    try:
        return _restore(tensors, facts)
    except (QornnError, RecursionError) as error:
        raise ProgramError(f"{path} is not a valid program: {error}") from error


def _store(name: str, part: Any, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """The part's kind and numbers; its arrays go to the tensors."""
    kind = next((kind for kind, cls in KINDS[name].items() if type(part) is cls), None)
    if kind is None:
        raise ProgramError(f"{name} of type {type(part).__name__} cannot be saved")
    arrays, packed = ARRAYS.get(type(part), {}), packed_fields(type(part), getattr(part, "bits", None))
    numbers: dict[str, Any] = {"kind": kind}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name in packed:
            numbers[shape_key(field.name)] = list(value.shape)
            tensors[f"{name}.{field.name}"] = stored(part, field.name)
        elif field.name in arrays:
            if value is not None:
                tensors[f"{name}.{field.name}"] = value
        else:
            numbers[field.name] = value
    return numbers


def _refuse_retired(path: Path, facts: Mapping[str, Any]) -> None:
    parts = facts.get("parts")
    W = parts.get("W") if isinstance(parts, dict) else None
    if isinstance(W, dict) and W.get("kind") == RETIRED:
        raise ProgramError(f"{path} was made by qornn 0.1; open it with 0.1, the last to know a W of kind {RETIRED}")


def _restore(tensors: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> IntegerProgram:
    if facts.keys() != {"format", "schema", "steps", "parts", "provenance"}:
        raise ProgramError(f"it should say format, schema, steps, parts and provenance, not {brief(facts)}")
    parts = facts["parts"]
    if not isinstance(parts, dict) or parts.keys() != KINDS.keys():
        raise ProgramError(f"its parts should be {', '.join(KINDS)}, not {brief(parts)}")
    left = dict(tensors)
    if facts["schema"] == 1 and (newer := [key for key in NEWER if key in left]):
        raise ProgramError(f"schema 1 holds no {', '.join(newer)}")
    made = {name: _restore_part(name, parts[name], left) for name in KINDS}
    if left:
        raise ProgramError(f"tensors that no part has: {brief(left)}")
    if facts["schema"] == 1 and isinstance(made["input"], Samples):
        made["input"] = _with_raw_scale(made["input"], facts["provenance"])
    return IntegerProgram(**made, steps=facts["steps"], provenance=facts["provenance"])


def _with_raw_scale(part: Samples, provenance: Any) -> Samples:
    """In schema 1 only the provenance of an estimator's program says what a raw unit is."""
    said = provenance.get("input") if isinstance(provenance, dict) else None
    scales = said.get("raw_scale") if isinstance(said, dict) else None
    if not isinstance(scales, list) or not all(type(scale) is float for scale in scales):
        return part
    try:
        return replace(part, raw_scale=np.array(scales))
    except ProgramError:
        return part


def _restore_part(name: str, numbers: Any, tensors: dict[str, np.ndarray]) -> Any:
    """The part of that kind, from its numbers and its arrays, which are taken from the tensors."""
    kind = numbers.get("kind") if isinstance(numbers, dict) else None
    cls = KINDS[name].get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ProgramError(f"{name} is of no kind known here ({', '.join(KINDS[name])}): {brief(kind)}")
    given = {key: value for key, value in numbers.items() if key != "kind"}
    arrays = _take_arrays(name, cls, given, tensors)
    wanted = {field.name: field.default for field in fields(cls) if field.name not in ARRAYS.get(cls, {})}
    needed = {key for key, default in wanted.items() if default is MISSING}
    if not needed <= given.keys() <= wanted.keys():  # a file from before a number existed means its default
        raise ProgramError(f"{name} should say {', '.join(sorted(wanted)) or 'nothing'}, not {brief(given)}")
    return cls(**given, **arrays)


def _take_arrays(name: str, cls: type, numbers: dict[str, Any], tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """The arrays of a part, taken from the tensors, and the shapes of those that are packed from the numbers."""
    arrays: dict[str, Any] = {}
    types = ARRAYS.get(cls, {})
    defaults = {field.name: field.default for field in fields(cls)}
    packed = packed_fields(cls, numbers.get("bits", defaults.get("bits")))
    for field, kind in types.items():
        key, kind = f"{name}.{field}", np.dtype(np.uint8 if field in packed else kind)
        if key in tensors:
            array = tensors.pop(key)
            if array.dtype != kind:
                raise ProgramError(f"{key} must be {kind}, got {array.dtype}")
            shape = numbers.pop(shape_key(field), None) if field in packed else None
            arrays[field] = restored(name, field, array, shape, numbers) if field in packed else array
        elif defaults[field] is MISSING:
            raise ProgramError(f"tensor {key} is missing")
    return arrays


def _read(path: Path) -> bytes:
    try:
        if not path.exists():
            raise ProgramError(f"no program at {path}; `qornn lower` makes one of a trained run")
        if not path.is_file():  # a folder, or a pipe that would never end
            raise ProgramError(f"{path} is not a file; a program is one file, as `qornn lower` writes it")
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > FILE_LIMIT:
                raise ProgramError(f"{path} is larger than any program ({FILE_LIMIT} bytes)")
            return file.read()
    except (OSError, ValueError) as error:
        raise ProgramError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def _header(path: Path, data: bytes) -> dict[str, Any]:
    """The JSON inside, of a schema that can be read."""
    length = int.from_bytes(data[:8], "little")
    if data[8:9] != b"{" or length > HEADER_LIMIT:
        raise ProgramError(f"{path} is not a program: it does not begin as a safetensors file of qornn does")
    if length > len(data) - 8:
        raise ProgramError(_damaged(path, f"it ends after {len(data)} bytes, inside its own header"))
    try:
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__")
        header = json.loads(metadata["qornn"]) if metadata and "qornn" in metadata else None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ProgramError(_damaged(path, f"its header cannot be read: {error}")) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        if isinstance(header, dict) and "format" not in header and "schema" in header:
            raise ProgramError(f"{path} is a training checkpoint, not a program; `qornn lower` makes one of its run")
        raise ProgramError(f"{path} is a safetensors file, but not a program of qornn")
    schema = header.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise ProgramError(f"{path} was made by a newer qornn, schema {schema}; this one reads up to {SCHEMA}: upgrade")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise ProgramError(_damaged(path, f"schema {brief(schema)}, where a number up to {SCHEMA} should be"))
    return header


def _digest(tensors: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name!a}|{tensor.dtype}|{tensor.shape}|".encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()


def _damaged(path: Path, reason: str) -> str:
    return f"{path} is damaged or truncated ({reason}); copy it again, or make it again with `qornn lower`"
