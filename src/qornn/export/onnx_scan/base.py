"""The ONNX nodes of every kind of layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qornn.export.onnx_scan.graph import Graph
from qornn.export.onnx_scan.inputs import Read


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """What adds the nodes of a layer; constants were added outside the Scan.

    `drive` and `skip` may be asked for all steps at once, (B, T, …) in place of (B, …), and so may the `step` of a
    layer that keeps no state: such a layer gives back the state that it was given.
    """

    drive: Callable[[Graph, str], str]  # of what it reads
    step: Callable[[Graph, str, str], tuple[str, str]]  # of the state and of the drive: the next state, and the output
    skip: Callable[[Graph, Read, str], str] | None = None  # of what the layer before read: added to the drive
