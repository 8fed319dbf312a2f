"""A stream: one sample in, one answer out."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from qornn.integer import simulate as law
from qornn.integer.engine.library import library
from qornn.integer.engine.model import model_of
from qornn.integer.engine.run import address, as_array, runs_native
from qornn.integer.engine.structs import struct
from qornn.integer.program import IntegerProgram
from qornn.integer.readout import Held

FEW: Final = 16  # numbers that Python compares faster than numpy does


class Session:
    """A stream of one program: one sample in, one answer out, constant memory."""

    def __init__(self, program: IntegerProgram) -> None:
        self.program = program
        self._h = np.zeros((1, program.n_state), np.int16)  # of the input and all layers, one after another
        held = program.readout.start(1)  # of a mean Σh and T, else of no use
        self._sums, self._counts = held[0].astype(np.int32), held[1].astype(np.uint32)
        self._y = program.readout.outputs(*held)[0]
        self._shape, (self._low, self._high) = program.input.shape, program.input.limits
        self._native = runs_native(program)
        if self._native:
            self._prepare()

    def _prepare(self) -> None:
        """Everything a step needs, made once: finding addresses takes longer than a step."""
        engine, model = library(), model_of(self.program, "bytes")
        assert engine is not None
        self._x = np.empty(self._shape, np.int16)
        work, lengths = np.empty(engine.qornn_work_bytes(model.address), np.uint8), np.ones(1, np.int64)
        arrays: dict[str, np.ndarray] = {"x": self._x, "lengths": lengths, "h": self._h, "y": self._y, "work": work}
        if self.program.readout.pooled:
            arrays |= {"sums": self._sums, "counts": self._counts}
        batch = struct("qornn_batch")(B=1, T=1, **{name: address(array) for name, array in arrays.items()})
        self._kept = model, batch, arrays  # alive while their addresses are in use
        self._arguments = model.address, ctypes.addressof(batch), -1
        self._run = engine.qornn_run

    def __getstate__(self) -> tuple[IntegerProgram, tuple[np.ndarray, ...]]:
        return self.program, (self._h, self._sums, self._counts, self._y)

    def __setstate__(self, state: tuple[IntegerProgram, tuple[np.ndarray, ...]]) -> None:
        """A copy has memory of its own: addresses cannot be copied."""
        self.__init__(state[0])  # type: ignore[misc]
        for own, copied in zip((self._h, self._sums, self._counts, self._y), state[1], strict=True):
            own[:] = copied

    @property
    def h(self) -> np.ndarray:
        """The current state, in integers, of the input and all layers one after another.  # (n_state,) int16"""
        return self._h[0].copy()

    @property
    def sums(self) -> np.ndarray:
        """The sum of the last layer's outputs, if their mean is read out.  # (n_out,) int32"""
        return self._sums[0].copy()

    @property
    def count(self) -> int:
        """The divisor of the outputs: T of a mean, else 1."""
        return int(self._counts[0])

    @property
    def y(self) -> np.ndarray:
        """The outputs after the last step; before the first, those of zeros.  # (n_o,)"""
        return self._y.copy()

    @property
    def values(self) -> np.ndarray:
        """The same in the network's own units.  # (n_o,) float32"""
        return self.program.readout.values(self._y, self.count)

    def reset(self) -> None:
        """Back to the zero state, where a sequence starts."""
        self._h[:] = 0
        self._hold(self.program.readout.start(1))

    def step(self, x_t: Any, *, saturate: bool = False) -> np.ndarray:
        """Take one sample (a code, or n_raw raw integers) and give the outputs of the state after it.  # (n_o,)"""
        program = self.program
        x = x_t if type(x_t) is np.ndarray else as_array(x_t)
        if not self._is_plain(x):  # refused in words, or clipped
            raw, _, clipped = program.accept(x[None, None], saturate=saturate)
            law.warn_clipped(clipped, raw.size)
            x = raw[0, 0]
        if self._native:
            self._x[...] = x
            bad = self._run(*self._arguments)
            assert not bad, "the code was checked"
            return self._y.copy()
        states, h = law.step(program, program.apart(self._h.astype(np.int64)), x[None].astype(np.int16))
        self._h[:] = np.concatenate(states, 1)
        held = self._sums.astype(np.int64), self._counts.astype(np.int64)
        self._hold(program.readout.take(held, h))
        return self._y.copy()

    def _hold(self, held: Held) -> None:
        self._sums[:], self._counts[:] = held
        self._y[:] = self.program.readout.outputs(*held)[0]

    def _is_plain(self, x: np.ndarray) -> bool:
        """Whether a sample is valid: a fast check before the slower `accept`."""
        if x.shape != self._shape or x.dtype.kind not in "iu":
            return False
        if x.size > FEW:
            return bool(np.minimum.reduce(x) >= self._low and np.maximum.reduce(x) <= self._high)
        low, high = self._low, self._high
        return all(low <= value <= high for value in x.reshape(-1).tolist())
