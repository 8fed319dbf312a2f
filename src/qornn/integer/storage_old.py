"""The one reader of old files: schemas 1 and 2 hold one recurrent layer, whose parts stand beside the input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from qornn.errors import ProgramError
from qornn.integer.inputs import Samples
from qornn.integer.packing import brief

LAYER: Final = ("W", "U", "state", "activation", "requant")
PARTS: Final = (*LAYER, "input", "readout")
NEWER: Final = ("input.raw_scale",)  # tensors of schema 2
RETIRED: Final = "quaternion"  # a kind of W

Facts = dict[str, Any]


def refuse_retired(path: Path, facts: Mapping[str, Any]) -> None:
    """Refuse a program that only an older version knows."""
    parts = facts.get("parts")
    W = parts.get("W") if isinstance(parts, dict) else None
    if isinstance(W, dict) and W.get("kind") == RETIRED:
        raise ProgramError(
            f"{path} was made by qornn 0.1; open it with 0.1, the last version that supports a W of kind {RETIRED}"
        )


def as_one_layer(tensors: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], Facts]:
    """The same program as this version would have written it."""
    if facts.keys() != {"format", "schema", "steps", "parts", "provenance"}:
        raise ProgramError(f"it must have the fields format, schema, steps, parts and provenance, got {brief(facts)}")
    parts = facts["parts"]
    if not isinstance(parts, dict) or parts.keys() != set(PARTS):
        raise ProgramError(f"its parts should be {', '.join(PARTS)}, not {brief(parts)}")
    if facts["schema"] == 1 and (newer := [key for key in NEWER if key in tensors]):
        raise ProgramError(f"schema 1 holds no {', '.join(newer)}")
    for name, part in parts.items():
        if not isinstance(part, dict):
            raise ProgramError(f"{name} is of an unknown kind: {brief(part)}")
    if "steps" in parts["readout"]:
        raise ProgramError(f"the readout should not say steps in schema {facts['schema']}")
    moved = {f"layers.0.{name}" if name.split(".")[0] in LAYER else name: array for name, array in tensors.items()}
    if facts["schema"] == 1:
        moved |= _raw_scale(parts["input"], facts["provenance"], moved)
    return moved, {
        "format": facts["format"],
        "schema": facts["schema"],
        "input": parts["input"],
        "layers": [{"kind": "recurrent", **{name: parts[name] for name in LAYER}}],
        "readout": {**parts["readout"], "steps": facts["steps"]},
        "provenance": facts["provenance"],
    }


def _raw_scale(part: Facts, provenance: Any, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """In schema 1 only the provenance of an estimator's program says what a raw unit is."""
    said = provenance.get("input") if isinstance(provenance, dict) else None
    scales = said.get("raw_scale") if isinstance(said, dict) else None
    offset = tensors.get("input.offset")
    if part.get("kind") != Samples.kind or not isinstance(scales, list) or offset is None:
        return {}
    if not all(type(scale) is float for scale in scales) or not Samples.can_scale(np.array(scales), offset.shape):
        return {}
    return {"input.raw_scale": np.array(scales, np.float32)}
