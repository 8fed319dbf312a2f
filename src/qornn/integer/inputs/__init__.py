"""What a program is fed, one file per kind: codes, or raw samples of a device."""

from qornn.integer.inputs.base import Input
from qornn.integer.inputs.codes import Codes
from qornn.integer.inputs.make import make_samples
from qornn.integer.inputs.samples import Samples

INPUTS: dict[str, type[Input]] = {kind.kind: kind for kind in (Codes, Samples)}

__all__ = ["INPUTS", "Codes", "Input", "Samples", "make_samples"]
