"""The recurrence as a pure function of inputs and weights."""

from qornn.recurrence.reference import ACTIVATIONS, recurrence

__all__ = ["ACTIVATIONS", "recurrence"]
