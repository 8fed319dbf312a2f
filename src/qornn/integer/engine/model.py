"""A program as the structs that the C engine runs."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from qornn.integer.engine.library import library
from qornn.integer.engine.structs import Filled, constants, struct
from qornn.integer.layers import Layer
from qornn.integer.layout import HOST
from qornn.integer.program import IntegerProgram
from qornn.integer.state import Source


class Desk:
    """A qornn_batch, and the memory that a model works in."""

    def __init__(self, model: Model) -> None:
        engine = library()
        assert engine is not None
        self._work = np.empty(engine.qornn_work_bytes(model.address), np.uint8)
        self.batch: Any = struct("qornn_batch")(work=self._work.ctypes.data)
        self.address = ctypes.addressof(self.batch)


class Model(Filled):
    """qornn_host_model of a program, its arrays in one of the host's layouts."""

    def __init__(self, program: IntegerProgram, layout: str) -> None:
        super().__init__()
        self._desks: list[Desk] = []
        how = HOST[layout]
        room = program.rooms(how)[0]
        self._struct: Any = struct("qornn_host_model")()
        self.fill(self._struct.input, program.input.fields(room))
        self.fill(self._struct.readout, program.readout.fields(how, wide=False), self._struct)
        self._layers([self._layer(layer, source, layout) for layer, source in program.walk()])

    @classmethod
    def any(cls) -> Model:
        """A network of one unit, to ask what kernel would run."""
        model = cls.__new__(cls)
        Filled.__init__(model)
        model._desks = []
        model._struct = struct("qornn_host_model")()
        layer: Any = struct("qornn_host_recurrent")()
        model.fill(layer.layer, {"n_i": 1, "n_h": 1, "W_blocks": np.zeros(64, np.int8)}, layer)
        model._layers([(constants()["QORNN_RECURRENT"], model.point(layer))])
        return model

    @property
    def address(self) -> int:
        return ctypes.addressof(self._struct)

    def take_desk(self) -> Desk:
        """Room to work for one thread, to be given back; made once, since that takes as long as a run."""
        try:
            return self._desks.pop()  # whatever other threads do meanwhile
        except IndexError:
            return Desk(self)

    def give_desk(self, desk: Desk) -> None:
        self._desks.append(desk)

    def _layer(self, layer: Layer, source: Source, layout: str) -> tuple[int, int]:
        filled: Any = struct(layer.host_struct)()
        self.fill(filled.layer, layer.fields(source, HOST[layout]), filled)
        return constants()[layer.constant], self.point(filled)

    def _layers(self, layers: list[tuple[int, int]]) -> None:
        array: Any = struct("qornn_host_layer") * len(layers)
        entries = array(*layers)
        self._struct.count, self._struct.layers = len(layers), self.point(entries)


@lru_cache(maxsize=8)  # bounded: it keeps the programs alive, which take no weak references
def model_of(program: IntegerProgram, layout: str) -> Model:
    """The program in C arrays, made once."""
    return Model(program, layout)
