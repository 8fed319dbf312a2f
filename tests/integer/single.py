"""Programs of one recurrent layer, from their parts."""

from dataclasses import replace

import numpy as np

from qornn.integer.layers import Recurrent
from qornn.integer.program import IntegerProgram

LAYER = ("W", "U", "state", "activation", "requant")


def single(*, input, readout, steps=None, provenance=None, **layer):
    """The program of these parts; `steps` says which are read out, where the readout does not."""
    readout = readout if steps is None else replace(readout, steps=steps)
    facts = {} if provenance is None else {"provenance": provenance}
    return IntegerProgram(input=input, layers=(Recurrent(**layer),), readout=readout, **facts)


def changed(program, **changes):
    """The program with other parts."""
    parts = {name: getattr(program, name) for name in (*LAYER, "input", "readout", "provenance")}
    return single(**{**parts, **changes})


def input_sums(program, raw):
    """Σ U_i x_i of codes (...) or raw samples (..., n_i).  # (..., n_h)"""
    x = program.input.integers(raw)
    U = program.U.integers.astype(np.int64)
    return U.T[x] if program.input.shape == () else x @ U.T


def preactivation(program, h, drive):
    """What the activation sees, the bias of a linear recurrence included."""
    z = program.requant.combined(program.W.product(h), drive, h)
    return z + program.bias if program.activation.kind == "identity" and program.bias is not None else z
