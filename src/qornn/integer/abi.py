"""A program as the C engine's struct: the arrays in its layouts, and the addresses of them."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from qornn.integer import layout as arrange
from qornn.integer.matrix import Dense
from qornn.integer.parts import Codes, FloatReadout, Identity, ModReLU, ReLU
from qornn.integer.program import IntegerProgram
from qornn.integer.requant import Multiplier, PerRow, Thresholds
from qornn.integer.structured import Delay, Hadamard

LAYOUTS: Final = ("bytes", "packed")  # one byte per weight; or as on a device, to compare with it
_ACTIVATIONS: Final = {ReLU: 0, ModReLU: 1, Identity: 2}
_REQUANTS: Final = {Multiplier: 0, Thresholds: 1, PerRow: 2}
_SHIFT: Final = 3  # QORNN_SHIFT
RECURRENTS: Final = ("dense", "hadamard", "cycle", "delay")
_HOST_UNITS: Final = 64  # QORNN_HOST_UNITS

_u8, _u32, _pointer = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_void_p


class Batch(ctypes.Structure):  # qornn_batch
    _fields_ = (
        ("B", ctypes.c_int64),
        ("T", ctypes.c_int64),
        *((name, _pointer) for name in ("x", "lengths", "h", "states", "y", "work")),
    )


class _Model(ctypes.Structure):  # qornn_program and qornn_host_model, field by field
    _fields_ = (
        *((name, _u32) for name in ("n_i", "n_h", "n_o")),
        *((name, _u8) for name in ("bits_W", "bits_U", "bits_h", "bits_x")),
        *((name, _u8) for name in ("input", "activation", "requant", "readout", "steps", "plain")),
        ("low", ctypes.c_int16),
        ("high", ctypes.c_int16),
        *((name, _pointer) for name in ("x_offset", "x_multiplier", "x_shift")),
        *((name, _pointer) for name in ("W_planes", "U_packed", "U_planes")),
        *((name, _pointer) for name in ("bias", "bias_wide")),
        *((name, _u8) for name in ("shift_W", "shift_U", "shift")),
        ("multiplier", _u32),
        ("thresholds", _pointer),
        *((name, _pointer) for name in ("M_W", "M_U", "M_I", "row_shift")),
        ("alike", _u8),  # never here: the wide kernels load a row's own
        ("readout_relu", _u8),
        *((name, _pointer) for name in ("V", "b_o")),
        ("scale", ctypes.c_float),
        *((name, _pointer) for name in ("V_int", "b_o_int")),
        *((name, _u8) for name in ("recurrent", "moves")),  # never moves here: U has all its rows
        ("block", _u32),
        *((name, _pointer) for name in ("signs", "U_words")),
        ("bits_V", _u8),
        ("V_packed", _pointer),  # never here: V has a byte a weight
        ("mix", _u8),
        *((name, _pointer) for name in ("W_bytes", "U_bytes", "W_blocks", "W_start", "V_columns")),
        ("row_bytes", _u32),
    )


class Model:
    """The struct and, kept alive with it, every array it points to."""

    def __init__(self, program: IntegerProgram, layout: str) -> None:
        self._struct = _Model()
        self._arrays: list[np.ndarray] = []
        s = self._struct
        s.n_i, s.n_h, s.n_o = program.n_i, program.n_h, program.n_o
        s.bits_W, s.bits_U = program.W.bits, program.U.bits
        s.bits_h, s.bits_x = program.state.bits, program.input.bits
        s.steps = ("last", "all").index(program.steps)
        s.activation, s.requant = _ACTIVATIONS[type(program.activation)], _REQUANTS[type(program.requant)]
        self._matrices(program, layout)
        self._input(program)
        self._requant(program)
        self._readout(program)

    @classmethod
    def any(cls) -> Model:
        """A network of one unit, to ask what kernel would run."""
        model = cls.__new__(cls)
        model._struct, model._arrays = _Model(n_i=1, n_h=1, n_o=1), []
        model._point(W_bytes=np.zeros(64, np.int8), W_blocks=np.zeros(64, np.int8))
        return model

    @property
    def address(self) -> int:
        return ctypes.addressof(self._struct)

    def _point(self, **arrays: np.ndarray | None) -> None:
        for name, array in arrays.items():
            if array is not None:
                array = np.ascontiguousarray(array)
                self._arrays.append(array)
                setattr(self._struct, name, array.ctypes.data)

    def _matrices(self, program: IntegerProgram, layout: str) -> None:
        W, U = program.W, program.U
        if not isinstance(W, Dense):
            self._structured(program, layout)
            return
        if layout == "packed":
            self._point(W_planes=arrange.pack_rows(W.integers, W.bits))
            if arrange.U_in_rows(program):
                self._point(U_planes=arrange.pack_rows(U.integers, U.bits))
            else:
                self._point(U_packed=arrange.pack_columns(U.integers, U.bits))
            return
        rows = arrange.pad_rows(W.integers, _HOST_UNITS)
        self._struct.row_bytes = rows.shape[1]
        self._point(W_bytes=rows, U_bytes=U.integers.T)
        # States are fed as h + 2^15 in two unsigned bytes (qornn_host_vnni.c); the sums start from what takes it back.
        start = -(2**15) * W.integers.astype(np.int64).sum(1)
        start = np.pad(start, (0, -len(start) % 16)).astype(np.int32)  # modulo 2^32
        self._point(W_blocks=_aligned(arrange.blocks(W.integers)), W_start=start)

    def _structured(self, program: IntegerProgram, layout: str) -> None:
        s, W, U = self._struct, program.W, program.U
        s.recurrent = RECURRENTS.index(W.kind)
        if isinstance(W, Hadamard | Delay):
            self._point(signs=arrange.pack_signs(W.signs))
        if isinstance(W, Hadamard):
            s.block = W.block
        elif isinstance(W, Delay):
            s.block = len(W.signs)
        if layout == "packed":
            self._point(U_packed=arrange.pack_columns(U.integers, U.bits))
        else:
            self._point(U_bytes=U.integers.T)

    def _input(self, program: IntegerProgram) -> None:
        if isinstance(program.input, Codes):
            return
        samples = program.input
        self._struct.input, self._struct.plain = 1, samples.plain
        self._struct.low, self._struct.high = samples.low, samples.high
        self._point(x_offset=samples.offset, x_multiplier=samples.multiplier, x_shift=samples.shift)

    def _requant(self, program: IntegerProgram) -> None:
        s, requant = self._struct, program.requant
        if isinstance(requant, PerRow):
            self._point(M_W=requant.M_W, M_U=requant.M_U, M_I=requant.M_I, row_shift=requant.shift)
            self._point(bias_wide=program.bias)
            return
        s.shift_W, s.shift_U = requant.shift_W, requant.shift_U
        self._point(bias=None if program.bias is None else program.bias.astype(np.int32))
        shift = None if isinstance(program.W, Dense) else arrange.pure_shift(program)
        if shift is not None:
            s.requant, s.shift = _SHIFT, shift
        elif isinstance(requant, Multiplier):
            s.multiplier, s.shift = requant.multiplier, requant.shift
        elif isinstance(requant, Thresholds):
            self._point(thresholds=requant.values)

    def _readout(self, program: IntegerProgram) -> None:
        s, readout = self._struct, program.readout
        s.readout_relu, s.mix = readout.relu, readout.mix
        V = readout.V.T if readout.mix else readout.V
        if isinstance(readout, FloatReadout):
            s.scale = readout.scale
            self._point(V=V, b_o=readout.b_o, V_columns=readout.V.T)
        else:
            s.readout = 1
            self._point(V_int=V, b_o_int=readout.bias)


def fingerprint() -> int:
    """The name, place and size of every field as one number, as qornn_host_abi.c makes it."""
    values = [ctypes.sizeof(_Model), ctypes.sizeof(Batch)]
    for struct in (_Model, Batch):
        for name, *_ in struct._fields_:
            place = getattr(struct, name)
            values += [*name.encode(), place.offset, place.size]
    found = 0x811C9DC5
    for value in values:
        found = (found ^ value) * 0x01000193 & 0xFFFFFFFF
    return found


def _aligned(array: np.ndarray, boundary: int = 64) -> np.ndarray:
    """The same bytes starting at a multiple of `boundary`: a register's load must not straddle two cache lines."""
    room = np.empty(array.nbytes + boundary, np.uint8)
    start = -room.ctypes.data % boundary
    moved: Any = room[start : start + array.nbytes].view(array.dtype)
    moved[:] = array.reshape(-1)
    return moved
