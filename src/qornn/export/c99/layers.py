"""Each kind of layer in NAME.c: what it keeps in NAME_state, and the function that takes it one step on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from qornn.errors import ProgramError
from qornn.integer.layers import Layer, Mix, Recurrent, Rotations
from qornn.integer.layout import DEVICE, ON_STACK, Fields
from qornn.integer.matrices import Matrix
from qornn.integer.program import IntegerProgram
from qornn.integer.state import Source

SIZES: Final = {"int16_t": 2, "int32_t": 4, "uint32_t": 4}


@dataclass(frozen=True, kw_only=True)
class Member:
    """A field of NAME_state."""

    type: str
    name: str
    shape: tuple[int, ...] = ()
    comment: str = ""

    @property
    def size(self) -> int:
        """Of one number."""
        return SIZES[self.type]

    @property
    def nbytes(self) -> int:
        return self.size * math.prod(self.shape)

    def __str__(self) -> str:
        lengths = "".join(f"[{n}]" for n in self.shape)
        return f"    {self.type} {self.name}{lengths};" + (f" /* {self.comment} */" if self.comment else "")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Numbers of NAME_state that go from step to step."""

    n: int
    states: str  # an expression: where they are, of the NAME_state that s points to
    unit: str  # their type
    top: int  # the largest magnitude
    signed: bool


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a layer stands, and the length of the buffers around it."""

    name: str  # of the model
    index: int
    source: Source
    reads: int  # of what it reads
    before: int  # of what the layer before was given
    room: int  # of what it gives, as 16-bit numbers, at least; 0 where nobody reads that


@dataclass(frozen=True, kw_only=True)
class Code:
    """A layer in C."""

    layer: Layer
    name: str  # of its struct
    fields: Fields
    header: str  # of the runtime, that has its step
    members: list[Member]
    states: str  # an expression: its states, of the NAME_state that s points to
    unit: str  # their type
    clear: list[str]  # lines: before a sequence
    step: list[str]  # lines: one step from x, or from a code
    given: str  # an expression: where the next layer finds what it reads
    stored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the memory table: how its fields begin
    filled: int = 0  # bytes that fill rows of weights up to whole words, which are stored but not the program's
    skips: bool = False  # whether its step also reads `before`, what the layer before was given
    checks: str = ""

    @property
    def kept(self) -> list[Kept]:
        n, top, signed = self.layer.n_state, self.layer.top, self.layer.signed
        return [Kept(n=n, states=self.states, unit=self.unit, top=top, signed=signed)] if n else []


def layer_codes(program: IntegerProgram, name: str) -> list[Code]:
    """All layers of a model."""
    for layer in program.layers:
        if layer.kind not in EMITTERS:
            raise ProgramError(f"C knows no layer of kind {layer.kind}; program.run and program.session run it here")
    rooms = [0, *program.rooms(DEVICE), program.n_out if program.readout.pooled else 0]
    places = [
        Place(name=name, index=i, source=source, before=rooms[i], reads=rooms[i + 1], room=rooms[i + 2])
        for i, (_, source) in enumerate(program.walk())
    ]
    return [EMITTERS[layer.kind](layer, place) for layer, place in zip(program.layers, places, strict=True)]


def _recurrent(layer: Recurrent, place: Place) -> Code:
    """Two buffers in turn, or one in place; sums that are many lie in the state, since the stack should stay small."""
    i, form, n = place.index, layer.W.form, layer.n_h
    h, name = f"h{i}", f"{place.name}_layer{i}"
    units = n if form.wide else max(layer.state_room, place.room)
    unit = "int32_t" if form.wide else "int16_t"
    comment = _padded(n, units, "units")
    work = Member(type="int32_t", name=f"work{i}", shape=(form.sums,))
    kept = form.sums > ON_STACK
    members = [work] if kept else []
    step = [f"int32_t work{i}[{form.sums}];"] if form.sums and not kept else []
    arguments = [f"&{name}", "x, 0" if place.source.multiplied else "NULL, code"]
    if form.buffers == 2:
        members += [
            Member(type="uint32_t", name=f"now{i}"),
            Member(type=unit, name=h, shape=(2, units), comment=comment),
        ]
        states = f"((s)->{h}[(s)->now{i} & 1u])"
        step += [f"const unsigned now = s->now{i} & 1u;", f"s->now{i} = now ^ 1u;"]
        arguments += [f"s->{h}[now]", f"s->{h}[now ^ 1u]"]
        clear = [f"s->now{i} = 0;", *_loop(units, f"s->{h}[0][j] = 0;", f"s->{h}[1][j] = 0;")]
    else:
        members += [Member(type=unit, name=h, shape=(units,), comment=comment)]
        states, clear = f"((s)->{h})", cleared(h, units)
        arguments += [f"s->{h}"]
    if form.sums:
        arguments += [f"s->work{i}" if kept else f"work{i}"]
    step += [f"{form.function}({', '.join(arguments)});"]
    given = states.replace("(s)", "s")
    if form.wide and place.room:  # read as 16 bits
        narrow = Member(type="int16_t", name=f"x{i + 1}", shape=(place.room,))
        members += [narrow]
        clear += cleared(narrow.name, place.room)
        step += _loop(n, f"s->{narrow.name}[j] = (int16_t)s->{h}[j];")
        given = f"s->{narrow.name}"
    return Code(
        layer=layer,
        name=name,
        fields=layer.fields(place.source, DEVICE),
        header=form.header,
        members=members,
        states=states,
        unit=unit,
        clear=clear,
        step=step,
        given=given,
        stored={"W": ("W_", "signs"), "U": ("U_",)},
        checks=_checks(layer, place, units),
    )


def _checks(layer: Recurrent, place: Place, units: int) -> str:
    """The buffers are as long as the kernels of a stored W and of packed rows of U read."""
    lines = []
    if layer.W.stored:
        lines += [room_check(f"{place.name}_has_room{place.index}", units, layer.n_h, layer.W.bits)]
    if "U_planes" in layer.fields(place.source, DEVICE):
        lines += [room_check(f"{place.name}_x_has_room{place.index}", place.reads, layer.n_in, layer.U.bits)]
    return "".join(lines)


def room_check(name: str, has: int, n: int, bits: int) -> str:
    """A line of C that does not compile where a buffer is shorter than the kernels read."""
    return f"typedef char {name}[{has}u >= QORNN_UNITS({n}u, QORNN_GROUP_PACKED({bits}u)) ? 1 : -1];\n"


def cleared(array: str, length: int) -> list[str]:
    """The lines that set an array of NAME_state to zero."""
    return _loop(length, f"s->{array}[j] = 0;")


def _loop(length: int, *lines: str) -> list[str]:
    return [f"for (unsigned j = 0; j < {length}u; j++) {{", *(f"    {line}" for line in lines), "}"]


def _rotations(layer: Rotations, place: Place) -> Code:
    """One array, turned in place."""
    i = place.index
    z, name, units = f"z{i}", f"{place.name}_layer{i}", max(layer.n_state, place.room)
    x, fields = "x, 0" if place.source.multiplied else "NULL, code", layer.fields(place.source, DEVICE)
    return Code(
        layer=layer,
        name=name,
        fields=fields,
        header="qornn_rotations.h",
        members=[Member(type="int16_t", name=z, shape=(units,), comment=_padded(layer.n_state, units, "units"))],
        states=f"((s)->{z})",
        unit="int16_t",
        clear=cleared(z, units),
        step=[f"qornn_rotations_step(&{name}, {x}, s->{z});"],
        given=f"s->{z}",
        stored={"U, C and S": ("U_",), "lambda": ("turns",)},
        filled=_filled("U", fields, layer.U),
        checks=_planes_check(f"{place.name}_x_has_room{i}", "U", fields, place.reads, layer.U),
    )


def _mix(layer: Mix, place: Place) -> Code:
    """Outputs that are made anew at every step; zeros fill them up."""
    i = place.index
    y, name, units = f"y{i}", f"{place.name}_layer{i}", max(layer.width, place.room)
    x, fields = "x, 0" if place.source.multiplied else "NULL, code", layer.fields(place.source, DEVICE)
    before, filled = "NULL, 0", _filled("C", fields, layer.C)
    checks = _planes_check(f"{place.name}_x_has_room{i}", "C", fields, place.reads, layer.C)
    if layer.S is not None:
        assert place.source.skip is not None  # the program has found one
        before = "before, 0" if place.source.skip.multiplied else "NULL, before"
        checks += _planes_check(f"{place.name}_before_has_room{i}", "S", fields, place.before, layer.S)
        filled += _filled("S", fields, layer.S)
    return Code(
        layer=layer,
        name=name,
        fields=fields,
        header="qornn_mix_layer.h",
        members=[Member(type="int16_t", name=y, shape=(units,), comment=_padded(layer.width, units, "outputs"))],
        states=f"((s)->{y})",
        unit="int16_t",
        clear=cleared(y, units),
        step=[f"qornn_mix_layer_step(&{name}, {x}, {before}, s->{y});"],
        given=f"s->{y}",
        stored={"U, C and S": ("C_", "S_")},
        filled=filled,
        skips=layer.S is not None,
        checks=checks,
    )


def _planes_check(name: str, matrix: str, fields: Fields, has: int, W: Matrix) -> str:
    return room_check(name, has, W.integers.shape[1], W.bits) if f"{matrix}_planes" in fields else ""


def _filled(matrix: str, fields: Fields, W: Matrix) -> int:
    """What a matrix takes more than its bits: whole words for each row, or a byte to spare after all columns."""
    return sum(fields[name].nbytes for name in fields if name.startswith(f"{matrix}_")) - W.stored_bytes


def _padded(n: int, units: int, what: str) -> str:
    return "" if units == n else f"{n} {what}, and zeros up to whole words of weights"


EMITTERS: Final[dict[str, Callable[[Any, Place], Code]]] = {
    Recurrent.kind: _recurrent,
    Rotations.kind: _rotations,
    Mix.kind: _mix,
}
