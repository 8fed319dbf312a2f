"""The kinds of layers, one file each."""

from qornn.integer.layers.base import Layer, sources
from qornn.integer.layers.recurrent import Recurrent

LAYERS: dict[str, type[Layer]] = {kind.kind: kind for kind in (Recurrent,)}

__all__ = ["LAYERS", "Layer", "Recurrent", "sources"]
