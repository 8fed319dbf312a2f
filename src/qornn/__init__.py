"""qornn: recurrent networks whose recurrent matrix is orthogonal and stored on 2 to 8 bits.

Names are looked up on first use, so that `import qornn` stays fast and torch is imported only where it is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {
    "OrthogonalRNN": "qornn.model",
    "OrthogonalRecurrence": "qornn.model",
    "Mix": "qornn.model",
    "ModReLU": "qornn.model",
    "Rotations": "qornn.model",
    "Stack": "qornn.model",
    "train": "qornn.train",
    "resume": "qornn.train",
    "Trainer": "qornn.train",
    "load": "qornn.zoo.opening",
    "lower": "qornn.lowering.lower",
    "calibrate": "qornn.lowering.calibrate",
    "simulate": "qornn.integer.simulate",
    "IntegerProgram": "qornn.integer.program",
    "QORNNClassifier": "qornn.estimators",
    "QORNNRegressor": "qornn.estimators",
    "QornnError": "qornn.errors",
}
_ROOMS = ("export",)  # called as qornn.export.c(...)
__all__ = [
    "IntegerProgram",
    "Mix",
    "ModReLU",
    "OrthogonalRNN",
    "OrthogonalRecurrence",
    "QORNNClassifier",
    "QORNNRegressor",
    "QornnError",
    "Rotations",
    "Stack",
    "Trainer",
    "calibrate",
    "export",
    "load",
    "lower",
    "resume",
    "simulate",
    "train",
]

if TYPE_CHECKING:
    from qornn import export
    from qornn.errors import QornnError
    from qornn.estimators import QORNNClassifier, QORNNRegressor
    from qornn.integer.program import IntegerProgram
    from qornn.integer.simulate import simulate
    from qornn.lowering.calibrate import calibrate
    from qornn.lowering.lower import lower
    from qornn.model import Mix, ModReLU, OrthogonalRecurrence, OrthogonalRNN, Rotations, Stack
    from qornn.train import Trainer, resume, train
    from qornn.zoo.opening import load


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"qornn.{name}")
    raise AttributeError(f"module 'qornn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_ROOMS])
