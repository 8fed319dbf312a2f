"""Programs run by the C engine of runtime/ through ctypes, or by `simulate` where it was not built: the same bits."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from qornn.errors import SettingsError, unknown
from qornn.integer import simulate as law
from qornn.integer.abi import LAYOUTS, Model
from qornn.integer.program import IntegerProgram

NAME: Final = "libqornn_runtime." + {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
KERNELS: Final = ("portable", "avx2", "vnni")  # as in qornn_host.h

_pointer = ctypes.c_void_p


class _Batch(ctypes.Structure):  # qornn_batch in qornn_host.h
    _fields_ = (
        ("B", ctypes.c_int64),
        ("T", ctypes.c_int64),
        *((name, _pointer) for name in ("x", "lengths", "h", "states", "y", "work")),
    )


def library_path() -> Path | None:
    """The shared library, or None in an install that found no compiler.

    QORNN_RUNTIME_LIBRARY names another build. It is taken as it is: a wrong path must fail when loaded, not fall back.
    """
    if named := os.environ.get("QORNN_RUNTIME_LIBRARY"):
        return Path(named)
    # The sources' folder; an editable install keeps the library in site-packages, and both are on the package's path.
    spec = importlib.util.find_spec("qornn.runtime")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return next((path for folder in folders if (path := Path(folder, NAME)).is_file()), None)


@cache
def library() -> ctypes.CDLL | None:
    """The engine, or None where the package was installed without one."""
    path = library_path()
    if path is None:
        return None
    found = ctypes.CDLL(str(path))
    found.qornn_work_bytes.argtypes = (_pointer,)
    found.qornn_work_bytes.restype = ctypes.c_size_t
    found.qornn_model_bytes.restype = ctypes.c_size_t
    found.qornn_kernel.argtypes = (_pointer, ctypes.c_int)
    found.qornn_run.argtypes = (_pointer, _pointer, ctypes.c_int)
    assert found.qornn_model_bytes() == Model.size(), "model.py no longer mirrors qornn_host.h"
    return found


@lru_cache(maxsize=8)  # bounded: it keeps the programs alive, which take no weak references
def _model(program: IntegerProgram, layout: str) -> Model:
    """The program in C arrays, made once."""
    return Model(program, layout)


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
    raw, lengths, clipped = program.accept(x, lengths, saturate=saturate)
    law.warn_clipped(clipped, raw.size)
    if not runs_native(program):
        return law.simulate(program, raw, lengths)[1]
    shape = (len(raw), program.n_o) if program.steps == "last" else (*raw.shape[:2], program.n_o)
    y = np.empty(shape, program.readout.outputs(np.zeros(program.n_h, np.int16)).dtype)
    _call(program, raw, lengths, y=y, threads=threads, layout=layout, kernel=kernel)
    return y


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
    """Every state, zero past a sequence's end.  # (B, T, n_h) int16"""
    raw, lengths, clipped = program.accept(x, lengths, saturate=saturate)
    law.warn_clipped(clipped, raw.size)
    if not runs_native(program):
        return law.simulate(program, raw, lengths)[0]
    h = np.empty((*raw.shape[:2], program.n_h), np.int16)
    _call(program, raw, lengths, states=h, threads=threads, layout=layout, kernel=kernel)
    return h


def runs_native(program: IntegerProgram) -> bool:
    """Whether the C engine runs it: it was built, and it knows this kind of W."""
    return library() is not None and program.W.kind == "dense"


def in_use(program: IntegerProgram | None = None) -> str:
    """What runs programs here: "native (vnni | avx2 | portable)" or "numpy"; this program, or any ordinary one."""
    engine = library()
    if engine is None or (program is not None and not runs_native(program)):
        return "numpy"
    best = engine.qornn_kernel((Model.any() if program is None else _model(program, "bytes")).address, -1)
    return f"native ({KERNELS[best]})"


def available(program: IntegerProgram, layout: str) -> list[str]:
    """The kernels that can really run this program on this machine."""
    engine, model = library(), _model(program, layout)
    return [] if engine is None else [k for i, k in enumerate(KERNELS) if engine.qornn_kernel(model.address, i) == i]


class Session:
    """A stream of one program: one sample in, one answer out, constant memory."""

    def __init__(self, program: IntegerProgram) -> None:
        self.program = program
        self._h = np.zeros((1, program.n_h), np.int16)

    @property
    def h(self) -> np.ndarray:
        """The current state, in integers.  # (n_h,) int16"""
        return self._h[0].copy()

    def reset(self) -> None:
        """Back to the zero state, where a sequence starts."""
        self._h[:] = 0

    def step(self, x_t: Any, *, saturate: bool = False) -> np.ndarray:
        """Take one sample (a code, or n_i raw integers) and give the outputs of the state after it.  # (n_o,)"""
        program = self.program
        raw, lengths, clipped = program.accept(np.asarray(x_t)[None, None], saturate=saturate)
        law.warn_clipped(clipped, raw.size)
        if not runs_native(program):
            drive = law.input_sums(program, raw)[:, 0]
            self._h = law.step(program, self._h.astype(np.int64), drive).astype(np.int16)
            return program.readout.outputs(self._h)[0]
        y = np.empty((1, program.n_o), np.float32 if program.readout.V.dtype == np.float32 else np.int32)
        _call(program, raw, lengths, h=self._h, y=y, threads=1)
        return y[0]


def _call(
    program: IntegerProgram,
    raw: np.ndarray,
    lengths: np.ndarray,
    *,
    h: np.ndarray | None = None,
    states: np.ndarray | None = None,
    y: np.ndarray | None = None,
    threads: int | None = None,
    layout: str = "bytes",
    kernel: str | None = None,
) -> None:
    """Fill the arrays given, a share of the batch in each thread: ctypes lets go of the interpreter meanwhile."""
    if layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)
    if kernel is not None and kernel not in KERNELS:
        raise unknown("kernel", kernel, KERNELS)
    if threads is not None and threads < 1:
        raise SettingsError(f"threads must be at least 1, got {threads}")
    engine, model = library(), _model(program, layout)
    assert engine is not None
    raw, lengths = np.ascontiguousarray(raw, np.int16), np.ascontiguousarray(lengths, np.int64)
    wanted = -1 if kernel is None else KERNELS.index(kernel)
    room = engine.qornn_work_bytes(model.address)

    def part(share: slice) -> int:
        def address(array: np.ndarray | None) -> int | None:
            return None if array is None else array[share].ctypes.data

        work = np.empty(room, np.uint8)
        batch = _Batch(
            B=len(raw[share]),
            T=raw.shape[1],
            x=address(raw),
            lengths=address(lengths),
            h=address(h),
            states=address(states),
            y=address(y),
            work=work.ctypes.data,
        )
        return engine.qornn_run(model.address, ctypes.addressof(batch), wanted)

    B = len(raw)
    count = min(threads or os.cpu_count() or 1, B)
    if count == 1:
        failed = [part(slice(0, B))]
    else:
        edges = np.linspace(0, B, count + 1).astype(int)
        with ThreadPoolExecutor(count) as pool:
            failed = list(pool.map(part, (slice(a, b) for a, b in pairwise(edges))))
    assert not any(failed), "accept() has checked the codes"
