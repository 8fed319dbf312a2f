"""The kinds of W, one file each."""

from qornn.integer.matrices.base import Form, RecurrentMatrix, exact_product, packed_bytes
from qornn.integer.matrices.cycle import Cycle
from qornn.integer.matrices.delay import Delay
from qornn.integer.matrices.dense import Dense, Matrix
from qornn.integer.matrices.hadamard import Hadamard

MATRICES: dict[str, type[RecurrentMatrix]] = {kind.kind: kind for kind in (Dense, Hadamard, Cycle, Delay)}

__all__ = [
    "MATRICES",
    "Cycle",
    "Delay",
    "Dense",
    "Form",
    "Hadamard",
    "Matrix",
    "RecurrentMatrix",
    "exact_product",
    "packed_bytes",
]
