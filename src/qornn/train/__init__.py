"""Training: the loop, optimizers, checkpoints, logs, runs."""

import sys
from types import ModuleType
from typing import Any

from qornn.train.loop import Interrupted, Trainer
from qornn.train.run import Run, load, resume, train

__all__ = ["Interrupted", "Run", "Trainer", "load", "resume", "train"]


class _CallableRoom(ModuleType):
    """`qornn.train` is this room and, in the public surface, a function; importing the one must not hide the other."""

    def __call__(self, *args: Any, **options: Any) -> Run:
        return train(*args, **options)


sys.modules[__name__].__class__ = _CallableRoom
