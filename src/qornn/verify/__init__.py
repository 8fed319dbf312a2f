"""Exported C, compiled and replayed: on this machine, or on an emulated microcontroller that also counts.

>>> from qornn.verify import TARGETS
>>> list(TARGETS)
['host', 'cortex-m0', 'cortex-m4', 'cortex-m55', 'rv32', 'atmega328p']
"""

from qornn.verify.build import VerifyError
from qornn.verify.replay import Result, measure, verify
from qornn.verify.targets import TARGETS

__all__ = ["TARGETS", "Result", "VerifyError", "measure", "verify"]
