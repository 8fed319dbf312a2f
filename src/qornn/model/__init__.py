"""The equations as torch modules."""

from qornn.model.network import ModReLU, OrthogonalRecurrence, OrthogonalRNN

__all__ = ["ModReLU", "OrthogonalRNN", "OrthogonalRecurrence"]
