"""Programs run by the C engine of runtime/ through ctypes, or by `simulate` where it was not built: the same bits."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from itertools import pairwise
from numbers import Integral
from typing import Any, Final

import numpy as np

from qornn._io.libraries import library_path
from qornn.errors import QornnError, SettingsError, unknown
from qornn.integer import simulate as law
from qornn.integer.abi import LAYOUTS, RECURRENTS, Batch, Model, fingerprint
from qornn.integer.parts import Codes, FloatReadout
from qornn.integer.program import IntegerProgram
from qornn.integer.requant import Table

KERNELS: Final = ("portable", "avx2", "vnni")  # as in qornn_host.h
_FEW: Final = 16  # numbers that Python compares faster than numpy does

_pointer = ctypes.c_void_p


@cache
def library() -> ctypes.CDLL | None:
    """The engine, or None where the package was installed without one."""
    path = library_path("runtime")
    if path is None:
        return None
    found = ctypes.CDLL(str(path))
    if not hasattr(found, "qornn_abi") or found.qornn_abi() & 0xFFFFFFFF != fingerprint():
        raise QornnError(
            f"the native engine at {path} is of another version of qornn than its Python files; install again "
            "(pip install --force-reinstall qornn, or `pip install -e .` in a checkout)"
        )
    found.qornn_work_bytes.argtypes = (_pointer,)
    found.qornn_work_bytes.restype = ctypes.c_size_t
    found.qornn_kernel.argtypes = (_pointer, ctypes.c_int)
    found.qornn_run.argtypes = (_pointer, _pointer, ctypes.c_int)
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
    raw, lengths, clipped = _accept(program, x, lengths, saturate, threads)
    law.warn_clipped(clipped, raw.size)
    return _run("y", program, raw, lengths, threads=threads, layout=layout, kernel=kernel)


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
    raw, lengths, clipped = _accept(program, x, lengths, saturate, threads)
    law.warn_clipped(clipped, raw.size)
    return _run("states", program, raw, lengths, threads=threads, layout=layout, kernel=kernel)


def _accept(
    program: IntegerProgram, x: Any, lengths: Any, saturate: bool, threads: Any
) -> tuple[np.ndarray, np.ndarray, int]:
    """What was given, checked, and how many inputs were clipped."""
    if threads is not None and (not isinstance(threads, Integral) or int(threads) < 1):
        raise SettingsError(f"threads must be a whole number of at least 1, got {threads!r}")
    return program.accept(_array(x), None if lengths is None else _array(lengths, "lengths"), saturate=saturate)


def _array(x: Any, name: str = "x") -> np.ndarray:
    """An array; lists of unequal lengths are none."""
    try:
        return np.asarray(x)
    except ValueError as error:
        raise SettingsError(
            f"{name} is ragged, its rows differ in length; pad the sequences to one length and give the true ones as "
            "lengths, one number a sequence"
        ) from error


def _run(wanted: str, program: IntegerProgram, raw: np.ndarray, lengths: np.ndarray, **how: Any) -> np.ndarray:
    """The states or the outputs (y)."""
    if not runs_native(program):
        return law.simulate(program, raw, lengths)[wanted == "y"]
    rows = raw.shape[:1] if wanted == "y" and program.steps == "last" else raw.shape[:2]
    width, dtype = (program.n_o, _output_type(program)) if wanted == "y" else (program.n_h, np.dtype(np.int16))
    found = np.empty((*rows, width), dtype)
    _call(program, raw, lengths, wanted, found, **how)
    return found


def _output_type(program: IntegerProgram) -> np.dtype:
    return np.dtype(np.float32 if isinstance(program.readout, FloatReadout) else np.int32)


def runs_native(program: IntegerProgram) -> bool:
    """Whether the C engine runs it: it was built, and it knows this kind of W and of requantization."""
    known = program.W.kind in RECURRENTS and not isinstance(program.requant, Table)
    return known and library() is not None


def in_use(program: IntegerProgram | None = None) -> str:
    """What runs programs here: "native (vnni | avx2 | portable)" or "numpy"; this program, or any ordinary one."""
    engine = library()
    if engine is None or (program is not None and not runs_native(program)):
        return "numpy"
    best = engine.qornn_kernel((Model.any() if program is None else _model(program, "bytes")).address, -1)
    return f"native ({KERNELS[best]})"


def available(program: IntegerProgram, layout: str) -> list[str]:
    """The kernels that can really run this program on this machine."""
    engine = library()
    if engine is None or not runs_native(program):
        return []
    model = _model(program, layout)
    return [k for i, k in enumerate(KERNELS) if engine.qornn_kernel(model.address, i) == i]


class Session:
    """A stream of one program: one sample in, one answer out, constant memory."""

    def __init__(self, program: IntegerProgram) -> None:
        self.program = program
        self._h = np.zeros((1, program.n_h), np.int16)
        self._shape: tuple[int, ...]
        if isinstance(program.input, Codes):
            self._shape, self._low, self._high = (), 0, program.n_i - 1
        else:
            self._shape, self._low, self._high = (program.n_i,), program.input.low, program.input.high
        self._native = runs_native(program)
        if self._native:
            self._prepare()

    def _prepare(self) -> None:
        """Everything a step needs, made once: finding addresses takes longer than a step."""
        engine, model = library(), _model(self.program, "bytes")
        assert engine is not None
        self._x = np.empty(self._shape, np.int16)
        self._y = np.empty(self.program.n_o, _output_type(self.program))
        work, lengths = np.empty(engine.qornn_work_bytes(model.address), np.uint8), np.ones(1, np.int64)
        arrays: dict[str, np.ndarray] = {"x": self._x, "lengths": lengths, "h": self._h, "y": self._y, "work": work}
        batch = Batch(B=1, T=1, **_addresses(arrays))
        self._kept = model, batch, arrays  # alive while their addresses are in use
        self._arguments = model.address, ctypes.addressof(batch), -1
        self._run = engine.qornn_run

    def __getstate__(self) -> tuple[IntegerProgram, np.ndarray]:
        return self.program, self._h

    def __setstate__(self, state: tuple[IntegerProgram, np.ndarray]) -> None:
        """A copy has memory of its own: addresses cannot be copied."""
        self.__init__(state[0])  # type: ignore[misc]
        self._h[:] = state[1]

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
        x = x_t if type(x_t) is np.ndarray else _array(x_t)
        if not self._is_plain(x):  # refused in words, or clipped
            raw, _, clipped = program.accept(x[None, None], saturate=saturate)
            law.warn_clipped(clipped, raw.size)
            x = raw[0, 0]
        if self._native:
            self._x[...] = x
            bad = self._run(*self._arguments)
            assert not bad, "the code was checked"
            return self._y.copy()
        drive = law.input_sums(program, x[None, None].astype(np.int16))[:, 0]
        self._h[:] = law.step(program, self._h.astype(np.int64), drive)
        return program.readout.outputs(self._h)[0]

    def _is_plain(self, x: np.ndarray) -> bool:
        """Whether a sample is what it should be, which `accept` takes long to find."""
        if x.shape != self._shape or x.dtype.kind not in "iu":
            return False
        if x.size > _FEW:
            return bool(np.minimum.reduce(x) >= self._low and np.maximum.reduce(x) <= self._high)
        low, high = self._low, self._high
        return all(low <= value <= high for value in x.reshape(-1).tolist())


def _addresses(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: array.ctypes.data for name, array in arrays.items()}


def _call(
    program: IntegerProgram,
    raw: np.ndarray,
    lengths: np.ndarray,
    wanted: str,
    found: np.ndarray,
    *,
    threads: int | None = None,
    layout: str = "bytes",
    kernel: str | None = None,
) -> None:
    """Fill `found` (states or y), a share of it in each thread: ctypes lets go of the interpreter meanwhile."""
    if layout not in LAYOUTS:
        raise unknown("layout", layout, LAYOUTS)
    if kernel is not None and kernel not in KERNELS:
        raise unknown("kernel", kernel, KERNELS)
    engine, model = library(), _model(program, layout)
    assert engine is not None
    raw, lengths = np.ascontiguousarray(raw, np.int16), np.ascontiguousarray(lengths, np.int64)
    number = -1 if kernel is None else KERNELS.index(kernel)
    room = engine.qornn_work_bytes(model.address)

    def part(share: slice) -> int:
        work = np.empty(room, np.uint8)
        arrays = {"x": raw[share], "lengths": lengths[share], wanted: found[share], "work": work}
        batch = Batch(B=len(raw[share]), T=raw.shape[1], **_addresses(arrays))
        return engine.qornn_run(model.address, ctypes.addressof(batch), number)

    B = len(raw)
    count = min(int(threads or os.cpu_count() or 1), B)
    if count == 1:
        failed = [part(slice(0, B))]
    else:
        edges = np.linspace(0, B, count + 1).astype(int)
        with ThreadPoolExecutor(count) as pool:
            failed = list(pool.map(part, (slice(a, b) for a, b in pairwise(edges))))
    assert not any(failed), "accept() has checked the codes"
