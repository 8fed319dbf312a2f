"""The C structs, read from the headers of the runtime, and a part's fields put into one."""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

import numpy as np

from qornn.errors import ProgramError
from qornn.integer.layout import Fields

POINTER: Final = ctypes.c_void_p
TYPES: Final[dict[str, Any]] = {
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "qornn_count": ctypes.c_uint32,
    "int16_t": ctypes.c_int16,
    "int64_t": ctypes.c_int64,
    "float": ctypes.c_float,
}
FOLDERS: Final[list[Traversable]] = [files("qornn") / "runtime"]  # of headers: a part from elsewhere adds its own
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRUCT: Final = re.compile(r"typedef struct \{([^{}]*)\} (qornn_\w+);")
_FIELD: Final = re.compile(r"(?:const )?(?:QORNN_FLASH )?(\w+) (\*?)(\w+)")
_ENUM: Final = re.compile(r"enum \{([^{}]*)\}")


@cache
def headers() -> dict[str, bytes]:
    """The headers of the runtime, by name: those that are flashed, then the host's."""
    return _headers(FOLDERS[0]) | _headers(FOLDERS[0] / "host")


def _headers(folder: Traversable) -> dict[str, bytes]:
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".h"))
    return {name: (folder / name).read_bytes() for name in names}


@cache
def digest() -> str:
    """A digest of all headers, made as in CMakeLists.txt. It shows if a library was compiled from other headers."""
    each = (hashlib.sha256(text).hexdigest() for text in headers().values())
    return hashlib.sha256("".join(each).encode()).hexdigest()


def _text(elsewhere: tuple[Traversable, ...] = ()) -> str:
    texts = [*headers().values(), *(text for folder in elsewhere for text in _headers(folder).values())]
    return _COMMENT.sub("", "\n".join(text.decode() for text in texts))


def declared() -> Mapping[str, list[tuple[str, str, bool]]]:
    """The fields of every struct in their order: name, type, and whether it is a pointer."""
    return _declared(tuple(FOLDERS[1:]))


@cache
def _declared(elsewhere: tuple[Traversable, ...]) -> Mapping[str, list[tuple[str, str, bool]]]:
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for body, name in _STRUCT.findall(_text(elsewhere)):
        lines = [line.strip() for line in body.split(";") if line.strip()]
        fields = [_FIELD.fullmatch(line) for line in lines]
        known = [field for field in fields if field and (field[2] or field[1] in TYPES or field[1] in found)]
        if len(known) == len(lines):  # other structs are not plain data and are not mirrored
            found[name] = [(field[3], field[1], bool(field[2])) for field in known]
    return found


@cache
def constants() -> Mapping[str, int]:
    """The values of all enums."""
    found: dict[str, int] = {}
    for body in _ENUM.findall(_text()):
        value = -1
        for entry in body.split(","):
            name, _, given = (part.strip() for part in entry.partition("="))
            value = int(given) if given else value + 1
            found[name] = value
    return found


@cache
def struct(name: str) -> type[ctypes.Structure]:
    """The struct as ctypes has it."""
    fields = [
        (field, POINTER if pointer else TYPES.get(kind) or struct(kind)) for field, kind, pointer in declared()[name]
    ]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


class Filled:
    """Structs and, kept alive with them, every array they point to."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def fill(self, target: ctypes.Structure, fields: Fields, outer: ctypes.Structure | None = None) -> None:
        """Put the fields in; those the struct does not have belong to the one around it."""
        own = {name for name, *_ in target._fields_}
        for name, value in fields.items():
            place = target if name in own else outer
            if place is None:
                raise ProgramError(f"{type(target).__name__} has no field {name}")
            setattr(place, name, self._value(value))

    def point(self, thing: Any) -> int:
        """The address of a struct or of an array of them."""
        self._kept.append(thing)
        return ctypes.addressof(thing)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return constants()[value]
        if not isinstance(value, np.ndarray):
            return value
        array = np.ascontiguousarray(value)
        self._kept.append(array)
        return array.ctypes.data
