"""Program files that were damaged, or made to mislead with the right digest: an error in words, or a valid program."""

from __future__ import annotations

import struct
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "integer"))  # program_files.py and strategies.py
from program_files import bases, sealed, split
from strategies import random_input, same

from qornn.errors import ProgramError
from qornn.integer.readout import FloatReadout
from qornn.integer.simulate import simulate
from qornn.integer.storage import load, save

LONGEST = 5000  # characters of a message about someone else's file
_NUMBERS = [None, True, 0, -1, 1, 2, 7, 9, 2**31, 2**63, 10**400, -0.5, 0.5, 1e308, 1e-320]
_NAMES = ["", "dense", "cycle", "last", "x" * 999]
_NESTED = [[], [1], [2, 2], [3, 3.0], [10**9, 10**9], [-3, -3], [[[]]], {}]
_KINDS = [{"kind": "dense"}, {"kind": "cycle", "units": 3}, {"kind": []}]
JUNK = [*_NUMBERS, *_NAMES, *_NESTED, *_KINDS]  # what a hostile writer puts in place of a value


def mutate(data, rng):
    """Flip, overwrite, truncate, insert, delete, swap or repeat."""
    data, at = bytearray(data), int(rng.integers(len(data)))
    header = 8 + struct.unpack("<Q", data[:8])[0]
    if rng.random() < 0.3:
        at = int(rng.integers(header, len(data)))  # the tensors are small beside the header
    length = int(rng.integers(1, 9))
    kind = rng.integers(8)
    if kind == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        data[at : at + length] = rng.bytes(len(data[at : at + length]))
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        data[at:at] = rng.bytes(length)
    elif kind == 4:
        del data[at : at + length]
    elif kind == 5:
        other = int(rng.integers(len(data)))
        data[at], data[other] = data[other], data[at]
    elif kind == 6:
        data[at] = rng.choice(list(b'0123456789-.eE"{}[],: \x00\xff'))
    else:
        data[rng.integers(8)] = rng.integers(256)  # the length of the header
    return bytes(data)


def tamper(value, rng):
    """One leaf, or one whole branch, replaced, removed or added."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and rng.random() < 0.9:  # layers
        at = rng.integers(len(value))
        return [*value[:at], tamper(value[at], rng), *value[at + 1 :]]
    if not isinstance(value, dict) or not value or rng.random() < 0.1:
        return JUNK[rng.integers(len(JUNK))]
    value = dict(value)
    key = sorted(value)[rng.integers(len(value))]
    if (what := rng.random()) < 0.1:
        del value[key]
    elif what < 0.2:
        value[f"{key}x"] = JUNK[rng.integers(len(JUNK))]
    else:
        value[key] = tamper(value[key], rng)
    return value


def tamper_tensors(tensors, rng):
    """One tensor removed, renamed, of another shape or type, or of other numbers."""
    tensors = dict(tensors)
    name = sorted(tensors)[rng.integers(len(tensors))]
    tensor, what = tensors[name], rng.integers(6)
    if what == 0:
        del tensors[name]
    elif what == 1:
        tensors[f"{name}x"] = tensor
    elif what == 2:
        tensors[name] = np.append(tensor, tensor.ravel()[:1])
    elif what == 3:
        with warnings.catch_warnings(action="ignore"):  # of casts that cannot hold the number
            tensors[name] = tensor.astype(rng.choice(["int8", "uint8", "int16", "int64", "float32", "float64", "bool"]))
    elif what == 4:
        tensors[name] = tensor.reshape(-1)[: rng.integers(tensor.size + 1)].copy()
    else:
        random = np.frombuffer(rng.bytes(tensor.nbytes), tensor.dtype).reshape(tensor.shape)
        tensors[name] = np.where(rng.random(tensor.shape) < 0.5, random, tensor)
    return tensors


def hostile(data, rng):
    """The file with one fact or one tensor changed, and the digest that it ought to have; None where none is made."""
    _, facts, tensors = split(data)
    if rng.random() < 0.5:
        facts = {**facts, "layers": tamper(facts["layers"], rng)} if rng.random() < 0.9 else tamper(facts, rng)
    else:
        tensors = tamper_tensors(tensors, rng)
    return sealed(facts, tensors) if isinstance(facts, dict) else None


def load_or_reason(path):
    """The program, or what ProgramError says; any other exception is a failure."""
    try:
        return load(path)
    except ProgramError as error:
        return str(error)


def attack(rng, folder):
    """One file, damaged or hostile."""
    pairs = _saved(folder)
    program, data = pairs[rng.integers(len(pairs))]
    path = folder / "attacked.qornn"
    damaged = rng.random() < 0.5
    changed = mutate(data, rng) if damaged else hostile(data, rng)
    if changed is None:
        return "nothing to write"
    path.write_bytes(changed)
    got = load_or_reason(path)
    if isinstance(got, str):
        assert len(got) < LONGEST, f"a message of {len(got)} characters"
        assert "\n" not in got, f"a message of several lines: {got!r}"
        return "refused"
    assert not damaged or same(got, program), "a damaged file gave another program"
    assert got.accumulator_bound < 2**31
    if not isinstance(got.readout, FloatReadout):
        simulate(got, random_input(got, int(rng.integers(2**31))))
    return "equal" if damaged else "valid"


@cache
def _saved(folder):
    """(program, bytes) of every base program."""
    pairs = []
    for program in bases():
        save(program, folder / "base.qornn")
        pairs.append((program, (folder / "base.qornn").read_bytes()))
    return pairs
