"""A program on disk: one safetensors file, weights packed at their bits; loading checks all and executes nothing."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialise

from qornn._io.files import to_json, write_atomically
from qornn.errors import ProgramError, QornnError
from qornn.integer.check import of_layer
from qornn.integer.inputs import INPUTS
from qornn.integer.layers import LAYERS, Layer
from qornn.integer.packing import brief
from qornn.integer.program import LAYERS_LIMIT, IntegerProgram
from qornn.integer.readout import READOUTS
from qornn.integer.storage_old import as_one_layer, refuse_retired

FORMAT: Final = "qornn-program"
# 4: no samples that are remembered; 3: no rotations, mixes, means or windows; 1 and 2: of one recurrent layer
# (storage_old.py)
SCHEMA: Final = 5
LAYERED: Final = 3  # the first of a list of layers
HEADER_LIMIT: Final = 2**20  # bytes of names, numbers and provenance: a thousandth of this is usual
FILE_LIMIT: Final = 2**30
Kinds = Mapping[str, type[Any]]
FACTS: Final = ("format", "schema", "input", "layers", "readout", "provenance")


def save(program: IntegerProgram, path: str | Path, *, own: bool = False) -> None:
    """Write the program to one file, `own` where it is one of a folder of ours."""
    write_atomically(Path(path), to_bytes(program), own=own)


def to_bytes(program: IntegerProgram) -> bytes:
    """What the program's file holds; the same program gives the same bytes."""
    tensors: dict[str, np.ndarray] = {}
    facts: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "input": _store("input", program.input, INPUTS, tensors),
        "layers": [_store_layer(f"layers.{i}", layer, tensors) for i, layer in enumerate(program.layers)],
        "readout": _store("readout", program.readout, READOUTS, tensors),
    }
    try:
        facts["provenance"] = json.loads(to_json(program.provenance))
    except (TypeError, ValueError, RecursionError) as error:
        raise ProgramError(f"provenance must be plain JSON to be saved: {error}") from error
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
    refuse_retired(path, facts)
    try:
        return _restore(tensors, facts)
    except (QornnError, RecursionError) as error:
        raise ProgramError(f"{path} is not a valid program: {error}") from error


