"""The kinds of layers, one file each."""

from qornn.integer.layers.base import Layer, sources
from qornn.integer.layers.mix import Mix
from qornn.integer.layers.recurrent import Recurrent
from qornn.integer.layers.rotations import Rotations

LAYERS: dict[str, type[Layer]] = {kind.kind: kind for kind in (Recurrent, Rotations, Mix)}

__all__ = ["LAYERS", "Layer", "Mix", "Recurrent", "Rotations", "sources"]
