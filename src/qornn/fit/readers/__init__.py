"""From a path to a Dataset. A new format is one file here and one line in kinds.py."""

from qornn.fit.readers.kinds import read

__all__ = ["read"]
