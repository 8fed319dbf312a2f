"""Programs run by the C engine, or by `simulate` where it was not built: the same bits."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from qornn.errors import SettingsError, unknown
from qornn.integer import simulate as law
from qornn.integer.engine.library import KERNELS, library
from qornn.integer.engine.model import Model, model_of
from qornn.integer.layout import HOST
from qornn.integer.program import IntegerProgram


def run(
    program: IntegerProgram,
    x: Any,
    lengths: Any = None,
    *,
    saturate: bool = False,
    threads: int | None = None,
    layout: str = "bytes",
    kernel: str | None = None,
) -> np.ndarray:
    """Outputs (B, n_o), or (B, T, n_o) when every step is read out, of raw integers (B, T, n_i) or codes (B, T).

    The sequences are shared among threads, as many as there are processors unless said. `layout` and `kernel` choose
    how it is computed, never what.
    """
    if lengths is None and (found := _at_once("y", program, x, threads, layout, kernel)) is not None:
        return found
    raw, lengths, clipped = _accept(program, x, lengths, saturate, threads)
    law.warn_clipped(clipped, raw.size)
    if not runs_native(program):
        return law.simulate(program, raw, lengths)[1]
    return _native("y", program, raw, lengths, threads, layout, kernel)[0]


def states(
    program: IntegerProgram,
    x: Any,
    lengths: Any = None,
    *,
    saturate: bool = False,
    threads: int | None = None,
    layout: str = "bytes",
    kernel: str | None = None,
) -> np.ndarray:
    """Every state of the last layer that has any, zero past a sequence's end.  # (B, T, n_h) int16"""
    if lengths is None and (found := _at_once("states", program, x, threads, layout, kernel)) is not None:
        return found
    raw, lengths, clipped = _accept(program, x, lengths, saturate, threads)
    law.warn_clipped(clipped, raw.size)
    if not runs_native(program):
        return law.simulate(program, raw, lengths)[0]
    return _native("states", program, raw, lengths, threads, layout, kernel)[0]


def _accept(
    program: IntegerProgram, x: Any, lengths: Any, saturate: bool, threads: Any
) -> tuple[np.ndarray, np.ndarray, int]:
    """What was given, checked, and how many inputs were clipped."""
    if threads is not None and (not isinstance(threads, Integral) or int(threads) < 1):
        raise SettingsError(f"threads must be a whole number of at least 1, got {threads!r}")
    return program.accept(as_array(x), None if lengths is None else as_array(lengths, "lengths"), saturate=saturate)


def as_array(x: Any, name: str = "x") -> np.ndarray:
    """An array. Lists of unequal lengths are refused."""
    try:
        return np.asarray(x)
    except ValueError as error:
        raise SettingsError(
            f"{name} is ragged, its rows differ in length; pad the sequences to one length and give the true ones as "
            "lengths, one number per sequence"
        ) from error


def _at_once(
    wanted: str, program: IntegerProgram, x: Any, threads: Any, layout: str, kernel: str | None
) -> np.ndarray | None:
    """The result of x as it is, checked by C. None if some input must be refused or clipped.

    To look at a short sequence in Python first takes as long as C takes for all of it.
    """
    plain = type(x) is np.ndarray and x.dtype == np.int16 and x.size and x.shape[2:] == program.input.shape
    if not plain or (threads is not None and (type(threads) is not int or threads < 1)) or not runs_native(program):
        return None
    found, fine = _native(wanted, program, x, _all(*x.shape[:2]), threads, layout, kernel)
    return found if fine else None


@lru_cache(maxsize=64)
def _all(B: int, T: int) -> np.ndarray:
    """The lengths of whole sequences."""
    return np.full(B, T)


def runs_native(program: IntegerProgram) -> bool:
    """Whether the C engine runs it: it was built, and has every part."""
    return library() is not None and _has_every_part(program)


@lru_cache(maxsize=8)
def _has_every_part(program: IntegerProgram) -> bool:
    return program.native


def in_use(program: IntegerProgram | None = None) -> str:
    """The engine in use: "native (vnni | avx2 | portable)" or "numpy", for this program or an ordinary one."""
    engine = library()
    if engine is None or (program is not None and not runs_native(program)):
        return "numpy"
    best = engine.qornn_kernel((Model.any() if program is None else model_of(program, "bytes")).address, -1)
    return f"native ({KERNELS[best]})"


def available(program: IntegerProgram, layout: str) -> list[str]:
    """The kernels that can really run this program on this machine."""
    engine = library()
    if engine is None or not program.native:
        return []
    model = model_of(program, layout)
    return [k for i, k in enumerate(KERNELS) if engine.qornn_kernel(model.address, i) == i]


def address(array: np.ndarray) -> int:
    """The address of the array, in a third of the time of array.ctypes.data."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # closed to writing, or empty
        return int(array.ctypes.data)


def _native(
    wanted: str,
    program: IntegerProgram,
    raw: np.ndarray,
    lengths: np.ndarray,
    threads: int | None,
    layout: str,
    kernel: str | None,
) -> tuple[np.ndarray, bool]:
    """The states or the outputs (y), and whether every input was a code or in the declared range.

    Each thread has a share of the sequences: ctypes lets go of the interpreter meanwhile.
    """
    if layout not in HOST:
        raise unknown("layout", layout, HOST)
    if kernel is not None and kernel not in KERNELS:
        raise unknown("kernel", kernel, KERNELS)
    rows = raw.shape[:2] if wanted == "states" or program.readout.every else raw.shape[:1]
    width, dtype = (program.n_o, program.readout.dtype) if wanted == "y" else (program.n_shown, np.int16)
    found = np.empty((*rows, width), dtype)
    model, number, B = model_of(program, layout), -1 if kernel is None else KERNELS.index(kernel), len(raw)
    raw, lengths = np.ascontiguousarray(raw, np.int16), np.ascontiguousarray(lengths, np.int64)
    count = min(int(threads or os.cpu_count() or 1), B)
    if count == 1:
        return found, _share(model, number, raw, lengths, wanted, found)
    edges = np.linspace(0, B, count + 1).astype(int)
    shares = [(raw[a:b], lengths[a:b], wanted, found[a:b]) for a, b in pairwise(edges)]
    with ThreadPoolExecutor(count) as pool:
        return found, all(list(pool.map(lambda share: _share(model, number, *share), shares)))


def _share(model: Model, kernel: int, x: np.ndarray, lengths: np.ndarray, wanted: str, found: np.ndarray) -> bool:
    """Fill `found`; whether every input was a code or in the declared range."""
    engine, desk = library(), model.take_desk()
    assert engine is not None
    batch, into = desk.batch, address(found)
    batch.B, batch.T, batch.x, batch.lengths = len(x), x.shape[1], address(x), address(lengths)
    batch.y, batch.states = (into, None) if wanted == "y" else (None, into)
    failed = engine.qornn_run(model.address, desk.address, kernel)
    fine = not failed and not batch.outside
    model.give_desk(desk)
    return fine