def _store_layer(name: str, layer: Layer, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """The layer's kind, its own numbers, and what each of its parts is; its arrays go to the tensors."""
    found = _store(name, layer, LAYERS, tensors)
    for part, kinds in layer.parts.items():
        if found[part] is not None:
            found[part] = _store(f"{name}.{part}", found[part], kinds, tensors)
    return found


def _names(layer: type[Any]) -> list[str]:
    """What a file says of such a layer, beside its arrays."""
    return [field.name for field in fields(layer) if field.name not in layer.arrays]


def _store(name: str, part: Any, kinds: Kinds, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """The part's kind and numbers; its arrays go to the tensors."""
    _kind(name, part, kinds)
    packed, numbers = part.packed_at(getattr(part, "bits", None)), {"kind": part.kind}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name in packed:
            numbers[_shape_key(field.name)] = list(value.shape)
            tensors[f"{name}.{field.name}"] = packed[field.name].stored(value, getattr(part, "bits", 1))
        elif field.name in part.arrays:
            if value is not None:
                tensors[f"{name}.{field.name}"] = value
        else:
            numbers[field.name] = value
    return numbers


def _kind(name: str, part: Any, kinds: Kinds) -> None:
    if kinds.get(getattr(part, "kind", "")) is not type(part):
        raise ProgramError(f"{name} of type {type(part).__name__} cannot be saved")


def _shape_key(field: str) -> str:
    """Where the file says the shape of a packed field."""
    return "shape" if field == "integers" else field


def _restore(tensors: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> IntegerProgram:
    if facts["schema"] < LAYERED:
        tensors, facts = as_one_layer(tensors, facts)
    if facts.keys() != set(FACTS):
        raise ProgramError(f"it must have the fields {', '.join(FACTS)}, got {brief(facts)}")
    layers = facts["layers"]
    if not isinstance(layers, list) or not 1 <= len(layers) <= LAYERS_LIMIT:
        raise ProgramError(f"its layers should be a list of 1 to {LAYERS_LIMIT}, not {brief(layers)}")
    left = dict(tensors)
    made = IntegerProgram(
        input=_restore_part("input", facts["input"], INPUTS, left),
        layers=tuple(_restore_layer(i, layer, left, len(layers)) for i, layer in enumerate(layers)),
        readout=_restore_part("readout", facts["readout"], READOUTS, left),
        provenance=facts["provenance"],
    )
    if left:
        raise ProgramError(f"tensors that belong to no part: {brief(left)}")
    return made


def _restore_layer(index: int, facts: Any, tensors: dict[str, np.ndarray], count: int) -> Any:
    """The layer; its parts are called by their own names, and the layer is named where there are several."""
    cls = _class(f"layer {index}", facts, LAYERS)
    given = {part: value for part, value in facts.items() if part != "kind"}
    if given.keys() != set(_names(cls)):
        raise ProgramError(f"layer {index} should have {', '.join(_names(cls))}, not {brief(given)}")
    own = f"layers.{index}."
    mine = {name.removeprefix(own): tensors.pop(name) for name in list(tensors) if name.startswith(own)}
    with of_layer(index, count):
        parts = {
            part: _restore_part(part, given[part], kinds, mine)
            for part, kinds in cls.parts.items()
            if given[part] is not None or part not in _optional(cls)
        }
        made = cls(**(given | parts | _take_arrays("", cls, {}, mine)))
    tensors |= {f"{own}{name}": array for name, array in mine.items()}  # that no part has
    return made


def _optional(layer: type[Any]) -> set[str]:
    """The parts that a layer may lack."""
    return {field.name for field in fields(layer) if field.default is None}


def _class(name: str, facts: Any, kinds: Kinds) -> Any:
    """The class of that kind."""
    kind = facts.get("kind") if isinstance(facts, dict) else None
    cls = kinds.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ProgramError(f"{name} is of an unknown kind, {brief(kind)}; known kinds are {', '.join(kinds)}")
    return cls


def _restore_part(name: str, facts: Any, kinds: Kinds, tensors: dict[str, np.ndarray]) -> Any:
    """The part of that kind, from its numbers and its arrays, which are taken from the tensors."""
    cls = _class(name, facts, kinds)
    given = {key: value for key, value in facts.items() if key != "kind"}
    arrays = _take_arrays(f"{name}.", cls, given, tensors)
    wanted = {field.name: field.default for field in fields(cls) if field.name not in cls.arrays}
    needed = {key for key, default in wanted.items() if default is MISSING}
    if not needed <= given.keys() <= wanted.keys():  # a file from before a number existed means its default
        raise ProgramError(f"{name} must have the fields {', '.join(sorted(wanted)) or 'none'}, got {brief(given)}")
    return cls(**given, **arrays)


def _take_arrays(prefix: str, cls: Any, numbers: dict[str, Any], tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """The arrays of a part, taken from the tensors, and the shapes of those that are packed from the numbers."""
    arrays: dict[str, Any] = {}
    defaults = {field.name: field.default for field in fields(cls)}
    packed = cls.packed_at(numbers.get("bits", defaults.get("bits")))
    for field, kind in cls.arrays.items():
        key, dtype = f"{prefix}{field}", np.dtype(np.uint8 if field in packed else kind)
        if key in tensors:
            array = tensors.pop(key)
            if array.dtype != dtype:
                raise ProgramError(f"{key} must be {dtype}, got {array.dtype}")
            if field in packed:
                shape = numbers.pop(_shape_key(field), None)
                whose = prefix.removesuffix(".") if field == "integers" else key
                array = packed[field].restored(whose, array, shape, numbers)
            arrays[field] = array
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
